// ProgressLine: long work on stderr; one line rewritten on a terminal, one line a piece of work on a pipe.
#pragma once

#include <cstdint>
#include <string>

namespace rondo {

class ProgressLine {
 public:
  explicit ProgressLine(std::string verb = "loading");  // what is being done to each piece of work
  ~ProgressLine();                                      // wipes the line of a terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& what, std::uint64_t done, std::uint64_t total);
  void wipe();  // before something else is printed on the terminal

 private:
  const bool is_terminal_;
  const std::string verb_;
  std::string last_what_;
  std::string last_line_;
};

}  // namespace rondo
