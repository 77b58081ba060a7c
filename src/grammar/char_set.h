// CharSet: a set of Unicode code points as ascending ranges that neither overlap nor touch. Surrogates, which UTF-8
// cannot write, are never in it.
#pragma once

#include <vector>

namespace rondo::grammar {

struct CharRange {
  char32_t low, high;  // both included
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  CharSet(char32_t low, char32_t high) { add(low, high); }
  static CharSet all() { return {0, 0x10FFFF}; }

  void add(char32_t low, char32_t high);
  void add(const CharSet& other);
  CharSet inverted() const;
  CharSet without(const CharSet& other) const;
  CharSet within(const CharSet& other) const { return without(other.inverted()); }
  bool contains(char32_t code_point) const;
  const std::vector<CharRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }

 private:
  void add_range(CharRange added);
  std::vector<CharRange> ranges_;
};

}  // namespace rondo::grammar
