// kLanes codes of a quantised format as float32, in namespace RONDO_ISA: what simd.h is for floats. A Run is what codes
// that share a scale mean: set(...) by the scale, at(p) the values of the kLanes codes from p on. Included only by
// files compiled per instruction set.
#pragma once

#include "ops/common/simd.h"

namespace rondo::RONDO_ISA {
namespace {

inline float from_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline std::uint16_t load_u16(const std::uint8_t* p, std::int64_t index) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p + index * 2, sizeof bits);
  return bits;
}
inline float f32_value(const std::uint8_t* p, std::int64_t index) {
  float value;
  __builtin_memcpy(&value, p + index * 4, sizeof value);
  return value;
}
inline float bf16_value(std::uint16_t bits) { return from_bits(static_cast<std::uint32_t>(bits) << 16); }
inline float half_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16, size = bits & 0x7FFFu;
  if (size >= 0x7C00u) return from_bits(sign | 0x7F800000u | (size & 0x3FFu) << 13);
  if (size < 0x400u) {
    const float small = static_cast<float>(size) * 0x1p-24F;
    return sign != 0 ? -small : small;
  }
  return from_bits(sign | ((size << 13) + (112u << 23)));
}

// Every E4M3 code's value: for scales, and for what is left over of a row.
struct E4m3Values {
  float value[256];
  constexpr E4m3Values() : value() {
    for (int code = 0; code < 256; ++code) {
      const int exponent = code >> 3 & 15, mantissa = code & 7;
      float size = exponent == 0 ? static_cast<float>(mantissa) : static_cast<float>(mantissa + 8);
      for (int e = exponent == 0 ? 1 : exponent; e < 10; ++e) size *= 0.5F;
      for (int e = 10; e < exponent; ++e) size *= 2.0F;
      if ((code & 127) == 127) size = __builtin_nanf("");
      value[code] = code < 128 ? size : -size;
    }
  }
};
constexpr E4m3Values kE4m3;

template <int Bits>
struct AffineRun;

#if defined(__AVX512F__)

// E4M3 has the layout of a half without its upper exponent bit: shifted into place, it is the value times 2^-8.
inline F32 e4m3_lanes(const std::uint8_t* p, int n) {
  const __m128i codes =
      n == kLanes ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)) : _mm_maskz_loadu_epi8(first_lanes(n), p);
  const __m256i halves = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7),
                                          _mm256_set1_epi16(static_cast<short>(0xBFFF)));
  const __mmask16 is_nan = _mm_cmpeq_epi8_mask(_mm_and_si128(codes, _mm_set1_epi8(0x7F)), _mm_set1_epi8(0x7F));
  const __m512 value = _mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(256.0F));
  return {_mm512_mask_mov_ps(value, is_nan, _mm512_set1_ps(__builtin_nanf("")))};
}

// Lane i has code i of eight bytes in its low four bits, and others above them.
inline __m512i nibble_lanes(const std::uint8_t* p) {
  const __m512i bytes = _mm512_castsi128_si512(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m512i half = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i shift = _mm512_set_epi32(28, 24, 20, 16, 12, 8, 4, 0, 28, 24, 20, 16, 12, 8, 4, 0);
  return _mm512_srlv_epi32(_mm512_permutexvar_epi32(half, bytes), shift);
}

template <int Bits>
inline F32 unsigned_lanes(const std::uint8_t* p) {
  __m512i codes;
  if constexpr (Bits == 4) {
    codes = _mm512_and_si512(nibble_lanes(p), _mm512_set1_epi32(15));
  } else if constexpr (Bits == 6) {  // four codes to three bytes: each three bytes in four lanes, shifted apart
    const __m128i bytes = _mm_maskz_loadu_epi8(0xFFF, p);
    const __m128i threes = _mm_shuffle_epi8(bytes, _mm_set_epi8(-1, 11, 10, 9, -1, 8, 7, 6, -1, 5, 4, 3, -1, 2, 1, 0));
    const __m512i spread = _mm512_permutexvar_epi32(_mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0),
                                                    _mm512_castsi128_si512(threes));
    const __m512i shift = _mm512_set_epi32(18, 12, 6, 0, 18, 12, 6, 0, 18, 12, 6, 0, 18, 12, 6, 0);
    codes = _mm512_and_si512(_mm512_srlv_epi32(spread, shift), _mm512_set1_epi32(63));
  } else {
    codes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  return {_mm512_cvtepi32_ps(codes)};
}

inline F32 fused(F32 a, F32 b, F32 c) { return fma(a, b, c); }

// A run's sixteen values first, then a choice among them for each code: arithmetic once a run, not once a weight.
struct E2m1Run {
  F32 values;
  void set(float scale, float tensor_scale) {
    const F32 codes = {_mm512_set_ps(-6, -4, -3, -2, -1.5F, -1, -0.5F, -0.0F, 6, 4, 3, 2, 1.5F, 1, 0.5F, 0)};
    values = codes * all(scale) * all(tensor_scale);
  }
  F32 at(const std::uint8_t* p) const { return {_mm512_permutexvar_ps(nibble_lanes(p), values.v)}; }
};
template <>
struct AffineRun<4> {
  F32 values;
  void set(F32 scale, F32 bias) {
    const F32 codes = {_mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)};
    values = fused(codes, scale, bias);
  }
  F32 at(const std::uint8_t* p) const { return {_mm512_permutexvar_ps(nibble_lanes(p), values.v)}; }
};

