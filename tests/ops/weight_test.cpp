// Weights in every format through the ops that read them: decoded to the definition's bits, multiplied to the bits that
// the same weights give as float32 or bfloat16, and rows that keep theirs.
#include <cmath>
#include <cstring>

#include "ops/linear/linear.h"
#include "ops/ngram/ngram.h"
#include "ops/pointwise/pointwise.h"
#include "ops/weight/decode_kernel.h"
#include "tensor/encode.h"
#include "tests/ops/row_law.h"

namespace rondo {
namespace {

RONDO_ON_KERNELS(WeightOn);
RONDO_ON_ALL(WeightRowsOn);

const EncodeSpec kSpecs[] = {{.format = WeightFormat::Fp8, .block = 128},
                             {.format = WeightFormat::Fp8, .block = 24},
                             {.format = WeightFormat::Fp8, .by_tensor = true},
                             {.format = WeightFormat::Nvfp4},
                             {.format = WeightFormat::Affine, .bits = 4, .group = 64},
                             {.format = WeightFormat::Affine, .bits = 6, .group = 32},
                             {.format = WeightFormat::Affine, .bits = 8, .group = 128}};

EncodedWeight coded(std::int64_t rows, std::int64_t columns, const EncodeSpec& spec, Values values = Values::Even) {
  return encode(random_f32({rows, columns}, 7, values).to_vector(), columns, spec);
}

Array decoded(const Weight& weight) {
  Array out = Array::f32({weight.view.rows, weight.view.columns});
  for (std::int64_t row = 0; row < weight.view.rows; ++row) {
    decode(weight.view, row, 0, std::span(out.row(row), static_cast<std::size_t>(weight.view.columns)));
  }
  return out;
}

// As decode() has it, by the kernels: in pieces, as ops ask for them.
Array kernel_decoded(Isa isa, const CodedView& view) {
  Array out = Array::f32({view.rows, view.columns});
  const auto kernel = RONDO_PICK(isa, decode_columns);
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t k = 0; k < view.columns; k += kDecodeColumns) {
      kernel(view, row, k, static_cast<int>(std::min<std::int64_t>(kDecodeColumns, view.columns - k)),
             out.row(row) + k);
    }
  }
  return out;
}

TEST_P(WeightOn, DecodesToTheBitsOfTheDefinition) {
  for (const EncodeSpec& spec : kSpecs) {
    for (const std::int64_t columns : {128, 640, 1152, 64, 16, 7, 531}) {
      if (!can_encode(spec, columns)) continue;
      const EncodedWeight weight = coded(30, columns, spec, Values::Wild);
      EXPECT_TRUE(same_bits(kernel_decoded(GetParam(), weight.weight.view), decoded(weight.weight)))
          << format_name(weight.weight.view) << ", " << columns;
    }
  }
}

// All 256 bytes as codes, with scales of every type; NaN codes are NaN on both sides.
TEST_P(WeightOn, DecodesEveryCodeWithEveryTypeOfScale) {
  std::vector<std::uint8_t> codes(256 * 3);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 5 + i / 256);
  const float f32[] = {0.37F, -1.9e-3F, 3.0e7F, 1.0F}, biases32[] = {-0.11F, 2.0e-7F, 5.0F, 0.0F};
  const std::uint16_t u16[] = {0x3C01, 0xB123, 0x0003, 0x4200}, biases16[] = {0xBC01, 0x3123, 0x8003, 0x0000};
  const std::uint8_t e4m3[] = {0x38, 0x01, 0x7E, 0xC3};
  const auto check = [&](CodedView view) {
    view.codes = codes.data();
    Array want = decoded(Weight({view.rows, view.columns}, view)), got = kernel_decoded(GetParam(), view);
    for (std::int64_t i = 0; i < want.num_elements(); ++i) {
      if (std::isnan(want.f32()[i]) && std::isnan(got.f32()[i])) want.f32()[i] = got.f32()[i] = 0;
    }
    EXPECT_TRUE(same_bits(got, want)) << format_name(view) << ", scale type " << static_cast<int>(view.scale_type);
  };
  struct Scales {
    ScaleType type;
    const void *scales, *biases;
  };
  for (const Scales& each : {Scales{ScaleType::F32, f32, biases32}, Scales{ScaleType::F16, u16, biases16},
                             Scales{ScaleType::Bf16, u16, biases16}}) {
    const auto* scales = static_cast<const std::uint8_t*>(each.scales);
    const auto* biases = static_cast<const std::uint8_t*>(each.biases);
    check({.format = WeightFormat::Fp8,
           .scale_type = each.type,
           .bits = 8,
           .rows = 2,
           .columns = 256,
           .row_bytes = 256,
           .scales = scales,
           .scale_stride = 2,
           .scale_columns = 128});
    for (const int bits : {4, 6, 8}) {
      check({.format = WeightFormat::Affine,
             .scale_type = each.type,
             .bits = static_cast<std::uint8_t>(bits),
             .rows = 1,
             .columns = 512,
             .row_bytes = 64 * bits,
             .scales = scales,
             .biases = biases,
             .scale_stride = 4,
             .scale_columns = 128});
    }
  }
  check({.format = WeightFormat::Nvfp4,
         .scale_type = ScaleType::E4m3,
         .bits = 4,
         .rows = 2,
         .columns = 32,
         .row_bytes = 16,
         .scales = e4m3,
         .scale_stride = 2,
         .scale_columns = 16,
         .tensor_scale = 0.0123F});
  check({.format = WeightFormat::Fp8, .bits = 8, .rows = 3, .columns = 256, .row_bytes = 256, .tensor_scale = -0.7F});
  check({.format = WeightFormat::F16, .bits = 16, .rows = 1, .columns = 384, .row_bytes = 768});
  check({.format = WeightFormat::Bf16, .bits = 16, .rows = 1, .columns = 384, .row_bytes = 768});
}

