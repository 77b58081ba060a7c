// The block pool against a model of it: whatever is acquired and released, in any order, no block has two owners and
// none is lost.

#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace rondo {
namespace {

TEST(BlockPool, GivesAllOrNothing) {
  BlockPool pool(3);
  std::vector<std::int32_t> blocks = {77};
  EXPECT_FALSE(pool.acquire(4, blocks));
  EXPECT_EQ(blocks, std::vector<std::int32_t>{77});
  EXPECT_EQ(pool.num_blank(), 3);
  EXPECT_TRUE(pool.acquire(3, blocks));
  EXPECT_EQ(blocks, (std::vector<std::int32_t>{77, 0, 1, 2}));
  EXPECT_FALSE(pool.acquire(1, blocks));
  EXPECT_TRUE(pool.acquire(0, blocks));
}

TEST(BlockPool, NoBlockEverHasTwoOwnersAndNoneIsLost) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int total = static_cast<int>(random() % 20);
    BlockPool pool(total);
    std::vector<std::vector<std::int32_t>> owners;
    for (int step = 0; step < 200; ++step) {
      if (random() % 2 == 0) {
        std::vector<std::int32_t> blocks;
        const int wanted = static_cast<int>(random() % 6), blank = pool.num_blank();
        ASSERT_EQ(pool.acquire(wanted, blocks), wanted <= blank);
        ASSERT_EQ(static_cast<int>(blocks.size()), wanted <= blank ? wanted : 0);
        owners.push_back(blocks);
      } else if (!owners.empty()) {
        std::swap(owners[random() % owners.size()], owners.back());
        pool.release(owners.back());
        owners.pop_back();
      }
      std::set<std::int32_t> held;
      std::size_t num_held = 0;
      for (const auto& blocks : owners) {
        held.insert(blocks.begin(), blocks.end());
        num_held += blocks.size();
      }
      ASSERT_EQ(held.size(), num_held) << "a block with two owners, seed " << seed;
      ASSERT_TRUE(held.empty() || (*held.begin() >= 0 && *held.rbegin() < total));
      ASSERT_EQ(pool.num_blank() + static_cast<int>(num_held), total) << "a block is lost, seed " << seed;
      ASSERT_TRUE(pool.invariants_hold());
    }
  }
}

TEST(BlockPoolDeathTest, ABlockReleasedTwiceEndsTheProcess) {
  BlockPool pool(2);
  std::vector<std::int32_t> blocks;
  ASSERT_TRUE(pool.acquire(1, blocks));
  pool.release(blocks);
  EXPECT_DEATH(pool.release(blocks), "holders_");
}

}  // namespace
}  // namespace rondo
