#include <cmath>

#include "ops/attention/attention.h"
#include "tests/ops/arrays.h"
#include "tests/ops/compare.h"

namespace rondo {
namespace {

TEST(RopeTable, HoldsCosAndSinOfPositionTimesFrequency) {
  const Array table = Array::f32({3000, 2, 32});
  fill_rope_table({.theta = 1e7, .rotary_dim = 64, .yarn_factor = 1, .original_context = 0}, table);
  for (const int pos : {0, 1, 2, 77, 2999}) {
    for (int i = 0; i < 32; ++i) {
      // An angle of thousands is a float32, as the reference has it: so is its error.
      const double angle = pos * std::pow(1e7, -2.0 * i / 64), slack = 1e-6 + angle * 2e-7;
      EXPECT_NEAR(table.row(pos)[i], std::cos(angle), slack) << pos << ", " << i;
      EXPECT_NEAR(table.row(pos)[32 + i], std::sin(angle), slack) << pos << ", " << i;
    }
  }
}

TEST(RopeTable, OfYarnKeepsFastFrequenciesAndDividesSlowOnes) {
  const int context = 262144;
  const Array plain = Array::f32({2, 2, 32}), yarn = Array::f32({2, 2, 32});
  fill_rope_table({1e7, 64, 1, context}, plain);
  fill_rope_table({1e7, 64, 4, context}, yarn);
  const double magnitude = 0.1 * std::log(4.0) + 1;
  EXPECT_NEAR(yarn.row(0)[0], magnitude, 1e-6);
  int kept = 0, divided = 0;
  for (int i = 0; i < 32; ++i) {
    const double frequency = std::pow(1e7, -2.0 * i / 64), turns = context * frequency / (2 * M_PI);
    const double got = std::atan2(yarn.row(1)[32 + i], yarn.row(1)[i]);
    EXPECT_NEAR(std::hypot(yarn.row(1)[i], yarn.row(1)[32 + i]), magnitude, 1e-6);
    // The ramp begins and ends at whole indices, so those next to a bound may be on it.
    if (turns > 32 * 2) {
      EXPECT_NEAR(got, frequency, 1e-6 * frequency + 1e-7) << i;
      ++kept;
    }
    if (turns < 0.5) {
      EXPECT_NEAR(got, frequency / 4, 1e-6 * frequency) << i;
      ++divided;
    }
    EXPECT_LE(got, frequency * (1 + 1e-6));
    EXPECT_GE(got, frequency / 4 * (1 - 1e-6));
  }
  EXPECT_GT(kept, 10);
  EXPECT_GT(divided, 2);
}

}  // namespace
}  // namespace rondo
