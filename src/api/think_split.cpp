#include "api/think_split.h"

#include <algorithm>

#include "engine/stop_matcher.h"

namespace rondo {

namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kSpace = " \t\r\n";

void drop_leading_newlines(std::string& text) { text.erase(0, std::min(text.find_first_not_of('\n'), text.size())); }

}  // namespace

ThinkSplit::Pieces ThinkSplit::push(std::string_view text) {
  held_ += text;
  Pieces pieces;
  while (!held_.empty() && advance(pieces)) {
  }
  return pieces;
}

ThinkSplit::Pieces ThinkSplit::finish() {
  Pieces pieces;
  (is_thinking() ? pieces.reasoning : pieces.content) = std::move(held_);
  held_.clear();
  return pieces;
}

bool ThinkSplit::advance(Pieces& pieces) {
  switch (state_) {
    case State::Undecided: return decide();
    case State::ThinkStart:
      drop_leading_newlines(held_);
      if (!held_.empty()) state_ = State::Thinking;
      return !held_.empty();
    case State::Thinking: return think(pieces);
    case State::ContentStart:
      drop_leading_newlines(held_);
      if (!held_.empty()) state_ = State::Content;
      return !held_.empty();
    case State::Content:
      pieces.content += held_;
      held_.clear();
      return false;
  }
  return false;
}

bool ThinkSplit::decide() {
  const std::size_t begin = std::min(held_.find_first_not_of(kSpace), held_.size());
  const std::string_view rest = std::string_view(held_).substr(begin);
  if (rest.size() < kOpen.size() && kOpen.starts_with(rest)) return false;
  if (rest.starts_with(kOpen)) {
    held_.erase(0, begin + kOpen.size());
    state_ = State::ThinkStart;
  } else {
    state_ = State::Content;
  }
  return true;
}

bool ThinkSplit::think(Pieces& pieces) {
  const std::size_t close = held_.find(kClose);
  if (close == std::string::npos) {
    // Newlines wait too: they go if the tag follows them.
    std::size_t ready = held_.size() - begun_bytes(held_, kClose);
    while (ready > 0 && held_[ready - 1] == '\n') --ready;
    pieces.reasoning += held_.substr(0, ready);
    held_.erase(0, ready);
    return false;
  }
  std::size_t end = close;
  while (end > 0 && held_[end - 1] == '\n') --end;
  pieces.reasoning += held_.substr(0, end);
  held_.erase(0, close + kClose.size());
  state_ = State::ContentStart;
  return true;
}

bool ends_inside_think(const MarkedText& prompt) {
  const std::size_t last = prompt.text.find_last_not_of(kSpace);
  if (last == std::string::npos) return false;
  const std::size_t end = last + 1;
  if (!std::string_view(prompt.text).substr(0, end).ends_with(kOpen)) return false;
  const std::size_t begin = end - kOpen.size();
  return std::none_of(prompt.untrusted.begin(), prompt.untrusted.end(),
                      [&](const ByteRange& range) { return range.begin < end && begin < range.end; });
}

}  // namespace rondo
