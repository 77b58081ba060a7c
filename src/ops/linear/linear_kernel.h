// The range kernel of linear: output columns [n_begin, n_end) of one part, all its rows.
#pragma once

#include <cstdint>

#include "ops/common/isa.h"
#include "tensor/coded_view.h"

namespace rondo {

struct LinearRange {
  CodedView weight;             // [n, k]
  const float* x;               // [any, k]
  const std::int32_t* in_rows;  // [rows] or null
  float* out;                   // [rows, out_width]
  std::int64_t out_width;
  int rows;
  std::int64_t n_begin, n_end;
};

RONDO_DECLARE_KERNEL(linear_range, const LinearRange& r)        // bf16
RONDO_DECLARE_KERNEL(linear_coded_range, const LinearRange& r)  // every other format

}  // namespace rondo
