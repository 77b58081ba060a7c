// Range kernels of the norms: rows [begin, end).
#pragma once

#include <cstdint>

#include "ops/common/isa.h"

namespace rondo {

struct NormRange {
  const float* x;     // [rows, width]
  const float* gain;  // rms: [width]; gated: [group]
  const float* gate;  // gated only: [rows, width]
  float* out;
  std::int64_t width, group;
  float eps;
  bool sigmoid_gate;  // else silu
  int begin, end;
};

RONDO_DECLARE_KERNEL(rms_norm_range, const NormRange& r)
RONDO_DECLARE_KERNEL(gated_norm_range, const NormRange& r)

}  // namespace rondo
