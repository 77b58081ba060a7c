// bfloat16 and IEEE half against oracles that share no bit trick with the code: distances in double, and the compiler.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/tensor.h"

namespace rondo {
namespace {

// The value of a bfloat16, from its fields.
double value_of(std::uint16_t bits) {
  const int exponent = (bits >> 7) & 0xFF;
  const int mantissa = bits & 0x7F;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -133) : std::ldexp(128 + mantissa, exponent - 134);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// To nearest by distance, ties to the even mantissa; past the largest finite value, 2^128 stands for infinity.
std::uint16_t nearest_bfloat16(float value) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double to_below = std::abs(static_cast<double>(value) - value_of(below));
  const double to_above = std::abs(value_of(above) - static_cast<double>(value));
  if (to_below != to_above) return to_below < to_above ? below : above;
  return (below & 1) == 0 ? below : above;
}

TEST(BFloat16, ReadsEveryPatternAsItsFieldsSay) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float read = to_float({static_cast<std::uint16_t>(bits)});
    if ((bits & 0x7FFF) > 0x7F80) {
      EXPECT_TRUE(std::isnan(read)) << bits;
    } else if ((bits & 0x7FFF) == 0x7F80) {
      EXPECT_EQ(read, (bits & 0x8000) != 0 ? -INFINITY : INFINITY);
    } else {
      EXPECT_EQ(static_cast<double>(read), value_of(static_cast<std::uint16_t>(bits))) << bits;
      EXPECT_EQ(std::signbit(read), (bits & 0x8000) != 0) << bits;
    }
  }
}

TEST(BFloat16, RoundsToNearestWithTiesToEvenForEveryUpperHalf) {
  for (std::uint32_t upper = 0; upper <= 0xFFFF; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const auto value = std::bit_cast<float>((upper << 16) | lower);
      const std::uint16_t rounded = to_bfloat16(value).bits;
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(to_float({rounded}))) << upper << ' ' << lower;
      } else if (std::isinf(value)) {
        ASSERT_EQ(rounded, upper);
      } else {
        ASSERT_EQ(rounded, nearest_bfloat16(value)) << upper << ' ' << lower;
      }
    }
  }
}

// Planted control: the inputs must tell rounding from cutting off, and ties to even from ties away.
TEST(BFloat16, CuttingOffAndTiesAwayFromZeroWouldBeSeen) {
  int cut_differs = 0;
  int away_differs = 0;
  for (std::uint32_t upper = 0; upper < 0x7F80; ++upper) {
    const std::uint16_t tie = nearest_bfloat16(std::bit_cast<float>((upper << 16) | 0x8000u));
    cut_differs += tie != upper ? 1 : 0;
    away_differs += tie != upper + 1 ? 1 : 0;
  }
  EXPECT_EQ(cut_differs, 0x7F80 / 2);
  EXPECT_EQ(away_differs, 0x7F80 / 2);
}

TEST(BFloat16, ANumberItHoldsComesBackUnchanged) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const BFloat16 stored{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(stored))) continue;
    EXPECT_EQ(to_bfloat16(to_float(stored)).bits, bits);
  }
}

#if defined(__FLT16_MAX__) && defined(__GNUC__) && !defined(__clang__)  // the compiler's own half is the oracle
TEST(Half, EveryPatternReadsAsTheCompilerReadsIt) {
  for (std::uint32_t pattern = 0; pattern <= 0xFFFF; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    _Float16 half;
    std::memcpy(&half, &bits, sizeof half);
    const auto expected = static_cast<float>(half);
    const float read = half_to_float(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(read)) << pattern;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(read), std::bit_cast<std::uint32_t>(expected)) << pattern;
    }
  }
}
#endif

TEST(Half, ReadsItsLandmarks) {
  EXPECT_EQ(half_to_float(0x3C00), 1.0F);
  EXPECT_EQ(half_to_float(0xC000), -2.0F);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(half_to_float(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(half_to_float(0x7C00), INFINITY);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
}

}  // namespace
}  // namespace rondo
