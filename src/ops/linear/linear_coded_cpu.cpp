// Weights of any other format than bf16. A few input rows: the codes are decoded in registers, by a row reader. More: a
// piece of kColumns weight rows at a time is decoded to float32 into the nearest cache, and multiplied with every input
// row while it is there; the sums of all rows wait on the stack between pieces. Each sum runs lane by lane along k
// exactly as that of bf16 weights, in both: the same weights in another format give the same bits.
#include "ops/common/simd.h"
#include "ops/linear/linear_kernel.h"
#include "ops/linear/narrow.h"
#include "ops/weight/decode_kernel.h"
#include "ops/weight/row_reader.h"

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

// The weight row of a tile's column c: past the end the last is repeated, and not stored.
std::int64_t weight_row(const LinearRange& r, std::int64_t n, int c) { return n + c < r.n_end ? n + c : r.n_end - 1; }

void decode_piece(const LinearRange& r, std::int64_t n, std::int64_t k, int count, Piece& piece) {
  const std::int64_t num_pieces = (r.weight.columns + kDecodeColumns - 1) / kDecodeColumns;
  for (int c = 0; c < kColumns; ++c) {
    ask_for_next(r.weight, n, k / kDecodeColumns * kColumns + c, num_pieces * kColumns);
    decode_columns(r.weight, weight_row(r, n, c), k, count, piece.weight[c]);
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

// The lanes of `rows` rows' sums added up, to columns n .. of rows `begin` ...
void store_sums(const LinearRange& r, std::int64_t n, int begin, int rows, const F32 (*sums)[kColumns]) {
  int m = 0;
  for (; m + 4 <= rows && n + kColumns <= r.n_end; m += 4) {
    sum4x4(sums + m, r.out + (begin + m) * r.out_width + n, r.out_width);
  }
  for (; m < rows; ++m) {
    float totals[kColumns];
    sum4(sums[m][0], sums[m][1], sums[m][2], sums[m][3], totals);
    float* out = r.out + (begin + m) * r.out_width + n;
    for (int c = 0; c < kColumns && n + c < r.n_end; ++c) out[c] = totals[c];
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
  store_sums(r, n, begin, rows, sums.of);
}

// At most kRows input rows: the tile of linear_cpu.cpp, with weights out of a reader.
template <class Row, int Rows>
void columns_of_few(const LinearRange& r, std::int64_t n) {
  Row w[kColumns] = {{r.weight, weight_row(r, n, 0)},
                     {r.weight, weight_row(r, n, 1)},
                     {r.weight, weight_row(r, n, 2)},
                     {r.weight, weight_row(r, n, 3)}};
  const float* x[Rows];
  for (int m = 0; m < Rows; ++m) x[m] = input_row(r, m);
  F32 sums[Rows][kColumns];
  for (int m = 0; m < Rows; ++m) {
    for (int c = 0; c < kColumns; ++c) sums[m][c] = zeros();
  }
  const std::uint8_t* next = codes_of(r.weight, n + kColumns);
  const std::int64_t next_bytes = kColumns * kLanes * r.weight.bits / 8;
  for (std::int64_t begin = 0; begin < r.weight.columns; begin += w[0].run) {
    for (int c = 0; c < kColumns; ++c) w[c].enter(begin);
    const std::int64_t end = begin + w[0].run < r.weight.columns ? begin + w[0].run : r.weight.columns;
    for (std::int64_t k = begin; k < end; k += kLanes) {
      F32 weight[kColumns];
      for (int c = 0; c < kColumns; ++c) weight[c] = w[c].at(k);
      prefetch_far(next);
      next += next_bytes;
      for (int m = 0; m < Rows; ++m) {
        const F32 input = load(x[m] + k);
        for (int c = 0; c < kColumns; ++c) sums[m][c] = fma(weight[c], input, sums[m][c]);
      }
    }
  }
  store_sums(r, n, 0, Rows, sums);
}

template <class Row>
void few_range(const LinearRange& r) {
  for (std::int64_t n = r.n_begin; n < r.n_end; n += kColumns) {
    switch (r.rows) {
      case 4: columns_of_few<Row, 4>(r, n); break;
      case 3: columns_of_few<Row, 3>(r, n); break;
      case 2: columns_of_few<Row, 2>(r, n); break;
      default: columns_of_few<Row, 1>(r, n); break;
    }
  }
}

// Whether no vector of a reader runs past a row's end, or its run's.
bool comes_in_whole_lanes(const CodedView& w) {
  return w.columns % kLanes == 0 && (w.scale_type == ScaleType::None || w.scale_columns % kLanes == 0);
}
bool are_few(const LinearRange& r) {
  const bool needs_registers = r.weight.format == WeightFormat::Affine && r.weight.bits == 6;
  return r.rows <= (needs_registers ? 2 : kRows) && comes_in_whole_lanes(r.weight);
}

}  // namespace

void linear_coded_range(const LinearRange& r) {
#if defined(__AVX512F__)
  if (is_narrow(r)) {
    return narrow_range<float>(
        r, nullptr, [&](std::int64_t column, float* to) { decode_columns(r.weight, column, 0, kNarrow, to); });
  }
#endif
  if (are_few(r)) {
    const CodedView& w = r.weight;
    if (w.format == WeightFormat::Fp8) return few_range<Fp8Row>(r);
    if (w.format == WeightFormat::Nvfp4) return few_range<Nvfp4Row>(r);
    if (w.format == WeightFormat::Affine && w.bits == 4) return few_range<AffineRow<4>>(r);
    if (w.format == WeightFormat::Affine && w.bits == 6) return few_range<AffineRow<6>>(r);
    if (w.format == WeightFormat::Affine) return few_range<AffineRow<8>>(r);
  }
  for (int begin = 0; begin < r.rows; begin += kBlockRows) {
    const int rows = r.rows - begin < kBlockRows ? r.rows - begin : kBlockRows;
    for (std::int64_t n = r.n_begin; n < r.n_end; n += kColumns) columns_of_block(r, n, begin, rows);
  }
}

}  // namespace rondo::RONDO_ISA
