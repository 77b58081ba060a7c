// Weights in every format through the ops that read them: decoded to the definition's bits, multiplied to the bits that
// the same weights give as float32 or bfloat16, and rows that keep theirs.
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/linear/linear.h"
#include "ops/ngram/ngram.h"
#include "ops/pointwise/pointwise.h"
#include "ops/weight/decode_kernel.h"
#include "tests/ops/coded.h"
#include "tests/ops/row_law.h"

namespace rondo {
namespace {

RONDO_ON_KERNELS(WeightOn);
RONDO_ON_ALL(WeightRowsOn);

Array decoded(const Weight& weight) {
  Array out = Array::f32({weight.view.rows, weight.view.columns});
  for (std::int64_t row = 0; row < weight.view.rows; ++row) {
    decode(weight.view, row, 0, std::span(out.row(row), static_cast<std::size_t>(weight.view.columns)));
  }
  return out;
}

std::vector<std::int32_t> numbers_to(std::int64_t n) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// As decode() has it, by the kernels: in pieces, as ops ask for them. A GPU's products decode on their way; what it
// shows by itself are rows of an embedding.
Array kernel_decoded(Isa isa, const CodedView& view) {
  Array out = Array::f32({view.rows, view.columns});
  if (isa == Isa::Sm90) {
    Machine machine(isa);
    const CodedWeights table(view);
    embed(machine.stream(), table, machine.rows(numbers_to(view.rows)), 1, out);
    return out;
  }
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
  for (const EncodeSpec& spec : all_specs()) {
    for (const std::int64_t columns : {128, 640, 1152, 64, 16, 7, 531}) {
      if (!can_encode(spec, columns)) continue;
      const CodedWeights weight = CodedWeights::random(30, columns, spec, Values::Wild);
      EXPECT_TRUE(same_bits(kernel_decoded(GetParam(), weight.view()), decoded(weight)))
          << format_name(weight.view()) << ", " << columns;
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

struct Sizes {
  std::int64_t n, k;
  std::vector<int> rows;
};

// Shapes whose columns a GPU's code splits into runs, and row counts at which it takes another kernel, are large for
// the reference.
std::vector<Sizes> sizes_for(Isa isa) {
  std::vector<Sizes> sizes = {{9, 128, {64}}, {9, 640, {64}}, {9, 1152, {64}}, {9, 23, {64}}};
  if (isa != Isa::Sm90) return sizes;
  for (Sizes& each : sizes) each.rows = {1, 5, 8, 9, 33, 64};
  sizes.push_back({150, 2560, {1, 8, 9, 16, 17, 32, 33, 64, 70}});
  sizes.push_back({300, 5120, {1, 7, 12, 70}});
  return sizes;
}

// One weight in two formats, many input rows: more than one block of them, and gathered. What is multiplied on the way
// is every code of the format; what it must come to are plain weights in the kernel that has been there longest.
TEST_P(WeightRowsOn, MultipliesToTheBitsOfTheSameWeightsDecoded) {
  std::vector<std::int32_t> gathered;
  for (int i = 0; i < 70; ++i) gathered.push_back((i * 37 + 11) % 70);
  for (const Sizes& size : sizes_for(GetParam())) {
    const Array x = random_f32({70, size.k}, 2);
    for (const EncodeSpec& spec : all_specs()) {
      if (!can_encode(spec, size.k)) continue;
      const CodedWeights weight = CodedWeights::random(size.n, size.k, spec);
      const Decoded plain = decoded_for(GetParam(), weight);
      for (const int rows : size.rows) {
        Machine machine(GetParam(), 2);
        const std::int32_t* in_rows = machine.rows(gathered);
        const Array got = Array::f32({rows, size.n}), want = Array::f32({rows, size.n});
        const auto run = [&](const Weight& w, const Array& out) {
          linear(machine.stream(),
                 std::array{LinearPart{.weight = w, .x = x, .out = out, .in_rows = in_rows, .rows = rows}});
        };
        run(weight, got);
        run(plain.weight, want);
        for (std::int64_t i = 0; i < want.num_elements(); ++i) want.f32()[i] *= plain.factor;
        EXPECT_TRUE(same_bits(got, want))
            << format_name(weight.view()) << ", " << size.n << " x " << size.k << ", " << rows << " rows";
      }
    }
  }
}

// Parts in several formats share a call: each gets its own sums.
TEST_P(WeightRowsOn, MultipliesPartsOfDifferentFormatsAtOnce) {
  const auto specs = fast_specs();
  std::vector<CodedWeights> weights;
  for (const EncodeSpec& spec : specs) weights.push_back(CodedWeights::random(70, 256, spec));
  const Array plain = random_bf16({33, 256}, 3), x = random_f32({20, 256}, 2);
  for (const int rows : {3, 20}) {
    Machine machine(GetParam(), 2);
    std::vector<Array> outs;
    std::vector<LinearPart> parts;
    const auto add = [&](const Weight& weight) {
      outs.push_back(Array::f32({rows, weight.shape[0]}));
      parts.push_back({.weight = weight, .x = x, .out = outs.back(), .rows = rows});
    };
    for (const CodedWeights& each : weights) add(each);
    add(plain);
    linear(machine.stream(), parts);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Array alone = Array::f32({rows, parts[i].weight.shape[0]});
      LinearPart part = parts[i];
      part.out = alone;
      linear(machine.stream(), std::span(&part, 1));
      EXPECT_TRUE(same_bits(outs[i], alone)) << format_name(parts[i].weight.view) << ", " << rows << " rows";
    }
  }
}

// Inputs that are 1 at one column and 0 elsewhere: what comes out are the weights themselves, so every code with every
// scale goes once through the decoding of the products. Codes that are NaN are left out, or they would be in all sums.
void expect_weights(Isa isa, const CodedView& view) {
  const CodedWeights weight(view);
  const Decoded plain = decoded_for(isa, weight);
  const Array x = Array::zeros({view.columns, view.columns});
  for (std::int64_t k = 0; k < view.columns; ++k) x.row(k)[k] = 1;
  for (const std::int64_t rows : {std::int64_t{8}, view.columns}) {  // the few and the many
    for (std::int64_t first = 0; first < view.columns; first += rows) {
      Machine machine(isa);
      const Array out = Array::f32({rows, view.rows});
      linear(machine.stream(), weight, x.tensor().slice(first, rows), out);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t n = 0; n < view.rows; ++n) {
          const float want =
              isa == Isa::Sm90 ? bf16_at(plain.weight, n, first + i) * plain.factor : plain.weight.row(n)[first + i];
          ASSERT_EQ(out.row(i)[n], want) << format_name(view) << ", row " << n << ", column " << first + i;
        }
      }
    }
  }
}

bool is_nan_code(std::uint8_t e4m3) { return (e4m3 & 0x7F) == 0x7F; }

TEST_P(WeightRowsOn, MultipliesByEveryCodeAndScale) {
  constexpr std::int64_t kColumns = 128;
  std::vector<std::uint8_t> codes(256 * kColumns), scales(256 * 8);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i + i / kColumns * 3);
  std::vector<std::uint8_t> no_nan = codes;
  for (std::uint8_t& code : no_nan) code = is_nan_code(code) ? 0x7E : code;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(i / 8 + i % 8);
    scales[i] = is_nan_code(code) ? 0 : code;
  }
  CodedView fp8{.format = WeightFormat::Fp8,
                .bits = 8,
                .rows = 256,
                .columns = kColumns,
                .row_bytes = kColumns,
                .codes = no_nan.data(),
                .tensor_scale = 0.37F};
  expect_weights(GetParam(), fp8);
  const std::vector<float> block_scales = {1.9e-3F, -0.7F};
  fp8.scale_type = ScaleType::F32;
  fp8.scales = reinterpret_cast<const std::uint8_t*>(block_scales.data());
  fp8.scale_rows = fp8.scale_columns = 128;
  fp8.scale_stride = 1;
  fp8.tensor_scale = 1;
  expect_weights(GetParam(), fp8);
  expect_weights(GetParam(), {.format = WeightFormat::Nvfp4,
                              .scale_type = ScaleType::E4m3,
                              .bits = 4,
                              .rows = 256,
                              .columns = kColumns,
                              .row_bytes = kColumns / 2,
                              .codes = codes.data(),
                              .scales = scales.data(),
                              .scale_stride = 8,
                              .scale_columns = 16,
                              .tensor_scale = 0.0123F});
  const std::uint16_t grid[] = {0x3C01, 0xB123, 0x3F80, 0x4200}, biases[] = {0xBC01, 0x3123, 0x8000, 0xC2F0};
  for (const int bits : {4, 6, 8}) {
    expect_weights(GetParam(), {.format = WeightFormat::Affine,
                                .scale_type = ScaleType::Bf16,
                                .bits = static_cast<std::uint8_t>(bits),
                                .rows = 2,
                                .columns = kColumns,
                                .row_bytes = kColumns * bits / 8,
                                .codes = codes.data(),
                                .scales = reinterpret_cast<const std::uint8_t*>(grid),
                                .biases = reinterpret_cast<const std::uint8_t*>(biases),
                                .scale_stride = 2,
                                .scale_columns = 64});
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
  const bool on_gpu = GetParam() == Isa::Sm90;  // which has kernels for more of them, and splits long rows
  const std::int64_t k = on_gpu ? 2048 : 544;
  for (const EncodeSpec& spec : on_gpu ? fast_specs() : all_specs()) {
    if (!can_encode(spec, k) || spec.by_tensor) continue;
    const CodedWeights weight = CodedWeights::random(21, k, spec, Values::Wild);
    const Array x = random_f32({kPopulation, k}, 2, Values::Wild);
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      const Array in = rows_of(x, rows);
      Array out = Array::f32({in.rows(), 21});
      linear(machine.stream(), weight, in, out);
      return out;
    })) << format_name(weight.view());
  }
}

