// ReasoningCount: how many of a reply's tokens were reasoning: those up to </think>.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace rondo {

class ReasoningCount {
 public:
  explicit ReasoningCount(std::optional<std::int32_t> think_end_id) : think_end_id_(think_end_id) {}
  // is_reasoning: whether the split was thinking before or after the text that came with these ids.
  void add(std::span<const std::int32_t> ids, bool is_reasoning);
  int tokens() const { return tokens_; }

 private:
  std::optional<std::int32_t> think_end_id_;
  int tokens_ = 0;
  bool closed_ = false;
};

}  // namespace rondo
