#include "ops/common/simd.h"
#include "ops/linear/linear_kernel.h"
#include "ops/linear/narrow.h"

namespace rondo::RONDO_ISA {

namespace {

constexpr int kColumns = 4;  // weight rows a tile: sum4 adds up the lanes of four sums at once

#if defined(__AVX512F__)
constexpr int kRows = 4;  // best of 3, 4 and 6: docs/performance.md, linear
#else
constexpr int kRows = 2;  // 8 sums, 4 weights and an input in 16 registers
#endif

constexpr std::int64_t kInputBytes = 256 * 1024;  // of x that stay near while all weights pass: half an L2 cache

// A tile reads kColumns rows side by side, which the processor's own prefetcher takes for disorder (12 GB/s where one
// row after the other gives 28). So while a tile is summed the next one is asked for in the order in which it lies in
// memory: into the nearest cache where two tiles and the tile's inputs fit there, else into the second. Best of several
// distances: docs/performance.md, linear.
constexpr std::int64_t kNearBytes = 24 * 1024;  // of a nearest cache of 32 KiB
constexpr std::int64_t kAheadOfTile = 512;      // weights: 1 KiB

template <int Rows>
void ask_for(const std::uint16_t* next, std::int64_t k) {
  const std::int64_t bytes = k * (2 * kColumns * static_cast<std::int64_t>(sizeof(std::uint16_t)) +
                                  Rows * static_cast<std::int64_t>(sizeof(float)));
  if (bytes <= kNearBytes) {
    prefetch_near(next + kAheadOfTile);
  } else {
    prefetch_far(next);
  }
}

// One tile: kColumns weight rows against Rows input rows. A column past the end repeats the last and is not stored.
template <int Rows>
void tile(const LinearRange& r, std::int64_t n, int first_row) {
  const auto* weights = reinterpret_cast<const std::uint16_t*>(r.weight.codes);
  const std::int64_t k_size = r.weight.columns;
  const std::uint16_t* w[kColumns];
  for (int c = 0; c < kColumns; ++c) {
    const std::int64_t column = n + c < r.n_end ? n + c : r.n_end - 1;
    w[c] = weights + column * k_size;
  }
  const float* x[Rows];
  for (int m = 0; m < Rows; ++m) {
    const std::int64_t row = r.in_rows != nullptr ? r.in_rows[first_row + m] : first_row + m;
    x[m] = r.x + row * k_size;
  }
  F32 sums[Rows][kColumns];
  for (int m = 0; m < Rows; ++m) {
    for (int c = 0; c < kColumns; ++c) sums[m][c] = zeros();
  }
  std::int64_t k = 0;
  for (; k + 2 * kLanes <= k_size; k += 2 * kLanes) {
    F32 low[kColumns], high[kColumns];
    for (int c = 0; c < kColumns; ++c) load_bf16_pair(w[c] + k, low[c], high[c]);
    const std::uint16_t* next = w[0] + kColumns * (k_size + k);
    for (int c = 0; c < kColumns; ++c) ask_for<Rows>(next + c * 2 * kLanes, k_size);
    for (int m = 0; m < Rows; ++m) {
      const F32 x_low = load(x[m] + k);
      for (int c = 0; c < kColumns; ++c) sums[m][c] = fma(low[c], x_low, sums[m][c]);
    }
    for (int m = 0; m < Rows; ++m) {
      const F32 x_high = load(x[m] + k + kLanes);
      for (int c = 0; c < kColumns; ++c) sums[m][c] = fma(high[c], x_high, sums[m][c]);
    }
  }
  for (; k < k_size; k += kLanes) {
    const int lanes = k_size - k < kLanes ? static_cast<int>(k_size - k) : kLanes;
    F32 weight[kColumns];
    for (int c = 0; c < kColumns; ++c) weight[c] = load_bf16_first(w[c] + k, lanes);
    for (int m = 0; m < Rows; ++m) {
      const F32 input = load_n(x[m] + k, lanes);
      for (int c = 0; c < kColumns; ++c) sums[m][c] = fma(weight[c], input, sums[m][c]);
    }
  }
  if constexpr (Rows == 4) {
    if (n + kColumns <= r.n_end) return sum4x4(sums, r.out + first_row * r.out_width + n, r.out_width);
  }
  for (int m = 0; m < Rows; ++m) {
    float totals[kColumns];
    sum4(sums[m][0], sums[m][1], sums[m][2], sums[m][3], totals);
    float* out = r.out + (first_row + m) * r.out_width + n;
    for (int c = 0; c < kColumns && n + c < r.n_end; ++c) out[c] = totals[c];
  }
}

// In groups as even as they come: five rows as three and two, not as four and a dear last one.
void rows_of_tile(const LinearRange& r, std::int64_t n, int begin, int end) {
  for (int groups = (end - begin + kRows - 1) / kRows; groups > 0; --groups) {
    const int rows = (end - begin + groups - 1) / groups;
    switch (rows) {
      case 4: tile<4>(r, n, begin); break;
      case 3: tile<3>(r, n, begin); break;
      case 2: tile<2>(r, n, begin); break;
      default: tile<1>(r, n, begin); break;
    }
    begin += rows;
  }
}

}  // namespace

void linear_range(const LinearRange& r) {
#if defined(__AVX512F__)
  const auto* weights = reinterpret_cast<const std::uint16_t*>(r.weight.codes);
  if (is_narrow(r)) {
    return narrow_range(r, weights, [&](std::int64_t column, std::uint16_t* to) {
      __builtin_memcpy(to, weights + column * kNarrow, kNarrow * sizeof(std::uint16_t));
    });
  }
#endif
  std::int64_t block = kInputBytes / (r.weight.columns * static_cast<std::int64_t>(sizeof(float))) / kRows * kRows;
  if (block < kRows) block = kRows;
  for (std::int64_t begin = 0; begin < r.rows; begin += block) {
    const int end = static_cast<int>(begin + block < r.rows ? begin + block : r.rows);
    for (std::int64_t n = r.n_begin; n < r.n_end; n += kColumns) rows_of_tile(r, n, static_cast<int>(begin), end);
  }
}

}  // namespace rondo::RONDO_ISA
