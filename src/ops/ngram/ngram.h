// Hashed n-gram embedding, PLE (spec 2.8): which table rows a token's n-grams hash to, their vectors, and the gate that
// mixes the result into the residual streams.
//
//   t_0 = the token; t_s = the token s before it if no token strictly between is eos and the sequence reaches back that
//   far, else eos row of head k of order n = (t_0 m_0 XOR .. XOR t_{n-1} m_{n-1}) mod size_k + offset_k gate: s_i = K_i
//   . Q_i / sqrt(hidden);  a_i = sigmoid(sign(s_i) sqrt(max(|s_i|, 1e-6)));  out_i = a_i V
//
// Integers are exact, so every instruction set gives the same rows. Vectors are f32, the table in any format.
#pragma once

#include <cstdint>
#include <span>

#include "device/stream.h"
#include "tensor/weight.h"

namespace rondo {

struct NgramSpec {
  int ngram_size;       // longest n-gram: 3
  int heads_per_ngram;  // hash heads of each order 2 .. ngram_size
  std::int32_t eos;
  std::span<const std::int64_t> multipliers;   // [ngram_size]
  std::span<const std::int64_t> head_offsets;  // [(ngram_size - 1) * heads_per_ngram]
  std::span<const std::int64_t> head_sizes;
};

// Table rows of the last token of `history` (oldest first, at least one token; more than ngram_size are not looked at;
// tokens before the sequence are simply not in it). rows: [heads].
void ngram_rows(const NgramSpec& spec, std::span<const std::int32_t> history, std::int64_t* rows);

// out[r] = the concatenated vectors of rows[r]. shards: equal pieces of the table, in row order, [shard_rows, dim]
// in any format. rows: I64 [rows, heads]; out: [rows, heads * dim]. On a CPU alone: the table is read where it lies.
void ngram_gather(Stream& s, std::span<const Weight> shards, Tensor rows, Tensor out);

// key, query: [rows, streams * hidden], normed; value: [rows, hidden]; out: [rows, streams * hidden].
void ngram_gate(Stream& s, Tensor key, Tensor query, Tensor value, Tensor out);

}  // namespace rondo
