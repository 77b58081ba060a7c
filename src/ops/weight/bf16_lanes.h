// Weights as the GPU's matrix products take them: bfloat16, eight columns of a row at a time.
//
//   w(n, k) = bf16( tensor/coded_view.h's weight with a tensor_scale of 1 )        tensor_scale * sum_k w(n, k) x(k)
//
// A code of Fp8 with one scale and a code of Nvfp4 times its block's scale are bfloat16 exactly; what is rounded is
// Fp8 with scales by block, and Affine. So tensor_scale stands behind the sum: before it, it would cost two operations
// a weight and round every one of them.
//
// One source for both: a kernel's instructions on a GPU, the same values in plain C++ on a host, where a test compares
// every code with the definition (tests/ops/bf16_lanes_test.cpp).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/coded_view.h"

#ifdef __CUDACC__
#define RONDO_BOTH __host__ __device__ inline
#else
#define RONDO_BOTH inline
#endif

namespace rondo::bf16_lanes {

// Columns k .. k + 7, two a word, the first in the lower half.
struct Eight {
  std::uint32_t x, y, z, w;
};

RONDO_BOTH float as_float(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}
RONDO_BOTH std::uint32_t as_bits(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return std::bit_cast<std::uint32_t>(value);
#endif
}

// To nearest, ties to even, NaN stays NaN.
RONDO_BOTH std::uint32_t bf16_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const auto rounded = [](float value) -> std::uint32_t {
    const std::uint32_t bits = as_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFFu;
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  };
  return rounded(low) | rounded(high) << 16;
#endif
}

// Halves multiplied as bfloat16, each product rounded once.
RONDO_BOTH std::uint32_t bf16_products(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  std::uint32_t out;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
#else  // sixteen bits of product: exact in float32
  return bf16_pair(as_float(a << 16) * as_float(b << 16), as_float(a & 0xFFFF0000u) * as_float(b & 0xFFFF0000u));
#endif
}

// Byte i of the result is byte (selector >> 4 i & 7) of the eight bytes b:a.
RONDO_BOTH std::uint32_t bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, selector);
#else
  const std::uint64_t both = static_cast<std::uint64_t>(b) << 32 | a;
  std::uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned from = selector >> (4 * i) & 7u;
    out |= static_cast<std::uint32_t>(both >> (8 * from) & 0xFFu) << (8 * i);
  }
  return out;
#endif
}

// One code each. E4M3's exponent and mantissa, put where float32 has them, are the value times 2^-120; E2M1's, 2^-126.
RONDO_BOTH float e4m3_value(std::uint32_t code) {
  const std::uint32_t size = code & 0x7Fu;
  if (size == 0x7Fu) return as_float(0x7FFFFFFFu);
  return as_float((code & 0x80u) << 24 | as_bits(as_float(size << 20) * 0x1p120F));
}
RONDO_BOTH float e2m1_value(std::uint32_t code) {
  return as_float((code & 8u) << 28 | as_bits(as_float((code & 7u) << 22) * 0x1p126F));
}
RONDO_BOTH float half_value(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, size = bits & 0x7FFFu;
  if (size >= 0x7C00u) return as_float(sign | 0x7F800000u | (size & 0x3FFu) << 13);
  return as_float(sign | as_bits(as_float(size << 13) * 0x1p112F));
}

struct FloatPair {
  float low, high;
};
// Of two E4M3 codes in the lower half of `codes`.
RONDO_BOTH FloatPair e4m3_pair(std::uint32_t codes) {
#ifdef __CUDA_ARCH__
  FloatPair out;
  asm("{\n\t.reg .b32 both;\n\t.reg .b16 low, high;\n\t"
      "cvt.rn.f16x2.e4m3x2 both, %2;\n\tmov.b32 {low, high}, both;\n\t"
      "cvt.f32.f16 %0, low;\n\tcvt.f32.f16 %1, high;\n\t}"
      : "=f"(out.low), "=f"(out.high)
      : "h"(static_cast<std::uint16_t>(codes)));
  return out;
#else
  return {e4m3_value(codes & 0xFFu), e4m3_value(codes >> 8 & 0xFFu)};
#endif
}

