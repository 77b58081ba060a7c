#include "engine/stop_matcher.h"

#include <algorithm>

namespace rondo {

namespace {

constexpr std::size_t kPieceRoom = 1024;  // bytes of one token's text: a few, and a rare one a few hundred

}  // namespace

std::size_t begun_bytes(std::string_view text, std::string_view mark) {
  for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (text.ends_with(mark.substr(0, n))) return n;
  }
  return 0;
}

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
  std::size_t longest = 0;
  for (const std::string& stop : stops_) longest = std::max(longest, stop.size());
  held_.reserve(longest + kPieceRoom);
}

void StopMatcher::push(std::string_view piece, std::string& shown) {
  if (found_) return;
  held_ += piece;
  std::size_t first = std::string::npos, hold = 0;
  const std::string* which = nullptr;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (at < first) {
      first = at;
      which = &stop;
    }
    hold = std::max(hold, begun_bytes(held_, stop));
  }
  if (which != nullptr) {
    shown += std::string_view(held_).substr(0, first);
    found_ = *which;
    held_.clear();
    return;
  }
  shown += std::string_view(held_).substr(0, held_.size() - hold);
  held_.erase(0, held_.size() - hold);
}

void StopMatcher::finish(std::string& shown) {
  shown += held_;
  held_.clear();
}

}  // namespace rondo
