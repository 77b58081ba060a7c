// The range kernel of linear: output columns [n_begin, n_end) of one part, all its rows.
#pragma once

#include <cstdint>

#include "ops/common/isa.h"

namespace rondo {

struct LinearRange {
  const std::uint16_t* weight;  // [n, k]
  std::int64_t k;
  const float* x;               // [any, k]
  const std::int32_t* in_rows;  // [rows] or null
  float* out;                   // [rows, out_width]
  std::int64_t out_width;
  int rows;
  std::int64_t n_begin, n_end;
};

RONDO_DECLARE_KERNEL(linear_range, const LinearRange& r)

}  // namespace rondo
