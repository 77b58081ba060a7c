// Weights in every format: what decode() says is the formula of coded_view.h, and encode() chooses the nearest codes.
#include "tensor/encode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "tensor/small_floats.h"

namespace rondo {
namespace {

std::vector<float> some_values(std::int64_t n, float size) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) {
    values.push_back(size * static_cast<float>(2 * unit_interval(random_bits(3, static_cast<std::uint64_t>(i))) - 1));
  }
  return values;
}

std::vector<float> decoded(const Weight& weight) {
  std::vector<float> values(static_cast<std::size_t>(weight.shape.num_elements()));
  for (std::int64_t row = 0; row < weight.view.rows; ++row) {
    decode(weight.view, row, 0,
           std::span(values).subspan(static_cast<std::size_t>(row * weight.view.columns),
                                     static_cast<std::size_t>(weight.view.columns)));
  }
  return values;
}

const EncodeSpec kSpecs[] = {{.format = WeightFormat::Fp8, .block = 16},
                             {.format = WeightFormat::Fp8, .by_tensor = true},
                             {.format = WeightFormat::Nvfp4},
                             {.format = WeightFormat::Affine, .bits = 4},
                             {.format = WeightFormat::Affine, .bits = 6, .group = 32},
                             {.format = WeightFormat::Affine, .bits = 8, .group = 128}};

TEST(Encode, WhatItDecodesToEncodesToTheSameCodes) {
  for (const EncodeSpec& spec : kSpecs) {
    const EncodedWeight first = encode(some_values(20 * 128, 0.3F), 128, spec);
    const EncodedWeight second = encode(decoded(first.weight), 128, spec);
    // Affine scales are rounded to bfloat16, so a group's largest value may move; its codes may not move further.
    if (spec.format == WeightFormat::Affine) continue;
    EXPECT_EQ(first.codes, second.codes) << format_name(first.weight.view);
    EXPECT_EQ(first.scales, second.scales) << format_name(first.weight.view);
  }
}

TEST(Encode, LosesNoMoreThanHalfAStep) {
  const std::vector<float> values = some_values(20 * 128, 0.3F);
  for (const EncodeSpec& spec : kSpecs) {
    const std::vector<float> back = decoded(encode(values, 128, spec).weight);
    // Of the largest of a group, 0.3: half a step between the largest codes, and what rounding the scales adds.
    double most = 0;
    switch (spec.format) {
      case WeightFormat::Fp8: most = 0.3 * (16.0 / 448 + 0.004); break;
      case WeightFormat::Nvfp4: most = 0.3 * (1.0 / 6 + 0.0625); break;
      default: most = 0.6 * (0.5 / ((1 << spec.bits) - 1) + 0.004 + 0.002); break;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LT(std::abs(static_cast<double>(back[i]) - static_cast<double>(values[i])), most) << spec.bits << ' ' << i;
    }
  }
}

TEST(Encode, ZerosStayZeros) {
  const std::vector<float> zeros(4 * 128, 0.0F);
  for (const EncodeSpec& spec : kSpecs) EXPECT_EQ(decoded(encode(zeros, 128, spec).weight), zeros);
}

TEST(Weight, PacksSixBitCodesAsOneStreamOfBits) {
  // 0b111111 0b000001 0b100000 0b010101: lowest bits first.
  const std::uint8_t codes[24] = {0b01111111, 0b00000000, 0b01010110};
  const std::uint8_t one[4] = {0x80, 0x3F}, none[4] = {};
  const CodedView view{.format = WeightFormat::Affine,
                       .scale_type = ScaleType::Bf16,
                       .bits = 6,
                       .rows = 1,
                       .columns = 32,
                       .row_bytes = 24,
                       .codes = codes,
                       .scales = one,
                       .biases = none,
                       .scale_stride = 1,
                       .scale_columns = 32};
  float values[5];
  decode(view, 0, 0, values);
  EXPECT_EQ(values[0], 63);
  EXPECT_EQ(values[1], 1);
  EXPECT_EQ(values[2], 32 + 0);
  EXPECT_EQ(values[3], 21);
  EXPECT_EQ(values[4], 0);
}

TEST(Weight, HasTheEvenColumnInTheLowHalfOfAByte) {
  std::vector<float> values(16, 0.0F);
  values[0] = 6 * 448;  // the largest there is with a tensor_scale of 1
  values[1] = -3 * 448;
  const EncodedWeight coded = encode(values, 16, {.format = WeightFormat::Nvfp4});
  EXPECT_EQ(coded.codes[0], to_e2m1(6) | to_e2m1(-3) << 4);
  EXPECT_EQ(decoded(coded.weight), values);
}

TEST(Weight, ARangeOfRowsHasTheirScales) {
  for (const EncodeSpec& spec : kSpecs) {
    const EncodedWeight coded = encode(some_values(64 * 128, 0.3F), 128, spec);
    const std::vector<float> all = decoded(coded.weight), part = decoded(coded.weight.row_range(32, 16));
    EXPECT_EQ(part, std::vector<float>(all.begin() + 32 * 128, all.begin() + 48 * 128))
        << format_name(coded.weight.view);
  }
}

TEST(Weight, CountsTheBytesOfCodesAndScales) {
  const std::vector<float> values = some_values(64 * 128, 1);
  EXPECT_EQ(encode(values, 128, {.format = WeightFormat::Fp8, .block = 128}).weight.size_bytes(), 64u * 128 + 2);
  EXPECT_EQ(encode(values, 128, {.format = WeightFormat::Nvfp4}).weight.size_bytes(), 64u * 64 + 64 * 8);
  EXPECT_EQ(encode(values, 128, {.format = WeightFormat::Affine, .bits = 6}).weight.size_bytes(), 64u * 96 + 64 * 8);
}

}  // namespace
}  // namespace rondo
