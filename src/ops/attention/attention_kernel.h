// Range kernels of attention.
#pragma once

#include <cstdint>

#include "ops/common/isa.h"
#include "ops/common/row_span.h"

namespace rondo {

// x = rope(norm(x)) of one head: gain [dim], cos and sin [rotary_dim / 2].
struct HeadNorm {
  const float* x;
  const float* gain;
  const float* cos;
  const float* sin;
  float* out;  // may be x
  int dim, rotary_dim;
  float eps;
};

// One row and KV head: its group of query heads over the positions it may see.
struct AttentionUnit {
  const float* q;     // [group, head_dim]
  const float* gate;  // [group, 2 head_dim]: the gate is the second half
  const float* keys;  // the KV head's part of the cache: block b starts at b * block_stride
  const float* values;
  const std::int32_t* blocks;    // block table
  const std::int32_t* selected;  // selected blocks, or null = dense
  float* scores;                 // [group, scores_stride] scratch
  float* out;                    // [group, head_dim]
  std::int64_t block_stride;     // elements
  std::int64_t scores_stride;
  int num_selected, selected_tokens;
  int block_tokens, head_dim, group;
  int first_pos;  // the first position in the cache
  int pos;        // own position
};

// Scores of whole blocks first_block .. first_block + num_blocks - 1 for one row.
struct BlockScores {
  const float* queries;  // [heads, head_dim]
  const float* pooled;   // [blocks, pooled_per_block, head_dim]
  const std::int32_t* blocks;
  float* scores;  // [num_blocks]
  int pooled_per_block, heads, head_dim, first_block, num_blocks;
};

RONDO_DECLARE_KERNEL(head_norm_rope, const HeadNorm& r)
RONDO_DECLARE_KERNEL(attend, const AttentionUnit& r)
RONDO_DECLARE_KERNEL(score_blocks, const BlockScores& r)

}  // namespace rondo
