// The vector vocabulary of the CPU kernels, in namespace RONDO_ISA: a kernel reads as its steps, and means the same sum
// in the same order whatever it is compiled for, but for the number of lanes and whether multiply-add rounds once
// (AVX2, AVX-512) or twice (baseline). Included only by files compiled per instruction set.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rondo::RONDO_ISA {
namespace {

#if defined(__AVX512F__)

constexpr int kLanes = 16;
struct F32 {
  __m512 v;
};
inline __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
inline F32 zeros() { return {_mm512_setzero_ps()}; }
inline F32 all(float x) { return {_mm512_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline F32 load_first(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline void store_first(float* p, F32 a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }  // a b + c
inline F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F32 round_even(F32 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F32 times_power_of_two(F32 a, F32 n) { return {_mm512_scalef_ps(a.v, n.v)}; }
// 2 kLanes bfloat16, widened: one permutation each puts the bits into the upper halves.
inline void load_bf16_pair(const std::uint16_t* p, F32& low, F32& high) {
  const __m512i bits = _mm512_loadu_si512(p);
  const __m512i low_at = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0, 5, 0, 4, 0,
                                          3, 0, 2, 0, 1, 0, 0, 0);
  const __m512i high_at = _mm512_set_epi16(31, 0, 30, 0, 29, 0, 28, 0, 27, 0, 26, 0, 25, 0, 24, 0, 23, 0, 22, 0, 21, 0,
                                           20, 0, 19, 0, 18, 0, 17, 0, 16, 0);
  low.v = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xAAAAAAAAu, low_at, bits));
  high.v = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xAAAAAAAAu, high_at, bits));
}
inline F32 load_bf16_first(const std::uint16_t* p, int n) {
  const __m256i bits = _mm256_maskz_loadu_epi16(first_lanes(n), p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
// Of four vectors, each quarter's four lanes added up: [a b c d] in each quarter of the result.
inline __m512 quarter_sums(F32 a, F32 b, F32 c, F32 d) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a.v, b.v), _mm512_unpackhi_ps(a.v, b.v));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c.v, d.v), _mm512_unpackhi_ps(c.v, d.v));
  return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
}
// The four sums of the lanes of a, b, c, d, each by the same tree.
inline void sum4(F32 a, F32 b, F32 c, F32 d, float* sums) {
  const __m512 quads = quarter_sums(a, b, c, d);
  const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(quads), _mm512_extractf32x8_ps(quads, 1));
  _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
}
// sum4 of four rows at once, by the same tree: whole vectors to the end, where sum4 alone leaves halves and quarters of
// one. sums of row m go to out + m * stride.
inline void sum4x4(const F32 (*rows)[4], float* out, std::int64_t stride) {
  const auto halves = [](__m512 a, __m512 b) {  // quarters 0 + 2, 1 + 3 of a, then of b
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  };
  __m512 quads[4];
  for (int m = 0; m < 4; ++m) quads[m] = quarter_sums(rows[m][0], rows[m][1], rows[m][2], rows[m][3]);
  const __m512 low = halves(quads[0], quads[1]), high = halves(quads[2], quads[3]);
  const __m512 sums = _mm512_add_ps(_mm512_shuffle_f32x4(low, high, 0x88), _mm512_shuffle_f32x4(low, high, 0xDD));
  _mm_storeu_ps(out, _mm512_castps512_ps128(sums));
  _mm_storeu_ps(out + stride, _mm512_extractf32x4_ps(sums, 1));
  _mm_storeu_ps(out + 2 * stride, _mm512_extractf32x4_ps(sums, 2));
  _mm_storeu_ps(out + 3 * stride, _mm512_extractf32x4_ps(sums, 3));
}
inline float largest(F32 a) { return _mm512_reduce_max_ps(a.v); }

#elif defined(__AVX2__)

constexpr int kLanes = 8;
struct F32 {
  __m256 v;
};
inline __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
inline F32 zeros() { return {_mm256_setzero_ps()}; }
inline F32 all(float x) { return {_mm256_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline F32 load_first(const float* p, int n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }
inline void store(float* p, F32 a) { _mm256_storeu_ps(p, a.v); }
inline void store_first(float* p, F32 a, int n) { _mm256_maskstore_ps(p, first_lanes(n), a.v); }
inline F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
inline F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
inline F32 round_even(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F32 times_power_of_two(F32 a, F32 n) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127)), 23);
  return {_mm256_mul_ps(a.v, _mm256_castsi256_ps(exponent))};
}
inline F32 widen(__m128i bits) { return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))}; }
inline void load_bf16_pair(const std::uint16_t* p, F32& low, F32& high) {
  low = widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  high = widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)));
}
inline F32 load_bf16_first(const std::uint16_t* p, int n) {
  alignas(16) std::uint16_t padded[8] = {};
  std::memcpy(padded, p, static_cast<std::size_t>(n) * sizeof(std::uint16_t));
  return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(padded)));
}
inline void sum4(F32 a, F32 b, F32 c, F32 d, float* sums) {
  const __m256 ab = _mm256_add_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v));
  const __m256 cd = _mm256_add_ps(_mm256_unpacklo_ps(c.v, d.v), _mm256_unpackhi_ps(c.v, d.v));
  const __m256 quads = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xEE));
  _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1)));
}
inline float largest(F32 a) {
  const __m128 halves = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 pairs = _mm_max_ps(halves, _mm_movehl_ps(halves, halves));
  return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_shuffle_ps(pairs, pairs, 1)));
}

