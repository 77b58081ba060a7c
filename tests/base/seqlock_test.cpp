#include "base/seqlock.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace rondo {
namespace {

#ifdef RONDO_FEWER_RUNS
constexpr std::uint64_t kLast = 20'000;
#else
constexpr std::uint64_t kLast = 1'000'000;  // some tens of milliseconds: readers and writer meet
#endif

// Every word of one value is the same number.
using Block = std::array<std::uint64_t, 40>;

Block block_of(std::uint64_t number) {
  Block block;
  block.fill(number);
  return block;
}

bool is_torn(const Block& block) { return block != block_of(block[0]); }

TEST(Seqlock, HoldsWhatWasStoredLast) {
  struct Odd {
    char letters[11];
    double number;
  };
  Seqlock<Odd> lock(Odd{"ten bytes.", 1.5});
  EXPECT_STREQ(lock.load().letters, "ten bytes.");
  lock.store(Odd{"others", -2});
  EXPECT_STREQ(lock.load().letters, "others");
  EXPECT_EQ(lock.load().number, -2);
}

TEST(Seqlock, ReadersSeeWholeValuesThatOnlyGoForward) {
  Seqlock<Block> lock(block_of(0));
  std::array<int, 2> torn{}, backward{};
  {
    std::vector<std::jthread> readers;
    for (std::size_t r = 0; r < torn.size(); ++r) {
      readers.emplace_back([&, r] {
        for (std::uint64_t seen = 0; seen < kLast;) {
          const Block block = lock.load();
          torn[r] += is_torn(block);
          backward[r] += block[0] < seen;
          seen = block[0];
        }
      });
    }
    for (std::uint64_t number = 1; number <= kLast; ++number) lock.store(block_of(number));
  }
  for (std::size_t r = 0; r < torn.size(); ++r) {
    EXPECT_EQ(torn[r], 0);
    EXPECT_EQ(backward[r], 0);
  }
}

// Planted control: what a reader would see of a store half done.
TEST(Seqlock, ATornValueIsSeen) {
  Block block = block_of(7);
  block.back() = 8;
  EXPECT_TRUE(is_torn(block));
}

}  // namespace
}  // namespace rondo
