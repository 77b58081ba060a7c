#include "engine/grammar_rule.h"

#include <algorithm>

#include "base/check.h"

namespace rondo {

GrammarRule::GrammarRule(std::shared_ptr<const grammar::Grammar> grammar,
                         std::shared_ptr<const grammar::Vocabulary> vocabulary, std::vector<std::int32_t> end_ids,
                         std::optional<std::int32_t> thought_end_id)
    : matcher_(std::move(grammar), std::move(vocabulary)),
      end_ids_(std::move(end_ids)),
      thought_end_id_(thought_end_id),
      is_thinking_(thought_end_id.has_value()) {
  CHECK(!end_ids_.empty());
}

void GrammarRule::reserve(int most_drafts) {
  matcher_.reserve(most_drafts, is_thinking_ ? grammar::Matcher::Start::AfterThought : grammar::Matcher::Start::Here);
}

bool GrammarRule::ends(std::int32_t token) const {
  return std::find(end_ids_.begin(), end_ids_.end(), token) != end_ids_.end();
}

void GrammarRule::allow_ends(std::span<std::uint32_t> mask) const {
  for (const std::int32_t id : end_ids_) {
    const auto word = static_cast<std::size_t>(id) / 32;
    if (word < mask.size()) mask[word] |= 1U << (id % 32);
  }
}

void GrammarRule::allow_after(std::span<const std::int32_t> drafts, std::span<std::uint32_t> mask) {
  if (is_over_ || std::any_of(drafts.begin(), drafts.end(), [&](std::int32_t id) { return ends(id); })) {
    return allow_ends(mask);  // what comes after an end is never shown
  }
  if (is_thinking_) {
    const auto thought_end = std::find(drafts.begin(), drafts.end(), *thought_end_id_);
    if (thought_end == drafts.end()) {
      std::fill(mask.begin(), mask.end(), ~0U);
      for (const std::int32_t id : end_ids_) {
        const auto word = static_cast<std::size_t>(id) / 32;
        if (word < mask.size()) mask[word] &= ~(1U << (id % 32));
      }
      return;
    }
    drafts = drafts.subspan(static_cast<std::size_t>(thought_end - drafts.begin()) + 1);
  }
  const grammar::Matcher::Place& place = matcher_.after(drafts);
  matcher_.allow(place, mask);
  if (matcher_.is_complete(place) || matcher_.is_dead(place)) allow_ends(mask);
}

void GrammarRule::accept(std::int32_t token) {
  if (is_over_) return;
  if (is_thinking_) {
    is_thinking_ = token != *thought_end_id_;
  } else if (ends(token)) {
    is_over_ = true;
  } else {
    matcher_.accept(token);
  }
}

}  // namespace rondo
