#include "grammar/char_set.h"

#include <algorithm>

namespace rondo::grammar {

namespace {

constexpr char32_t kFirstSurrogate = 0xD800, kAfterSurrogates = 0xE000, kLast = 0x10FFFF;

}  // namespace

void CharSet::add(char32_t low, char32_t high) {
  high = std::min(high, kLast);
  if (low < kFirstSurrogate) add_range({low, std::min<char32_t>(high, kFirstSurrogate - 1)});
  add_range({std::max(low, kAfterSurrogates), high});
}

void CharSet::add_range(CharRange added) {
  if (added.low > added.high) return;
  std::vector<CharRange> merged;
  for (const CharRange& range : ranges_) {
    if (range.high + 1 < added.low) {
      merged.push_back(range);
    } else if (added.high + 1 < range.low) {
      merged.push_back(added);
      added = range;
    } else {
      added = {std::min(range.low, added.low), std::max(range.high, added.high)};
    }
  }
  merged.push_back(added);
  ranges_ = std::move(merged);
}

void CharSet::add(const CharSet& other) {
  for (const CharRange& range : other.ranges_) add_range(range);
}

CharSet CharSet::inverted() const {
  CharSet result;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.low > next) result.add(next, range.low - 1);
    next = range.high + 1;
  }
  if (next <= kLast) result.add(next, kLast);
  return result;
}

CharSet CharSet::without(const CharSet& other) const {
  CharSet left = inverted();
  left.add(other);
  return left.inverted();
}

bool CharSet::contains(char32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const CharRange& range) { return range.low <= code_point && code_point <= range.high; });
}

}  // namespace rondo::grammar
