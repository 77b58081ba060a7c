// Weights of as many inputs as there are lanes (16, AVX-512: the up-projection of a small hyper-connection). A sum
// along the lanes would cost more than the products, so here each lane has a column: sixteen columns are turned in
// registers, once for all input rows. The sum of an output runs over the even inputs and over the odd ones, in order,
// and then adds the two: whatever the format, as for every width.
//
// In namespace RONDO_ISA; included only by files compiled per instruction set.
#pragma once

#include "ops/common/simd.h"
#include "ops/linear/linear_kernel.h"

namespace rondo::RONDO_ISA {
namespace {

#if defined(__AVX512F__)

constexpr std::int64_t kNarrow = 16;

// weight[k] lane n: input k of column n.
struct Turned {
  F32 weight[kNarrow];
};

// columns: bf16 [16, 16].
inline Turned turned(const std::uint16_t* columns) {
  __m512i pairs[8], fours[8], by_pair[8];  // of columns side by side; a dword has two inputs
  for (int i = 0; i < 8; ++i) pairs[i] = _mm512_loadu_si512(columns + i * 32);
  const __m512i low = _mm512_set_epi32(27, 19, 11, 3, 26, 18, 10, 2, 25, 17, 9, 1, 24, 16, 8, 0);
  const __m512i high = _mm512_set_epi32(31, 23, 15, 7, 30, 22, 14, 6, 29, 21, 13, 5, 28, 20, 12, 4);
  for (int i = 0; i < 4; ++i) {
    fours[i] = _mm512_permutex2var_epi32(pairs[2 * i], low, pairs[2 * i + 1]);
    fours[4 + i] = _mm512_permutex2var_epi32(pairs[2 * i], high, pairs[2 * i + 1]);
  }
  for (int half = 0; half < 2; ++half) {  // quarters of four vectors, turned
    const __m512i* four = fours + 4 * half;
    const __m512i a = _mm512_shuffle_i32x4(four[0], four[1], 0x44), b = _mm512_shuffle_i32x4(four[0], four[1], 0xEE);
    const __m512i c = _mm512_shuffle_i32x4(four[2], four[3], 0x44), d = _mm512_shuffle_i32x4(four[2], four[3], 0xEE);
    by_pair[4 * half] = _mm512_shuffle_i32x4(a, c, 0x88);
    by_pair[4 * half + 1] = _mm512_shuffle_i32x4(a, c, 0xDD);
    by_pair[4 * half + 2] = _mm512_shuffle_i32x4(b, d, 0x88);
    by_pair[4 * half + 3] = _mm512_shuffle_i32x4(b, d, 0xDD);
  }
  Turned out;
  for (int p = 0; p < 8; ++p) {
    out.weight[2 * p].v = _mm512_castsi512_ps(_mm512_slli_epi32(by_pair[p], 16));
    out.weight[2 * p + 1].v =
        _mm512_castsi512_ps(_mm512_and_si512(by_pair[p], _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
  }
  return out;
}

// columns: f32 [16, 16].
inline Turned turned(const float* columns) {
  const __m512i at = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                        _mm512_set1_epi32(kNarrow));
  Turned out;
  for (int k = 0; k < kNarrow; ++k) out.weight[k].v = _mm512_i32gather_ps(at, columns + k, sizeof(float));
  return out;
}

// `count` columns from n on, all rows.
inline void narrow_columns(const LinearRange& r, const Turned& w, std::int64_t n, int count) {
  for (int row = 0; row < r.rows; ++row) {
    const float* x = r.x + (r.in_rows != nullptr ? r.in_rows[row] : static_cast<std::int64_t>(row)) * kNarrow;
    F32 even = w.weight[0] * all(x[0]), odd = w.weight[1] * all(x[1]);
    for (int k = 2; k < kNarrow; k += 2) {
      even = fma(w.weight[k], all(x[k]), even);
      odd = fma(w.weight[k + 1], all(x[k + 1]), odd);
    }
    store_n(r.out + row * r.out_width + n, even + odd, count);
  }
}

// load(column, to): the column's inputs, to to[16]; run where sixteen do not lie side by side.
template <class T, class Load>
inline void narrow_range(const LinearRange& r, const T* side_by_side, Load load) {
  std::int64_t n = r.n_begin;
  for (; side_by_side != nullptr && n + kLanes <= r.n_end; n += kLanes) {
    narrow_columns(r, turned(side_by_side + n * kNarrow), n, kLanes);
  }
  for (; n < r.n_end; n += kLanes) {
    const int count = r.n_end - n < kLanes ? static_cast<int>(r.n_end - n) : kLanes;
    alignas(64) T columns[kLanes * kNarrow] = {};
    for (int c = 0; c < count; ++c) load(n + c, columns + c * kNarrow);
    narrow_columns(r, turned(columns), n, count);
  }
}

inline bool is_narrow(const LinearRange& r) { return r.weight.columns == kNarrow; }

#endif

}  // namespace
}  // namespace rondo::RONDO_ISA
