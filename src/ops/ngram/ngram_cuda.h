// The CUDA code of ops/ngram/ngram.h. The table may lie in pinned host memory: a token reads a few rows of it.
#pragma once

#include "ops/ngram/ngram.h"

namespace rondo::cuda {

constexpr int kMaxShards = 64;
void ngram_gather(Stream& s, std::span<const Weight> shards, Tensor rows, Tensor out);
void ngram_gate(Stream& s, Tensor key, Tensor query, Tensor value, Tensor out);

}  // namespace rondo::cuda
