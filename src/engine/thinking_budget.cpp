#include "engine/thinking_budget.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rondo {

ThinkingBudget::ThinkingBudget(int budget_tokens, std::vector<std::int32_t> closing, std::int32_t end_id,
                               std::shared_ptr<TokenRule> other)
    : budget_tokens_(budget_tokens), closing_(std::move(closing)), end_id_(end_id), other_(std::move(other)) {
  CHECK(budget_tokens >= 0 && !closing_.empty() && closing_.back() == end_id);
}

void ThinkingBudget::reserve(int most_drafts) {
  if (other_ != nullptr) other_->reserve(most_drafts);
}

void ThinkingBudget::step(Thought& thought, std::int32_t token) const {
  if (thought.is_closed) return;
  ++thought.num_tokens;
  thought.is_closed = token == end_id_;
}

void ThinkingBudget::allow_after(std::span<const std::int32_t> drafts, std::span<std::uint32_t> mask) {
  Thought thought = thought_;
  for (const std::int32_t draft : drafts) step(thought, draft);
  if (thought.is_closed || thought.num_tokens < budget_tokens_) {
    if (other_ != nullptr) return other_->allow_after(drafts, mask);
    return std::fill(mask.begin(), mask.end(), ~0u);
  }
  const std::int32_t forced = closing_[static_cast<std::size_t>(thought.num_tokens - budget_tokens_)];
  mask[static_cast<std::size_t>(forced / 32)] = 1u << (forced % 32);
}

void ThinkingBudget::accept(std::int32_t token) {
  step(thought_, token);
  if (other_ != nullptr) other_->accept(token);
}

}  // namespace rondo
