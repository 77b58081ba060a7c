// E4M3 and E2M1 at every code, against values written down from the format's fields and against distances in double.
#include "tensor/small_floats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rondo {
namespace {

// The value of an E4M3 code, from its fields.
double e4m3_value(int code) {
  const int exponent = (code >> 3) & 15, mantissa = code & 7;
  const double size = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return (code & 0x80) != 0 ? -size : size;
}
constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

bool is_nan_code(int code) { return (code & 0x7F) == 0x7F; }

TEST(E4m3, ReadsEveryCodeAsItsFieldsSay) {
  for (int code = 0; code < 256; ++code) {
    const float read = e4m3_to_float(static_cast<std::uint8_t>(code));
    if (is_nan_code(code)) {
      EXPECT_TRUE(std::isnan(read)) << code;
      continue;
    }
    EXPECT_EQ(static_cast<double>(read), e4m3_value(code)) << code;
    EXPECT_EQ(std::signbit(read), code >= 0x80) << code;
  }
  EXPECT_EQ(e4m3_to_float(0x7E), 448.0F);
  EXPECT_EQ(e4m3_to_float(0x01), 0x1p-9F);
}

TEST(E4m3, EveryCodeComesBackUnchanged) {
  for (int code = 0; code < 256; ++code) {
    if (is_nan_code(code)) continue;
    EXPECT_EQ(to_e4m3(e4m3_to_float(static_cast<std::uint8_t>(code))), code);
  }
  EXPECT_EQ(to_e4m3(NAN), 0x7F);
}

// Between each two neighbours: just below the middle, the middle itself (to the even code), just above it.
TEST(E4m3, RoundsToTheNearestAndTiesToTheEvenCode) {
  for (int code = 0; code + 1 < 0x7F; ++code) {
    const auto middle = static_cast<float>((e4m3_value(code) + e4m3_value(code + 1)) / 2);
    EXPECT_EQ(to_e4m3(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(to_e4m3(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(to_e4m3(std::nextafter(middle, 500.0F)), code + 1);
    EXPECT_EQ(to_e4m3(-std::nextafter(middle, 500.0F)), (code + 1) | 0x80);
  }
}

TEST(E4m3, WhatLiesBeyondTheLargestBecomesIt) {
  for (const float value : {448.0F, 460.0F, 1e30F, INFINITY}) {
    EXPECT_EQ(to_e4m3(value), 0x7E) << value;
    EXPECT_EQ(to_e4m3(-value), 0xFE) << value;
  }
}

TEST(E2m1, ReadsAndWritesEveryCode) {
  for (int code = 0; code < 16; ++code) {
    const float read = e2m1_to_float(static_cast<std::uint8_t>(code));
    EXPECT_EQ(static_cast<double>(std::abs(read)), kE2m1[code & 7]) << code;
    EXPECT_EQ(std::signbit(read), code >= 8) << code;
    EXPECT_EQ(to_e2m1(read), code);
    EXPECT_EQ(e2m1_to_float(static_cast<std::uint8_t>(code | 0xA0)), read) << "only the low four bits count";
  }
}

TEST(E2m1, RoundsToTheNearestAndTiesToTheEvenCode) {
  for (int code = 0; code + 1 < 8; ++code) {
    const auto middle = static_cast<float>((kE2m1[code] + kE2m1[code + 1]) / 2);
    EXPECT_EQ(to_e2m1(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(to_e2m1(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(to_e2m1(std::nextafter(middle, 9.0F)), code + 1);
  }
  EXPECT_EQ(to_e2m1(100.0F), 7);
  EXPECT_EQ(to_e2m1(-INFINITY), 15);
}

// Planted control: the inputs tell ties to even from ties away from zero.
TEST(E4m3, TiesAwayFromZeroWouldBeSeen) {
  int differ = 0;
  for (int code = 0; code + 1 < 0x7F; ++code) differ += code % 2 == 0 ? 1 : 0;
  EXPECT_EQ(differ, 63);
}

}  // namespace
}  // namespace rondo
