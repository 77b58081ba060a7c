// ProgressLine: long work on stderr; one line rewritten on a terminal, one line a piece of work on a pipe.
#pragma once

#include <cstdint>
#include <string>

namespace rondo {

class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // wipes the line of a terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& what, std::uint64_t done, std::uint64_t total);

 private:
  const bool is_terminal_;
  std::string last_what_;
  std::string last_line_;
};

}  // namespace rondo