#else

// Four lanes in the compiler's own vectors: SSE2 on x86-64, NEON on Arm.
constexpr int kLanes = 4;
typedef float Float4 __attribute__((vector_size(16)));
typedef std::int32_t Int4 __attribute__((vector_size(16)));
struct F32 {
  Float4 v;
};
inline F32 zeros() { return {Float4{0, 0, 0, 0}}; }
inline F32 all(float x) { return {Float4{x, x, x, x}}; }
inline F32 load(const float* p) {
  F32 a;
  std::memcpy(&a.v, p, sizeof a.v);
  return a;
}
inline F32 load_first(const float* p, int n) {
  F32 a = zeros();
  std::memcpy(&a.v, p, static_cast<std::size_t>(n) * sizeof(float));
  return a;
}
inline void store(float* p, F32 a) { std::memcpy(p, &a.v, sizeof a.v); }
inline void store_first(float* p, F32 a, int n) { std::memcpy(p, &a.v, static_cast<std::size_t>(n) * sizeof(float)); }
inline F32 operator+(F32 a, F32 b) { return {a.v + b.v}; }
inline F32 operator-(F32 a, F32 b) { return {a.v - b.v}; }
inline F32 operator*(F32 a, F32 b) { return {a.v * b.v}; }
inline F32 operator/(F32 a, F32 b) { return {a.v / b.v}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {a.v * b.v + c.v}; }
inline F32 max(F32 a, F32 b) { return {a.v > b.v ? a.v : b.v}; }
inline F32 min(F32 a, F32 b) { return {a.v < b.v ? a.v : b.v}; }
inline F32 round_even(F32 a) {  // adding 1.5 2^23 leaves no fraction bits
  const Float4 magic = {12582912.0F, 12582912.0F, 12582912.0F, 12582912.0F};
  return {(a.v + magic) - magic};
}
inline F32 times_power_of_two(F32 a, F32 n) {
  const Int4 exponent = (__builtin_convertvector(n.v, Int4) + 127) << 23;
  Float4 power;
  std::memcpy(&power, &exponent, sizeof power);
  return {a.v * power};
}
inline F32 load_bf16_first(const std::uint16_t* p, int n) {
  std::uint32_t wide[4] = {};
  for (int i = 0; i < n; ++i) wide[i] = static_cast<std::uint32_t>(p[i]) << 16;
  F32 a;
  std::memcpy(&a.v, wide, sizeof a.v);
  return a;
}
inline void load_bf16_pair(const std::uint16_t* p, F32& low, F32& high) {
  low = load_bf16_first(p, 4);
  high = load_bf16_first(p + 4, 4);
}
inline float sum_of(F32 a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
inline void sum4(F32 a, F32 b, F32 c, F32 d, float* sums) {
  sums[0] = sum_of(a);
  sums[1] = sum_of(b);
  sums[2] = sum_of(c);
  sums[3] = sum_of(d);
}
inline float largest(F32 a) {
  float most = a.v[0];
  for (int i = 1; i < 4; ++i) most = a.v[i] > most ? a.v[i] : most;
  return most;
}

#endif

#if !defined(__AVX512F__)
inline void sum4x4(const F32 (*rows)[4], float* out, std::int64_t stride) {
  for (int m = 0; m < 4; ++m) sum4(rows[m][0], rows[m][1], rows[m][2], rows[m][3], out + m * stride);
}
#endif

// Ask for the cache line at p, into the first or the second cache; any address will do, and nothing is read.
inline void prefetch_near(const void* p) { __builtin_prefetch(p, 0, 3); }
inline void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }

inline float sum(F32 a) {
  float sums[4];
  sum4(a, a, a, a, sums);
  return sums[0];
}

// e^x by 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2] (Cephes' coefficients); about 2 units in the last place.
// Saturates outside +-87. x comes second in max and min, which give their second operand when one is NaN: so e^NaN is
// NaN, not a small number that hides it.
inline F32 exp(F32 x) {
  x = min(all(87.0F), max(all(-87.0F), x));
  const F32 n = round_even(x * all(1.44269504088896341F));
  F32 r = fma(n, all(-0.693359375F), x);
  r = fma(n, all(2.12194440e-4F), r);
  F32 p = all(1.9875691500e-4F);
  p = fma(p, r, all(1.3981999507e-3F));
  p = fma(p, r, all(8.3334519073e-3F));
  p = fma(p, r, all(4.1665795894e-2F));
  p = fma(p, r, all(1.6666665459e-1F));
  p = fma(p, r, all(5.0000001201e-1F));
  p = fma(p, r * r, r) + all(1.0F);
  return times_power_of_two(p, n);
}
inline F32 sigmoid(F32 x) { return all(1.0F) / (all(1.0F) + exp(zeros() - x)); }
inline F32 silu(F32 x) { return x * sigmoid(x); }

// Applies step(index, lanes) to [0, n): whole vectors, then the rest; the same arithmetic for either.
template <class Step>
inline void for_lanes(std::int64_t n, Step step) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step(i, kLanes);
  if (i < n) step(i, static_cast<int>(n - i));
}
inline F32 load_n(const float* p, int n) { return n == kLanes ? load(p) : load_first(p, n); }
inline void store_n(float* p, F32 a, int n) {
  if (n == kLanes) {
    store(p, a);
  } else {
    store_first(p, a, n);
  }
}

}  // namespace
}  // namespace rondo::RONDO_ISA
