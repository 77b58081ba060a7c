// The CUDA code of ops/attention/attention.h, for heads of a multiple of eight dimensions. The cache is f32 or bf16,
// rounded when written; queries, and the weights that values are mixed by, are rounded to bf16 as well.
//
// Order of a row's sums: the positions it sees, in ascending order, are cut into partitions whose size is a function of
// how many there are (partition_tokens); each partition is summed by itself, 64 positions at a time, those in the
// tensor cores' steps of 16, and the partitions are merged in ascending order. Which rows share a block changes
// nothing.
#pragma once

#include "ops/attention/attention.h"

namespace rondo::cuda {

void attention_write(Stream& s, const RowSpans& batch, Tensor q_gate, Tensor k, Tensor v, HeadGains gains,
                     Tensor rope_table, AttentionSpec spec, KvCache cache, Tensor q);
void attention(Stream& s, const RowSpans& batch, Tensor q, Tensor q_gate, KvCache cache, const Selection* selection,
               AttentionSpec spec, int max_positions, Scratch scratch, Tensor out);  // a dry stream: its scratch alone
void select_blocks(Stream& s, const RowSpans& batch, Tensor index_qk, HeadGains gains, Tensor rope_table,
                   IndexerSpec spec, IndexCache cache, int max_positions, Scratch scratch, Selection selection);

}  // namespace rondo::cuda
