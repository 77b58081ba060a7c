// The two recurrent steps of a Gated DeltaNet mixer (spec 2.3), over spans of many sequences, each on its own state;
// and all that the mixer does between its projections.
//
// causal_conv, depthwise:   out_t[c] = act( sum_j weight[j, c] * x_{t - dilation (kernel - 1 - j)}[c] ),  zero before
// the start
//
// gated_delta, per V head h (K head h / (v_heads / k_heads)), with u = q | k | v:
//   q^ = q rsqrt(sum q^2 + 1e-6) / sqrt(k_dim)     k^ = k rsqrt(sum k^2 + 1e-6)
//   e = exp( decay_rate[h] softplus(a + dt_bias[h]) )     beta = sigmoid(b)
//   S = e S;   delta = beta (v - S^T k^);   S = S + k^ delta^T;   out = S^T q^
//
// State is kept as ops/common/row_span.h says: certain rows move it in place, later rows are logged, `fold` logged rows
// of the last span go in first, by the operations of the recurrence itself (so folding = having decoded). A span that
// starts at position 0 starts from zeros, whatever its slot held. A span of no rows folds and does nothing else. All
// f32. out must not overlap x.
#pragma once

#include <span>

#include "device/stream.h"
#include "ops/common/row_spans.h"
#include "ops/norm/norm.h"
#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace rondo {

struct ConvState {
  Tensor history;  // [slots, (kernel - 1) * dilation, channels] the last inputs
  Tensor log;      // [slots, log_rows, channels] inputs of rows not yet certain
};
struct ConvSpec {
  int kernel;
  int dilation;
};
// x, out: [rows, channels]; weight: [kernel, channels]; act is silu.
void causal_conv(Stream& s, const RowSpans& rows, Tensor x, Tensor weight, ConvSpec spec, ConvState state, Tensor out);

struct DeltaState {
  Tensor memory;     // [slots, v_heads, k_dim, v_dim]
  Tensor key_log;    // [slots, log_rows, v_heads, k_dim]   k^
  Tensor delta_log;  // [slots, log_rows, v_heads, v_dim]   delta
  Tensor decay_log;  // [slots, log_rows, v_heads]          e
};
struct DeltaSpec {
  int k_heads, v_heads, k_dim, v_dim;
};
struct DeltaGains {
  Tensor decay_rate;  // [v_heads] -exp(A_log)
  Tensor dt_bias;     // [v_heads]
};
// u: [rows, q | k | v]; a, b: [rows, v_heads]; out: [rows, v_heads * v_dim].
void gated_delta(Stream& s, const RowSpans& rows, Tensor u, Tensor a, Tensor b, DeltaGains gains, DeltaSpec spec,
                 DeltaState state, Scratch scratch, Tensor out);

// out = gated_norm( gated_delta( causal_conv(qkv), a, b ), z ), head by head of v_dim: to the bit what those three
// give, one after the other, and the state they leave.
struct DeltaInputs {
  Tensor qkv;   // [rows, q | k | v]
  Tensor z;     // [rows, v_heads * v_dim]
  Tensor a, b;  // [rows, v_heads]
};
struct DeltaNet {
  Tensor conv_weight;  // [kernel, q | k | v]
  ConvSpec conv;
  DeltaGains gains;
  DeltaSpec spec;
  Tensor norm_gain;  // [v_dim]
  float eps;
  Gate gate;
  ConvState conv_state;
  DeltaState state;
};
void delta_net(Stream& s, const RowSpans& rows, const DeltaInputs& in, const DeltaNet& net, Scratch scratch,
               Tensor out);

}  // namespace rondo