// Weights large enough that each of a GPU's multiprocessors has many rows of several parts in turn, and columns enough
// that inputs leave its rings little room. The last of many rows go through kernels of their own: a few must come to
// the same bits.
TEST_P(WeightRowsOn, KeepsTheBitsOfARowOfLargeWeights) {
  const bool on_gpu = GetParam() == Isa::Sm90;
  const std::vector<std::array<std::int64_t, 2>> sizes =
      on_gpu ? std::vector<std::array<std::int64_t, 2>>{{9000, 2048}, {300, 17408}}
             : std::vector<std::array<std::int64_t, 2>>{{40, 256}};
  for (const auto& [n, k] : sizes) {
    const Array x = random_f32({70, k}, 2);
    const auto expect_rows = [&, rows_n = n](const Weight& large, const Weight& small) {
      Machine machine(GetParam(), 2);
      const auto multiplied = [&](int rows) {
        std::array<Array, 2> outs = {Array::f32({rows, rows_n}), Array::f32({rows, small.shape[0]})};
        linear(machine.stream(), std::array{LinearPart{.weight = large, .x = x, .out = outs[0], .rows = rows},
                                            LinearPart{.weight = small, .x = x, .out = outs[1], .rows = rows}});
        return outs;
      };
      const auto want = multiplied(70);
      for (const int rows : {1, 2, 3, 4, 5, 8}) {
        const auto got = multiplied(rows);
        for (const std::size_t part : {0U, 1U}) {
          const auto bytes = static_cast<std::size_t>(got[part].num_elements()) * sizeof(float);
          EXPECT_EQ(std::memcmp(got[part].f32(), want[part].f32(), bytes), 0)
              << format_name(large.view) << ", " << large.shape[0] << " x " << large.shape[1] << ", part " << part
              << ", " << rows << " rows";
        }
      }
    };
    expect_rows(random_bf16({n, k}, 1), random_bf16({100, k}, 3));
    for (const EncodeSpec& spec : fast_specs()) {
      if (!can_encode(spec, k)) continue;
      expect_rows(CodedWeights::random(n, k, spec), CodedWeights::random(100, k, spec));
    }
  }
}

