// rope(norm(x)) of one head, by one warp.
#pragma once

#include "ops/common/row_span.h"
#include "ops/common/warp.cuh"

namespace rondo::cuda {

constexpr int kMaxHeadDim = 256;

// Where a row of the batch stands.
struct RowPlace {
  int pos, first_pos;
  const std::int32_t* blocks;
};
__device__ inline RowPlace place_of(const RowSpan* spans, const std::int32_t* span_of_row, int row) {
  const RowSpan& span = spans[span_of_row[row]];
  return {span.start_pos + row - span.begin, span.first_pos, span.blocks};
}
__device__ inline std::int64_t cache_row(const RowPlace& place, int pos, int block_tokens) {
  return static_cast<std::int64_t>(place.blocks[pos / block_tokens]) * block_tokens + pos % block_tokens;
}

// room: [dim] of this warp, holds the result. table: this position's cos | sin. x may be anything but room.
__device__ inline void norm_and_turn(const float* x, const float* gain, const float* table, int dim, int rotary_dim,
                                     float eps, float* room) {
  const int lane = threadIdx.x % kWarp, half = rotary_dim / 2;
  float squares = 0;
  for (int d = lane; d < dim; d += kWarp) squares = fmaf(x[d], x[d], squares);
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(dim) + eps);
  for (int d = lane; d < dim; d += kWarp) room[d] = x[d] * scale * gain[d];
  __syncwarp();
  for (int i = lane; i < half; i += kWarp) {
    const float low = room[i], high = room[i + half], cos = table[i], sin = table[half + i];
    room[i] = low * cos - high * sin;
    room[i + half] = high * cos + low * sin;
  }
  __syncwarp();
}

}  // namespace rondo::cuda
