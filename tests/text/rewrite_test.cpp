#include "text/rewrite.h"

#include <gtest/gtest.h>

#include <random>

namespace rondo {
namespace {

std::vector<ByteRange> ranges_of(const std::vector<bool>& marks) {
  std::vector<ByteRange> ranges;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!marks[i]) continue;
    if (ranges.empty() || ranges.back().end != i) ranges.push_back({i, i});
    ranges.back().end = i + 1;
  }
  return ranges;
}

// Byte by byte: kept bytes keep their mark, a replacement is marked when any byte that it replaces was.
TEST(Rewrite, MovesMarksAsTheirBytesMove) {
  std::mt19937 random(31);
  for (int round = 0; round < 20000; ++round) {
    const std::size_t size = random() % 20;
    const std::string before(size, '.');
    std::vector<bool> marks(size);
    for (std::size_t i = 0; i < size; ++i) marks[i] = random() % 2;
    Rewrite rewrite(before);
    std::string after;
    std::vector<bool> expected;
    for (std::size_t pos = 0; pos < size;) {
      const std::size_t end = std::min<std::size_t>(size, pos + 1 + random() % 3);
      if (random() % 2) {
        after += before[pos];
        expected.push_back(marks[pos++]);
        continue;
      }
      const std::string replacement(random() % 4, 'x');
      rewrite.replace({pos, end}, replacement);
      bool marked = false;
      for (; pos < end; ++pos) marked = marked || marks[pos];
      after += replacement;
      expected.insert(expected.end(), replacement.size(), marked);
    }
    ASSERT_EQ(rewrite.finish(), after);
    ASSERT_EQ(rewrite.moved(ranges_of(marks)), ranges_of(expected));
  }
}

TEST(Rewrite, AWindowSeesItsPartOfTheRanges) {
  const std::vector<ByteRange> ranges = {{1, 3}, {5, 9}, {12, 13}};
  EXPECT_EQ(ranges_within(ranges, {2, 8}), (std::vector<ByteRange>{{0, 1}, {3, 6}}));
  EXPECT_EQ(ranges_within(ranges, {3, 5}), std::vector<ByteRange>());
  EXPECT_EQ(ranges_within(ranges, {0, 20}), ranges);
}

}  // namespace
}  // namespace rondo