TEST_P(WeightRowsOn, EmbedsAndGathersRowsOfAnyFormat) {
  for (const EncodeSpec& spec : all_specs()) {
    const CodedWeights table = CodedWeights::random(24, 640, spec);
    const Array plain = decoded(table), out = Array::f32({3, 2 * 640});
    Machine machine(GetParam(), 2);
    const std::vector<std::int32_t> ids = {23, 0, 7};
    embed(machine.stream(), table, machine.rows(ids), 2, out);
    for (int i = 0; i < 3; ++i) {
      const std::span<const float> want(plain.row(ids[static_cast<std::size_t>(i)]), 640);
      EXPECT_TRUE(same_bits(std::span<const float>(out.row(i), 640), want)) << format_name(table.view());
      EXPECT_TRUE(same_bits(std::span<const float>(out.row(i) + 640, 640), want)) << format_name(table.view());
    }
    if (GetParam() == Isa::Sm90) continue;  // the host gathers
    const Weight shards[] = {table, table};
    const Array rows(DType::I64, {1, 2});
    rows.i64()[0] = 24 + 5;
    rows.i64()[1] = 11;
    ngram_gather(machine.stream(), shards, rows, out.tensor().slice(0, 1));
    EXPECT_TRUE(same_bits(std::span<const float>(out.row(0), 640), std::span<const float>(plain.row(5), 640)));
    EXPECT_TRUE(same_bits(std::span<const float>(out.row(0) + 640, 640), std::span<const float>(plain.row(11), 640)));
  }
}

TEST(Weight, AGpuHasKernelsForTheUsualFormats) {
  const auto fast = fast_specs(), all = all_specs();
  for (std::size_t i = 0; i < all.size(); ++i) {  // the fast ones come first
    const CodedWeights weight = CodedWeights::random(4, 128, all[i]);
    EXPECT_EQ(has_gpu_kernel(weight.view()), i < fast.size()) << format_name(weight.view());
  }
}

// Planted control: a scale taken from the neighbouring group is seen.
TEST(Weight, AScaleOffByOneGroupIsSeen) {
  const CodedWeights weight = CodedWeights::random(9, 128, {.format = WeightFormat::Affine, .bits = 4, .group = 64});
  CodedView shifted = weight.view();
  shifted.rows = 8;
  shifted.scales += 2;
  const Array got = decoded(Weight({8, 128}, shifted)), want = decoded(weight);
  EXPECT_FALSE(same_bits(got.tensor(), want.tensor().slice(0, 8)));
}

}  // namespace
}  // namespace rondo
