// NgramHash: which rows of the n-gram table a token's history reads (qwen4_exp's PLE), as numbers computed from config.
//
//   multipliers   m_i = 2 * (SM64(seed + 10007 * p + gamma * (i + 1)) mod half) + 1,  half = ((2^63 - 1) / vocab) / 2
//   head sizes    successive primes from vocab_base on, going on from one such layer to the next
//   head offsets  their exclusive prefix sums; the table has their total, rounded up to vocab_multiple, as rows
//   row(head)     (t0 * m0 ^ t1 * m1 [^ t2 * m2 ...]) mod size + offset; heads in groups of heads_per_ngram, the first
//                 group reading two tokens, the next three, and so on
//
// t0 is the current token, t1 the one before it, and so on; a position before the start of the text, or cut off by an
// end-of-text token between it and the current one, counts as that end-of-text token. Products stay below 2^63, as
// every token is below vocab. p is the layer's ordinal among the layers that have a table.
#pragma once

#include <cstdint>
#include <vector>

#include "ckpt/config.h"

namespace rondo {

struct NgramHash {
  std::vector<std::int64_t> multipliers;   // [ngram_size]
  std::vector<std::int64_t> head_offsets;  // [heads]
  std::vector<std::int64_t> head_sizes;    // [heads], primes
  std::int64_t padded_rows = 0;
};

// ple_ordinal: position in config.ngram.layers.
NgramHash ngram_hash(const ModelConfig& config, int ple_ordinal);

}  // namespace rondo
