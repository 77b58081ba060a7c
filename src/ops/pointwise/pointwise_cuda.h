// The CUDA code of ops/pointwise/pointwise.h.
#pragma once

#include "ops/pointwise/pointwise.h"

namespace rondo::cuda {

void embed(Stream& s, const Weight& embedding, const std::int32_t* ids, int copies, Tensor out);
void add(Stream& s, Tensor a, Tensor out);
void gather_rows(Stream& s, Tensor x, const std::int32_t* rows, Tensor out);
void side_by_side(Stream& s, Tensor a, Tensor b, Tensor out);
void silu_product(Stream& s, Tensor gate, Tensor up, Tensor out);
void silu_scaled(Stream& s, Tensor x, float scale, Tensor out);
void copy_rows(Stream& s, std::span<const RowCopy> copies, std::int64_t width);
void fill_random(Stream& s, Tensor out, std::uint64_t seed, float half_width);
void fill_bytes(Stream& s, Tensor out, std::uint64_t seed, const MadeUp::Bytes& pattern);

}  // namespace rondo::cuda
