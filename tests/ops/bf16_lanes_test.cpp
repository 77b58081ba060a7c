// The GPU's decoding of weights, as the host runs it: every code of every format against the definition. What only a
// GPU shows, that its instructions have these values, is WeightOn's and WeightRowsOn's part (weight_test.cpp).
#include "ops/weight/bf16_lanes.h"

#include <gtest/gtest.h>

#include <array>

#include "tensor/encode.h"
#include "tensor/small_floats.h"
#include "tests/ops/arrays.h"

namespace rondo {
namespace {

using bf16_lanes::Eight;

std::array<std::uint16_t, 8> halves(const Eight& eight) {
  std::array<std::uint16_t, 8> out{};
  const std::uint32_t words[] = {eight.x, eight.y, eight.z, eight.w};
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)));
  return out;
}

bool is_nan(std::uint16_t bits) { return (bits & 0x7FFFu) > 0x7F80u; }

testing::AssertionResult same(std::uint16_t got, float want_value) {
  const std::uint16_t want = to_bfloat16(want_value).bits;
  if (got == want || (is_nan(got) && is_nan(want))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << std::hex << got << ", not " << want << " = " << want_value;
}

TEST(Bf16Lanes, EveryE4m3CodeInEveryPlaceIsItsValue) {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = e4m3_to_float(static_cast<std::uint8_t>(code));
    for (unsigned place = 0; place < 8; ++place) {
      const std::uint64_t codes = (0x3801C27E0033F155u & ~(0xFFull << 8 * place)) | std::uint64_t{code} << 8 * place;
      const auto first = static_cast<std::uint32_t>(codes), second = static_cast<std::uint32_t>(codes >> 32);
      ASSERT_TRUE(same(halves(bf16_lanes::fp8_eight(first, second))[place], value)) << code;
      for (const float scale : {0.37F, -1.9e-3F, 3.0e7F, 1.0F, 0.0F, 1.00390625F, 7.7e-38F}) {
        ASSERT_TRUE(same(halves(bf16_lanes::fp8_eight(first, second, scale))[place], value * scale)) << code;
      }
    }
  }
}

TEST(Bf16Lanes, EveryE2m1CodeWithEveryScaleInEveryPlaceIsTheirProduct) {
  for (unsigned scale = 0; scale < 256; ++scale) {
    // Either of two scales; what stands above those is ignored.
    const std::uint32_t pair = bf16_lanes::nvfp4_scales(scale % 2 == 0 ? scale | 0xA55100u : scale << 8 | 0xA50051u);
    const std::uint32_t lanes = bf16_lanes::nvfp4_scale(pair, static_cast<int>(scale % 2));
    for (unsigned code = 0; code < 16; ++code) {
      const float value =
          e2m1_to_float(static_cast<std::uint8_t>(code)) * e4m3_to_float(static_cast<std::uint8_t>(scale));
      for (unsigned place = 0; place < 8; ++place) {
        const std::uint32_t codes = (0x5E0F39A7u & ~(15u << 4 * place)) | code << 4 * place;
        ASSERT_TRUE(same(halves(bf16_lanes::nvfp4_eight(codes, lanes))[place], value / bf16_lanes::kNvfp4Factor))
            << code << " x " << scale << " at " << place;
        const unsigned crossed = place % 4 == 1 || place % 4 == 2 ? place ^ 3 : place;
        ASSERT_TRUE(
            same(halves(bf16_lanes::nvfp4_eight_crossed(codes, lanes))[crossed], value / bf16_lanes::kNvfp4Factor))
            << code << " x " << scale << " at " << place << ", crossed";
        if (!std::isnan(value)) {
          EXPECT_EQ(to_float(to_bfloat16(value)), value);  // no rounding anywhere
        }
      }
    }
  }
}

template <int Bits>
void expect_affine() {
  for (unsigned code = 0; code < 1u << Bits; ++code) {
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      const float scale = to_float(to_bfloat16(random_value(1, seed, Values::Wild)));
      const float bias = to_float(to_bfloat16(random_value(2, seed, Values::Wild)));
      const unsigned place = (code + static_cast<unsigned>(seed)) % 8;
      constexpr std::uint64_t kMask = (std::uint64_t{1} << Bits) - 1;
      const std::uint64_t codes = (0x3801C27E0033F155u & ~(kMask << Bits * place)) | std::uint64_t{code}
                                                                                         << Bits * place;
      const auto got = bf16_lanes::affine_eight<Bits>(static_cast<std::uint32_t>(codes),
                                                      static_cast<std::uint32_t>(codes >> 32), scale, bias);
      ASSERT_TRUE(same(halves(got)[place], std::fma(static_cast<float>(code), scale, bias))) << code << ", " << Bits;
    }
  }
}
TEST(Bf16Lanes, EveryAffineCodeIsItsValueRoundedOnceMore) {
  expect_affine<4>();
  expect_affine<6>();
  expect_affine<8>();
}

TEST(Bf16Lanes, EveryHalfIsItsValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float want = half_to_float(static_cast<std::uint16_t>(bits)), got = bf16_lanes::half_value(bits);
    ASSERT_TRUE(std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want) ||
                (std::isnan(got) && std::isnan(want)))
        << bits;
  }
}

// One weight at a time, in every format, against decode().
TEST(Bf16Lanes, AnyWeightIsTheDefinitions) {
  const EncodeSpec specs[] = {{.format = WeightFormat::Fp8, .block = 24},
                              {.format = WeightFormat::Fp8, .by_tensor = true},
                              {.format = WeightFormat::Nvfp4},
                              {.format = WeightFormat::Affine, .bits = 4, .group = 64},
                              {.format = WeightFormat::Affine, .bits = 6, .group = 32},
                              {.format = WeightFormat::Affine, .bits = 8, .group = 128}};
  for (const EncodeSpec& spec : specs) {
    const EncodedWeight weight = encode(random_f32({30, 640}, 7, Values::Wild).to_vector(), 640, spec);
    CodedView plain = weight.weight.view;
    plain.tensor_scale = 1;
    std::vector<float> want(640), untensored(640);
    for (std::int64_t row = 0; row < 30; ++row) {
      decode(weight.weight.view, row, 0, want);
      decode(plain, row, 0, untensored);
      for (std::int64_t k = 0; k < 640; ++k) {
        const auto i = static_cast<std::size_t>(k);
        ASSERT_EQ(bf16_lanes::value_at(weight.weight.view, row, k), want[i]) << format_name(plain);
        ASSERT_EQ(bf16_lanes::untensored_value(plain, row, k), untensored[i]) << format_name(plain);
      }
    }
  }
}

// Planted control: codes of neighbouring columns exchanged are seen.
TEST(Bf16Lanes, ANeighboursCodeIsSeen) {
  const auto got =
      halves(bf16_lanes::nvfp4_eight(0x76543210u, bf16_lanes::nvfp4_scale(bf16_lanes::nvfp4_scales(0x38), 0)));
  EXPECT_FALSE(same(got[1], e2m1_to_float(2) / bf16_lanes::kNvfp4Factor));
  EXPECT_TRUE(same(got[2], e2m1_to_float(2) / bf16_lanes::kNvfp4Factor));
}

}  // namespace
}  // namespace rondo
