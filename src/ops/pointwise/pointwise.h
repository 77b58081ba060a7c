// Elementwise steps between the matrix products. All f32, [rows, width]; an element's bits depend on its own inputs
// alone.
#pragma once

#include "device/stream.h"
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

}  // namespace rondo
