#include "ckpt/checkpoint.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

class AllFixtures : public testing::TestWithParam<std::string> {};

TEST_P(AllFixtures, OpenWithoutAProblem) {
  const auto checkpoint = Checkpoint::inspect(GetParam());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  for (const Problem& problem : checkpoint->problems()) ADD_FAILURE() << problem.file << ": " << problem.message;
  EXPECT_TRUE(checkpoint->has_mtp());
}

INSTANTIATE_TEST_SUITE_P(Folders, AllFixtures,
                         testing::Values(RONDO_FIXTURES "/qwen3_next", RONDO_FIXTURES "/qwen3_5",
                                         RONDO_FIXTURES "/qwen3_5_moe", RONDO_FIXTURES "/qwen4_exp",
                                         RONDO_BUNDLED_MODEL));

TEST(Synthetic, X) {
  const auto s = make_synthetic("qwen3.5-0.8b", 1);
  ASSERT_TRUE(s);
}

}  // namespace
}  // namespace rondo