#elif defined(__AVX2__)

inline F32 e4m3_lanes(const std::uint8_t* p, int n) {
  alignas(16) std::uint8_t padded[16] = {};
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    p = padded;
  }
  const __m128i codes = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m128i halves = _mm_and_si128(_mm_slli_epi16(codes, 7), _mm_set1_epi16(static_cast<short>(0xBFFF)));
  const __m128i is_nan = _mm_cmpeq_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x7F)), _mm_set1_epi16(0x7F));
  const __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256.0F));
  return {
      _mm256_blendv_ps(value, _mm256_set1_ps(__builtin_nanf("")), _mm256_castsi256_ps(_mm256_cvtepi16_epi32(is_nan)))};
}

// Lane i has code i of four bytes in its low four bits, and others above them.
inline __m256i nibble_lanes(const std::uint8_t* p) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return _mm256_srlv_epi32(_mm256_set1_epi32(bytes), _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0));
}
struct E2m1Run {
  F32 sizes;  // values of the codes without a sign
  void set(float scale, float tensor_scale) {
    sizes = F32{_mm256_set_ps(6, 4, 3, 2, 1.5F, 1, 0.5F, 0)} * all(scale) * all(tensor_scale);
  }
  F32 at(const std::uint8_t* p) const {
    const __m256i codes = nibble_lanes(p);
    const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(8)), 28);
    return {_mm256_xor_ps(_mm256_permutevar8x32_ps(sizes.v, codes), _mm256_castsi256_ps(sign))};
  }
};

template <int Bits>
inline F32 unsigned_lanes(const std::uint8_t* p) {
  __m256i codes;
  if constexpr (Bits == 4) {
    codes = _mm256_and_si256(nibble_lanes(p), _mm256_set1_epi32(15));
  } else if constexpr (Bits == 6) {
    const int low = p[0] | p[1] << 8 | p[2] << 16, high = p[3] | p[4] << 8 | p[5] << 16;
    const __m256i spread = _mm256_set_m128i(_mm_set1_epi32(high), _mm_set1_epi32(low));
    const __m256i shift = _mm256_set_epi32(18, 12, 6, 0, 18, 12, 6, 0);
    codes = _mm256_and_si256(_mm256_srlv_epi32(spread, shift), _mm256_set1_epi32(63));
  } else {
    codes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  return {_mm256_cvtepi32_ps(codes)};
}

inline F32 fused(F32 a, F32 b, F32 c) { return fma(a, b, c); }

#else

inline F32 e4m3_lanes(const std::uint8_t* p, int n) {
  float values[kLanes] = {};
  for (int i = 0; i < n; ++i) values[i] = kE4m3.value[p[i]];
  return load(values);
}

struct E2m1Run {
  float own_scale, tensor_scale;
  void set(float scale, float of_tensor) { own_scale = scale, tensor_scale = of_tensor; }
  F32 at(const std::uint8_t* p) const {
    constexpr float kValues[16] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6};
    F32 out;
    for (int i = 0; i < kLanes; ++i) out.v[i] = kValues[p[i / 2] >> (i % 2 * 4) & 15] * own_scale * tensor_scale;
    return out;
  }
};

template <int Bits>
inline F32 unsigned_lanes(const std::uint8_t* p) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes * Bits / 8; ++i) bits |= static_cast<std::uint32_t>(p[i]) << 8 * i;
  float values[kLanes];
  for (int i = 0; i < kLanes; ++i) values[i] = static_cast<float>(bits >> i * Bits & ((1u << Bits) - 1));
  return load(values);
}

// One rounding, as the definition has it; fma() of this instruction set rounds twice.
inline F32 fused(F32 a, F32 b, F32 c) {
  F32 out;
  for (int i = 0; i < kLanes; ++i) out.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return out;
}

#endif

template <int Bits>
struct AffineRun {
  F32 scale, bias;
  void set(F32 own_scale, F32 own_bias) { scale = own_scale, bias = own_bias; }
  F32 at(const std::uint8_t* p) const { return fused(unsigned_lanes<Bits>(p), scale, bias); }
};
}  // namespace
}  // namespace rondo::RONDO_ISA
