// delta_net for batches with a long span (long_spans_cuda.cu).
#pragma once

#include <span>

#include "ops/delta/delta.h"
#include "ops/delta/delta_inputs.cuh"

namespace rondo::cuda {

// Whether a batch goes that way: a span of it is longer than a window, and the heads are of the published size.
bool has_long_spans(DeltaSpec spec, std::span<const RowSpan> spans);
// All spans of the batch, short ones too. u: [rows, q | k | v], heads: [rows, v_heads, 2], both scratch.
void delta_net_of_long_spans(Stream& s, const RowSpans& rows, const stepping::DeltaArgs& args,
                             const stepping::NetArgs& net, Tensor u, Tensor heads);

}  // namespace rondo::cuda