// One weight in two formats, many input rows: more than one block of them, and gathered.
TEST_P(WeightRowsOn, MultipliesToTheBitsOfTheSameWeightsInFloat32) {
  std::vector<std::int32_t> gathered;
  for (int i = 0; i < 64; ++i) gathered.push_back((i * 37 + 11) % 70);
  for (const EncodeSpec& spec : kSpecs) {
    for (const std::int64_t k : {128, 640, 1152, 23}) {
      if (!can_encode(spec, k)) continue;
      const EncodedWeight weight = coded(9, k, spec);
      const Array plain = decoded(weight.weight), x = random_f32({70, k}, 2);
      Machine machine(GetParam(), 2);
      const Array got = Array::f32({64, 9}), want = Array::f32({64, 9});
      const auto run = [&](const Weight& w, const Array& out) {
        linear(machine.stream(),
               std::array{LinearPart{.weight = w, .x = x, .out = out, .in_rows = gathered.data(), .rows = 64}});
      };
      run(weight.weight, got);
      run(plain, want);
      EXPECT_TRUE(same_bits(got, want)) << format_name(weight.weight.view) << ", " << k;
    }
  }
}

// bfloat16 weights take another kernel: float32 copies of them must come to the same sums.
TEST_P(WeightRowsOn, MultipliesToTheBitsOfTheSameWeightsInBfloat16) {
  for (const std::int64_t k : {1, 15, 16, 17, 33, 64, 257, 512, 513, 1057}) {
    const Array weight = random_bf16({37, k}, 1, Values::Wild), x = random_f32({75, k}, 2, Values::Wild);
    const Array wide = Array::f32({37, k}), got = Array::f32({75, 37}), want = Array::f32({75, 37});
    for (std::int64_t i = 0; i < wide.num_elements(); ++i) wide.f32()[i] = bf16_at(weight, i / k, i % k);
    Machine machine(GetParam(), 2);
    linear(machine.stream(), weight, x, want);
    linear(machine.stream(), wide, x, got);
    EXPECT_TRUE(same_bits(got, want)) << k;
  }
}

TEST_P(WeightRowsOn, KeepsTheBitsOfARow) {
  for (const EncodeSpec& spec : {kSpecs[1], kSpecs[3], kSpecs[5]}) {
    const EncodedWeight weight = coded(21, 544, spec, Values::Wild);
    const Array x = random_f32({kPopulation, 544}, 2, Values::Wild);
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      const Array in = rows_of(x, rows);
      Array out = Array::f32({in.rows(), 21});
      linear(machine.stream(), weight.weight, in, out);
      return out;
    })) << format_name(weight.weight.view);
  }
}

TEST_P(WeightRowsOn, EmbedsAndGathersRowsOfAnyFormat) {
  for (const EncodeSpec& spec : kSpecs) {
    const EncodedWeight table = coded(24, 640, spec);
    const Array plain = decoded(table.weight), out = Array::f32({3, 2 * 640});
    Machine machine(GetParam(), 2);
    const std::vector<std::int32_t> ids = {23, 0, 7};
    embed(machine.stream(), table.weight, ids.data(), 2, out);
    for (int i = 0; i < 3; ++i) {
      const std::span<const float> want(plain.row(ids[static_cast<std::size_t>(i)]), 640);
      EXPECT_TRUE(same_bits(std::span<const float>(out.row(i), 640), want)) << format_name(table.weight.view);
      EXPECT_TRUE(same_bits(std::span<const float>(out.row(i) + 640, 640), want)) << format_name(table.weight.view);
    }
    const Weight shards[] = {table.weight, table.weight};
    const Array rows(DType::I64, {1, 2});
    rows.i64()[0] = 24 + 5;
    rows.i64()[1] = 11;
    ngram_gather(machine.stream(), shards, rows, out.tensor().slice(0, 1));
    EXPECT_TRUE(same_bits(std::span<const float>(out.row(0), 640), std::span<const float>(plain.row(5), 640)));
    EXPECT_TRUE(same_bits(std::span<const float>(out.row(0) + 640, 640), std::span<const float>(plain.row(11), 640)));
  }
}

// Planted control: a scale taken from the neighbouring group is seen.
TEST(Weight, AScaleOffByOneGroupIsSeen) {
  const EncodedWeight weight = coded(9, 128, kSpecs[4]);
  CodedView shifted = weight.weight.view;
  shifted.rows = 8;
  shifted.scales += 2;
  const Array got = decoded(Weight({8, 128}, shifted)), want = decoded(weight.weight);
  EXPECT_FALSE(same_bits(got.tensor(), want.tensor().slice(0, 8)));
}

}  // namespace
}  // namespace rondo
