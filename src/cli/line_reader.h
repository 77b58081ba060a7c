// LineReader: lines a person types, by libedit with a history on a terminal, else as they stand in standard input.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace rondo {

class LineReader {
 public:
  // history_file: where lines are kept from one conversation to the next; empty = nowhere.
  // is_dropped: whether Ctrl-C was pressed since the last call; asked while a line is typed.
  LineReader(const std::string& history_file, bool (*is_dropped)());
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  static bool on_terminal();  // a person types, and sees what comes
  bool is_terminal() const { return is_terminal_; }

  // `prompt` is shown on a terminal only. Without the newline.
  enum class End { None, Dropped, Input };  // Dropped: Ctrl-C, the line is void; Input: Ctrl-D, or nothing is left
  struct Line {
    std::string text;
    End end = End::None;
  };
  Line read(const char* prompt);

 private:
  struct Terminal;
  const bool is_terminal_;
  std::unique_ptr<Terminal> terminal_;
};

// Where the history of `chat` lies: $XDG_STATE_HOME/rondo or ~/.local/state/rondo, made when missing, for its owner
// alone. nullopt, said in `why`, where that cannot be.
std::optional<std::string> history_path(std::string& why);

}  // namespace rondo
