// Range kernels of the recurrent steps: channels of the convolution, (span, V head) pairs of the delta rule.
#pragma once

#include <cstdint>

#include "ops/common/isa.h"
#include "ops/common/row_span.h"

namespace rondo {

struct ConvRange {
  const RowSpan* spans;
  int num_spans;
  const float* x;       // [rows, channels]
  const float* weight;  // [kernel, channels]
  float* history;       // [slots, (kernel - 1) * dilation, channels]
  float* log;           // [slots, log_rows, channels]
  float* out;           // [rows, channels]
  std::int64_t channels;
  int kernel, dilation, log_rows;
  std::int64_t begin, end;  // channels
};

struct DeltaRange {
  const RowSpan* spans;
  const float* u;  // [rows, 2 k_heads k_dim + v_heads v_dim]
  const float* a;  // [rows, v_heads]
  const float* b;  // [rows, v_heads]
  const float* decay_rate;
  const float* dt_bias;
  float* memory;
  float* key_log;
  float* delta_log;
  float* decay_log;
  float* work;  // [k_dim * v_dim + 2 * k_dim + 2 * v_dim] of this thread
  float* out;   // [rows, v_heads * v_dim]
  int k_heads, v_heads, k_dim, v_dim, log_rows;
  int begin, end;  // span * v_heads + head
};

RONDO_DECLARE_KERNEL(causal_conv_range, const ConvRange& r)
RONDO_DECLARE_KERNEL(gated_delta_range, const DeltaRange& r)

}  // namespace rondo
