// StopMatcher: a reply's text up to the first stop string, token by token.
//
// Text that may yet become a stop string is held back, and released when it does not. The outcome is a function of the
// pieces' order and of nothing else: the pieces come one token at a time, however many tokens a round brought.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

// How many bytes at the end of `text` begin `mark` (not empty) without completing it: what must be held back until more
// text has come.
std::size_t begun_bytes(std::string_view text, std::string_view mark);

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // empty ones are not stops

  // Appends what may be shown now to `shown`. Once a stop string is complete, found() names it and nothing more is
  // shown.
  void push(std::string_view piece, std::string& shown);
  void finish(std::string& shown);  // the reply ended otherwise: what was held back is text
  const std::optional<std::string>& found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace rondo
