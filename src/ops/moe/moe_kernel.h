// Range kernels of the mixture: rows [begin, end).
#pragma once

#include <cstdint>

#include "ops/common/isa.h"

namespace rondo {

struct RouteRange {
  const float* logits;   // [rows, experts]
  std::int32_t* chosen;  // [rows, k]
  float* weight;         // [rows, k]
  int experts, k;
  bool normalise;
  int begin, end;
};

struct CombineRange {
  const float* expert_out;    // [rows * k, hidden] in the experts' order
  const std::int32_t* place;  // [rows, k] where a row's i-th expert left its output
  const float* weight;        // [rows, k]
  const float* shared_out;    // [rows, hidden]
  const float* shared_gate;   // [rows]
  float* out;                 // [rows, hidden]
  std::int64_t hidden;
  int k;
  int begin, end;
};

RONDO_DECLARE_KERNEL(route_range, const RouteRange& r)
RONDO_DECLARE_KERNEL(combine_range, const CombineRange& r)

}  // namespace rondo
