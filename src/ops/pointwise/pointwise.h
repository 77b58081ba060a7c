// Elementwise steps between the matrix products. All f32, [rows, width]; an element's bits depend on its own inputs
// alone.
#pragma once

#include <span>

#include "device/stream.h"
#include "tensor/made_up.h"
#include "tensor/weight.h"

namespace rondo {

// out[r] = embedding[ids[r]], widened. embedding: [vocab, hidden] in any format; ids in range is the caller's promise;
// copies: how many times side by side (the residual streams of qwen4_exp all start as the embedding). out: [rows,
// copies * hidden].
void embed(Stream& s, const Weight& embedding, const std::int32_t* ids, int copies, Tensor out);

// out[r, i * width + d] += a[r, d] for every copy i of a's width in out's.
void add(Stream& s, Tensor a, Tensor out);
void gather_rows(Stream& s, Tensor x, const std::int32_t* rows, Tensor out);  // out[i] = x[rows[i]]
void side_by_side(Stream& s, Tensor a, Tensor b, Tensor out);                 // out[r] = a[r] | b[r]
void silu_product(Stream& s, Tensor gate, Tensor up, Tensor out);             // out = silu(gate) * up; may be in place
void silu_scaled(Stream& s, Tensor x, float scale, Tensor out);               // out = silu(scale * x); may be in place

// Rows of `width` floats from here to there. No row is both read and written, nor written twice.
struct RowCopy {
  const float* from;
  float* to;
};
void copy_rows(Stream& s, std::span<const RowCopy> copies, std::int64_t width);

// f32, on a GPU also bf16: evenly in [-half_width, half_width), by seed and index.
void fill_random(Stream& s, Tensor out, std::uint64_t seed, float half_width = 1);
// u8 [n]: the bytes of a made-up matrix, by seed and index.
void fill_bytes(Stream& s, Tensor out, std::uint64_t seed, const MadeUp::Bytes& pattern);

}  // namespace rondo
