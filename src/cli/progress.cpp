#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace rondo {

ProgressLine::ProgressLine(std::string verb) : is_terminal_(::isatty(STDERR_FILENO) == 1), verb_(std::move(verb)) {}

ProgressLine::~ProgressLine() { wipe(); }

void ProgressLine::wipe() {
  if (!is_terminal_ || last_line_.empty()) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  last_line_.clear();
}

void ProgressLine::show(const std::string& what, std::uint64_t done, std::uint64_t total) {
  if (is_terminal_) {
    const std::uint64_t percent = total == 0 ? 100 : done * 100 / total;
    std::string line = fmt::format("{} {}: {} %", verb_, what, percent);
    if (line == last_line_) return;
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
    last_line_ = std::move(line);
  } else if (what != last_what_) {
    fmt::print(stderr, "{} {}\n", verb_, what);
    last_what_ = what;
  }
}

}  // namespace rondo