// Fp8: eight codes in two words, times a scale; without one they are exact.
RONDO_BOTH std::uint32_t fp8_two(std::uint32_t codes) {
  const FloatPair value = e4m3_pair(codes);
  return bf16_pair(value.low, value.high);
}
RONDO_BOTH Eight fp8_eight(std::uint32_t first, std::uint32_t second) {
  return {fp8_two(first), fp8_two(first >> 16), fp8_two(second), fp8_two(second >> 16)};
}
RONDO_BOTH std::uint32_t fp8_two(std::uint32_t codes, float scale) {
  const FloatPair value = e4m3_pair(codes);
  return bf16_pair(value.low * scale, value.high * scale);
}
RONDO_BOTH Eight fp8_eight(std::uint32_t first, std::uint32_t second, float scale) {
  return {fp8_two(first, scale), fp8_two(first >> 16, scale), fp8_two(second, scale), fp8_two(second >> 16, scale)};
}

// Nvfp4. A code's bits, put where bfloat16 has sign, exponent and mantissa, are its value times 2^-126; no bfloat16
// holds 2^126 times the largest scale, so the scale carries 2^119 and every weight comes out as 2^-7 of itself, which
// changes no bit but the exponent's: the sum is multiplied by kNvfp4Factor along with tensor_scale.
constexpr float kNvfp4Factor = 128;

// Two scales, of the E4M3 codes in the two low bytes of `codes`, and one of them in both halves.
RONDO_BOTH std::uint32_t nvfp4_scales(std::uint32_t codes) {
  constexpr std::uint32_t kPower = 0x7B007B00u;  // 2^119
  return bf16_products(fp8_two(codes), kPower);
}
RONDO_BOTH std::uint32_t nvfp4_scale(std::uint32_t scales, int which) {
#ifdef __CUDA_ARCH__  // in these words no instruction: those that multiply can take a half twice
  std::uint32_t twice;
  if (which == 0) {
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tmov.b32 %0, {low, low};\n\t}"
        : "=r"(twice)
        : "r"(scales));
  } else {
    asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %1;\n\tmov.b32 %0, {high, high};\n\t}"
        : "=r"(twice)
        : "r"(scales));
  }
  return twice;
#else
  return bytes_of(scales, scales, which == 0 ? 0x1010u : 0x3232u);
#endif
}
RONDO_BOTH Eight nvfp4_eight(std::uint32_t codes, std::uint32_t scale) {
  // The upper half of a word is one column ahead of the lower: then columns 0 and 1 stand in place for one mask.
  const std::uint32_t ahead = codes >> 4;
  const std::uint32_t low = bytes_of(codes, ahead, 0x5410), high = bytes_of(codes, ahead, 0x7632);
  constexpr std::uint32_t kSign = 0x80008000u, kSize = 0x01C001C0u;
  const std::uint32_t x = (low << 12 & kSign) | (low << 6 & kSize), y = (low << 4 & kSign) | (low >> 2 & kSize);
  const std::uint32_t z = (high << 12 & kSign) | (high << 6 & kSize), w = (high << 4 & kSign) | (high >> 2 & kSize);
  return {bf16_products(x, scale), bf16_products(y, scale), bf16_products(z, scale), bf16_products(w, scale)};
}

// The same, columns 1 and 2 and columns 5 and 6 exchanged: a word's halves then are two bytes' lower nibbles, or their
// upper ones, and a byte with zeros above it can be shifted to both of its places before the one mask that is needed.
RONDO_BOTH std::uint32_t nvfp4_lower(std::uint32_t bytes) { return (bytes << 12 | bytes << 6) & 0x81C081C0u; }
RONDO_BOTH std::uint32_t nvfp4_upper(std::uint32_t bytes) { return (bytes & 0x00F000F0u) * 0x104u & 0x81C081C0u; }
RONDO_BOTH Eight nvfp4_eight_crossed(std::uint32_t codes, std::uint32_t scale) {
  const std::uint32_t low = bytes_of(codes, 0, 0x4140), high = bytes_of(codes, 0, 0x4342);
  return {bf16_products(nvfp4_lower(low), scale), bf16_products(nvfp4_upper(low), scale),
          bf16_products(nvfp4_lower(high), scale), bf16_products(nvfp4_upper(high), scale)};
}

