// Weights of any other format than bf16: a piece of kColumns weight rows at a time is decoded to float32 into the
// nearest cache, and multiplied with every input row while it is there. The sums of all rows wait on the stack between
// pieces. Each sum runs lane by lane along k exactly as that of bf16 weights: the same weights in another format give
// the same bits.
#include "ops/common/simd.h"
#include "ops/linear/linear_kernel.h"
#include "ops/linear/narrow.h"
#include "ops/weight/decode_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

constexpr int kColumns = 4;
#if defined(__AVX512F__)
constexpr int kRows = 4;
#else
constexpr int kRows = 2;
#endif
constexpr int kBlockRows = 60;  // input rows a decoded piece serves; their sums take 15 KiB of stack at 16 lanes

struct Piece {
  alignas(64) float weight[kColumns][kDecodeColumns];
};
struct Sums {
  F32 of[kBlockRows][kColumns];
};

const float* input_row(const LinearRange& r, int row) {
  return r.x + (r.in_rows != nullptr ? r.in_rows[row] : static_cast<std::int64_t>(row)) * r.weight.columns;
}

// Asks for the next columns' codes in the order in which they lie in memory: a part of them with each decoded row.
void ask_for_next(const CodedView& w, std::int64_t n, std::int64_t part, std::int64_t num_parts) {
  const std::int64_t bytes = kColumns * w.row_bytes, begin = bytes * part / num_parts;
  const std::int64_t end = bytes * (part + 1) / num_parts;
  const std::uint8_t* next = w.codes + (n + kColumns) * w.row_bytes;
  for (std::int64_t at = begin; at < end; at += 64) prefetch_far(next + at);
}

// A column past the end repeats the last and is not stored.
void decode_piece(const LinearRange& r, std::int64_t n, std::int64_t k, int count, Piece& piece) {
  const std::int64_t num_pieces = (r.weight.columns + kDecodeColumns - 1) / kDecodeColumns;
  for (int c = 0; c < kColumns; ++c) {
    const std::int64_t column = n + c < r.n_end ? n + c : r.n_end - 1;
    ask_for_next(r.weight, n, k / kDecodeColumns * kColumns + c, num_pieces * kColumns);
    decode_columns(r.weight, column, k, count, piece.weight[c]);
  }
}

template <int Rows>
void add_piece(const LinearRange& r, const Piece& piece, std::int64_t k, int count, int first_row,
               F32 (*sums)[kColumns]) {
  const float* x[Rows];
  for (int m = 0; m < Rows; ++m) x[m] = input_row(r, first_row + m) + k;
  F32 own[Rows][kColumns];
  for (int m = 0; m < Rows; ++m) {
    for (int c = 0; c < kColumns; ++c) own[m][c] = sums[m][c];
  }
  const auto step = [&](int at, int lanes) {
    F32 weight[kColumns];
    for (int c = 0; c < kColumns; ++c) weight[c] = load_n(piece.weight[c] + at, lanes);
    for (int m = 0; m < Rows; ++m) {
      const F32 input = load_n(x[m] + at, lanes);
      for (int c = 0; c < kColumns; ++c) own[m][c] = fma(weight[c], input, own[m][c]);
    }
  };
  int at = 0;
  for (; at + kLanes <= count; at += kLanes) step(at, kLanes);
  if (at < count) step(at, count - at);
  for (int m = 0; m < Rows; ++m) {
    for (int c = 0; c < kColumns; ++c) sums[m][c] = own[m][c];
  }
}

void add_rows(const LinearRange& r, const Piece& piece, std::int64_t k, int count, int begin, int rows, Sums& sums) {
  int m = 0;
  for (int groups = (rows + kRows - 1) / kRows; groups > 0; --groups) {
    const int more = (rows - m + groups - 1) / groups;
    switch (more) {
      case 4: add_piece<4>(r, piece, k, count, begin + m, sums.of + m); break;
      case 3: add_piece<3>(r, piece, k, count, begin + m, sums.of + m); break;
      case 2: add_piece<2>(r, piece, k, count, begin + m, sums.of + m); break;
      default: add_piece<1>(r, piece, k, count, begin + m, sums.of + m); break;
    }
    m += more;
  }
}

void columns_of_block(const LinearRange& r, std::int64_t n, int begin, int rows) {
  Piece piece;
  Sums sums;
  for (int m = 0; m < rows; ++m) {
    for (int c = 0; c < kColumns; ++c) sums.of[m][c] = zeros();
  }
  for (std::int64_t k = 0; k < r.weight.columns; k += kDecodeColumns) {
    const std::int64_t left = r.weight.columns - k;
    const int count = left < kDecodeColumns ? static_cast<int>(left) : kDecodeColumns;
    decode_piece(r, n, k, count, piece);
    add_rows(r, piece, k, count, begin, rows, sums);
  }
  int m = 0;
  for (; m + 4 <= rows && n + kColumns <= r.n_end; m += 4) {
    sum4x4(sums.of + m, r.out + (begin + m) * r.out_width + n, r.out_width);
  }
  for (; m < rows; ++m) {
    float totals[kColumns];
    sum4(sums.of[m][0], sums.of[m][1], sums.of[m][2], sums.of[m][3], totals);
    float* out = r.out + (begin + m) * r.out_width + n;
    for (int c = 0; c < kColumns && n + c < r.n_end; ++c) out[c] = totals[c];
  }
}

}  // namespace

void linear_coded_range(const LinearRange& r) {
#if defined(__AVX512F__)
  if (is_narrow(r)) {
    return narrow_range<float>(
        r, nullptr, [&](std::int64_t column, float* to) { decode_columns(r.weight, column, 0, kNarrow, to); });
  }
#endif
  for (int begin = 0; begin < r.rows; begin += kBlockRows) {
    const int rows = r.rows - begin < kBlockRows ? r.rows - begin : kBlockRows;
    for (std::int64_t n = r.n_begin; n < r.n_end; n += kColumns) columns_of_block(r, n, begin, rows);
  }
}

}  // namespace rondo::RONDO_ISA
