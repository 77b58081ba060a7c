#include "base/check.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

TEST(Check, AKeptPromiseIsEvaluatedOnceAndCostsNothingElse) {
  int looked = 0;
  CHECK(++looked > 0);
  EXPECT_EQ(looked, 1);
}

TEST(CheckDeathTest, ABrokenPromiseEndsTheProcessWithThePlaceAndTheCondition) {
  const int rows = 3;
  EXPECT_DEATH(CHECK(rows == 4), "broken promise at .*check_test\\.cpp:[0-9]+: rows == 4");
}

TEST(Check, FitsAnIfWithoutBraces) {
  bool other_branch = false;
  if (other_branch)
    CHECK(false);
  else
    other_branch = true;
  EXPECT_TRUE(other_branch);
}

#ifdef NDEBUG
TEST(Check, ADebugCheckIsNotEvenEvaluatedInAReleaseBuild) {
  int looked = 0;
  DCHECK(++looked > 100);
  EXPECT_EQ(looked, 0);
}
#else
TEST(CheckDeathTest, ADebugCheckHoldsInADebugBuild) { EXPECT_DEATH(DCHECK(1 > 2), "1 > 2"); }
#endif

}  // namespace
}  // namespace rondo