// Affine: the low `Bits` bits of each code; its value as a float32 without a conversion: 2^23 has room for it below.
constexpr std::uint32_t kRoom = 0x4B000000u;
RONDO_BOTH float affine_value(std::uint32_t code, float scale, float bias) {
  return fmaf(as_float(kRoom | code) - 0x1p23F, scale, bias);
}
// Eight codes as a stream of bits, lowest first, in Bits / 4 words (the rest of the second is ignored).
template <int Bits>
RONDO_BOTH Eight affine_eight(std::uint32_t first, std::uint32_t second, float scale, float bias) {
  constexpr std::uint32_t kMask = (1u << Bits) - 1;
  // Codes that have a byte each, every other one's in one of the words: a permutation of bytes puts one where it goes.
  constexpr std::uint32_t kNibbles = 0x0F0F0F0Fu;
  const std::uint32_t even = first & kNibbles, odd = first >> 4 & kNibbles;
  const auto value = [&](int i) {
    if constexpr (Bits == 4 || Bits == 8) {
      const std::uint32_t bytes = Bits == 8 ? (i < 4 ? first : second) : i % 2 == 0 ? even : odd;
      const std::uint32_t byte = static_cast<std::uint32_t>(Bits == 8 ? i % 4 : i / 2);
      return fmaf(as_float(bytes_of(bytes, kRoom, 0x7440u | byte)) - 0x1p23F, scale, bias);
    }
    const int at = i * Bits;
    std::uint32_t code = at < 32 ? first >> at : second >> (at - 32);
    if (at < 32 && at + Bits > 32) code |= second << (32 - at);
    return affine_value(code & kMask, scale, bias);
  };
  return {bf16_pair(value(0), value(1)), bf16_pair(value(2), value(3)), bf16_pair(value(4), value(5)),
          bf16_pair(value(6), value(7))};
}

// Any format, one weight at a time: tensor/weight.h's decode(), and the bfloat16 of above.
RONDO_BOTH std::uint32_t u16_at(const std::uint8_t* from, std::int64_t index) {
  return static_cast<std::uint32_t>(from[2 * index]) | static_cast<std::uint32_t>(from[2 * index + 1]) << 8;
}
RONDO_BOTH float f32_at(const std::uint8_t* from, std::int64_t index) {
  return as_float(u16_at(from, 2 * index) | u16_at(from, 2 * index + 1) << 16);
}
RONDO_BOTH float scale_at(const CodedView& view, const std::uint8_t* scales, std::int64_t row, std::int64_t column) {
  const std::int64_t index = row / view.scale_rows * view.scale_stride + column / view.scale_columns;
  switch (view.scale_type) {
    case ScaleType::None: return 1;
    case ScaleType::Bf16: return as_float(u16_at(scales, index) << 16);
    case ScaleType::F16: return half_value(u16_at(scales, index));
    case ScaleType::F32: return f32_at(scales, index);
    case ScaleType::E4m3: return e4m3_value(scales[index]);
  }
  return 1;
}
RONDO_BOTH float untensored_value(const CodedView& view, std::int64_t row, std::int64_t column) {
  const std::uint8_t* codes = view.codes + row * view.row_bytes;
  switch (view.format) {
    case WeightFormat::Bf16: return as_float(u16_at(codes, column) << 16);
    case WeightFormat::F16: return half_value(u16_at(codes, column));
    case WeightFormat::F32: return f32_at(codes, column);
    case WeightFormat::Fp8: return e4m3_value(codes[column]) * scale_at(view, view.scales, row, column);
    case WeightFormat::Nvfp4:
      return e2m1_value(static_cast<std::uint32_t>(codes[column / 2]) >> (column % 2 * 4)) *
             scale_at(view, view.scales, row, column);
    case WeightFormat::Affine: {
      const std::int64_t at = column * view.bits, byte = at / 8, shift = at % 8;
      std::uint32_t bits = codes[byte];
      if (shift + view.bits > 8) bits |= static_cast<std::uint32_t>(codes[byte + 1]) << 8;
      return affine_value(bits >> shift & ((1u << view.bits) - 1), scale_at(view, view.scales, row, column),
                          scale_at(view, view.biases, row, column));
    }
  }
  return 0;
}
// Affine and plain weights have no tensor_scale: it is 1.
RONDO_BOTH float value_at(const CodedView& view, std::int64_t row, std::int64_t column) {
  return untensored_value(view, row, column) * view.tensor_scale;
}

}  // namespace rondo::bf16_lanes
