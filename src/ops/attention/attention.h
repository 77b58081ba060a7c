// Gated attention over a paged cache (spec 2.4), and the block selection of sparse attention, QSA (spec 2.5).
//
// The cache is blocks of block_tokens positions; a sequence's block table (RowSpan::blocks) names the block of each run
// of block_tokens positions. Rows are written before any row of the call attends, so a row sees its own span's earlier
// rows. A row's sums run over positions in ascending order (on a GPU in partitions of them, merged in order): its
// bits depend on its own position and tokens alone. All f32; a GPU rounds what it multiplies to bf16.
#pragma once

#include <span>

#include "device/stream.h"
#include "ops/common/row_spans.h"
#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace rondo {

struct AttentionSpec {
  int q_heads, kv_heads, head_dim;
  int rotary_dim;    // leading dimensions of a head that turn
  int block_tokens;  // positions a KV block
  float eps;
};

// [positions, 2, rotary_dim / 2] cos | sin of position * inverse_frequency, in float32 as the reference has it.
struct RopeSpec {
  double theta;
  int rotary_dim;
  double yarn_factor;  // 1 = plain
  int original_context;
};
void fill_rope_table(RopeSpec spec, Tensor table);

struct KvCache {
  Tensor keys;    // [blocks, kv_heads, block_tokens, head_dim] after norm and rope
  Tensor values;  // [blocks, kv_heads, block_tokens, head_dim]
};
struct HeadGains {
  Tensor q;  // [head_dim], 1 + w
  Tensor k;  // [head_dim], 1 + w
};

// q = rope(norm(q)), k = rope(norm(k)), per head; k and v go to the cache at each row's position.
// q_gate: [rows, q_heads, q | gate of head_dim each]; q: [rows, q_heads * head_dim].
void attention_write(Stream& s, const RowSpans& batch, Tensor q_gate, Tensor k, Tensor v, HeadGains gains,
                     Tensor rope_table, AttentionSpec spec, KvCache cache, Tensor q);

// Which blocks of `block_tokens` positions a row may see; the incomplete tail after the last whole block always is.
struct Selection {
  Tensor blocks;     // i32 [rows, budget_blocks] ascending
  Tensor count;      // i32 [rows]; kDense = every position
  int block_tokens;  // of a selected block; not of the cache
};
constexpr int kDense = -1;

// out = softmax(q k^T / sqrt(head_dim)) v, times sigmoid(gate), over positions first_pos .. own (all, or those
// selected).
void attention(Stream& s, const RowSpans& batch, Tensor q, Tensor q_gate, KvCache cache, const Selection* selection,
               AttentionSpec spec, int max_positions, Scratch scratch, Tensor out);

struct IndexerSpec {
  int heads, head_dim;
  int rotary_dim;
  int budget_blocks;  // selected at most
  int block_tokens;   // of a selected block
  int cache_block_tokens;
  float eps;
};
struct IndexCache {
  Tensor raw;     // [blocks, cache_block_tokens, head_dim] index keys as projected
  Tensor pooled;  // [blocks, cache_block_tokens / block_tokens, head_dim] mean of a whole block, normed and turned
};
// Writes the rows' index keys and the pooled keys of blocks they complete, then chooses for each row the budget_blocks
// best whole blocks by sum_h relu(iq_h . kb) / sqrt(head_dim), ties to the lower block. Blocks before first_pos (a
// multiple of block_tokens) are not looked at. index_qk: [rows, heads * head_dim queries | one key], the queries of
// rows that have to choose are normed and turned in place.
void select_blocks(Stream& s, const RowSpans& batch, Tensor index_qk, HeadGains gains, Tensor rope_table,
                   IndexerSpec spec, IndexCache cache, int max_positions, Scratch scratch, Selection selection);

}  // namespace rondo
