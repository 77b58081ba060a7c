// The CUDA code of ops/delta/delta.h.
#pragma once

#include "ops/delta/delta.h"

namespace rondo::cuda {

void causal_conv(Stream& s, const RowSpans& rows, Tensor x, Tensor weight, ConvSpec spec, ConvState state, Tensor out);
void gated_delta(Stream& s, const RowSpans& rows, Tensor u, Tensor a, Tensor b, DeltaGains gains, DeltaSpec spec,
                 DeltaState state, Tensor out);
// Whether such a mixer has code of its own here.
bool has_delta_net(DeltaSpec spec, ConvSpec conv);
// u: [rows, q | k | v], heads: [rows, v_heads, 2]: scratch.
void delta_net(Stream& s, const RowSpans& rows, const DeltaInputs& in, const DeltaNet& net, Tensor u, Tensor heads,
               Tensor out);

}  // namespace rondo::cuda
