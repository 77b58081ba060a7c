// The two sequence mixers of the family: Gated DeltaNet (spec 2.3) and gated attention with or without block selection
// (spec 2.4, 2.5). Each holds its weights and its part of the sequences' state. x, out: [rows, hidden] f32.
#pragma once

#include <string>

#include "model/batch.h"
#include "model/loader.h"
#include "ops/attention/attention.h"
#include "ops/delta/delta.h"
#include "ops/norm/norm.h"

namespace rondo {

class GatedDeltaNet {
 public:
  GatedDeltaNet(Loader& loader, const std::string& prefix);
  void forward(Stream& s, const Batch& batch, Scratch scratch, Tensor x, Tensor out) const;
  void settle(Stream& s, const RowSpans& spans, Scratch scratch) const;  // spans of no rows: folds

 private:
  Weight qkv_, z_, a_, b_;  // projections, [.., hidden]
  DeltaNet net_{};
  Weight out_proj_;  // [hidden, v_heads * v_dim]
};

class GatedAttention {
 public:
  // rope_table: f32 [context, 2, rotary_dim / 2], shared by all.
  GatedAttention(Loader& loader, const std::string& prefix, Tensor rope_table);
  void forward(Stream& s, const Batch& batch, Scratch scratch, Tensor x, Tensor out) const;

 private:
  bool is_sparse() const { return indexer_.heads > 0; }

  AttentionSpec spec_;
  IndexerSpec indexer_;
  int context_tokens_;
  Weight q_gate_, k_, v_, o_;  // projections
  HeadGains gains_;
  Weight index_qk_;  // [(heads + 1) * head_dim, hidden]
  HeadGains index_gains_;
  Tensor rope_table_;
  KvCache cache_;
  IndexCache index_cache_;
};

// Positions a KV block: a multiple of every selected block's size.
constexpr int kKvBlockTokens = 64;
int num_kv_blocks(const ModelOptions& options);  // enough for every stream's whole window, and the prefix cache's

}  // namespace rondo
