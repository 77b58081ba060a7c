// Range kernels of the elementwise steps: elements [begin, end).
#pragma once

#include <cstdint>

#include "ops/common/isa.h"
#include "tensor/coded_view.h"

namespace rondo {

struct PointwiseRange {
  const float* a;
  const float* b;
  float* out;
  float scale;
  std::int64_t begin, end;
};

struct EmbedRange {
  CodedView table;  // [vocab, width]
  const std::int32_t* ids;
  float* out;  // [rows, copies, width]
  int copies;
  int begin, end;
};

RONDO_DECLARE_KERNEL(add_range, const PointwiseRange& r)
RONDO_DECLARE_KERNEL(silu_product_range, const PointwiseRange& r)
RONDO_DECLARE_KERNEL(silu_scaled_range, const PointwiseRange& r)
RONDO_DECLARE_KERNEL(embed_range, const EmbedRange& r)

}  // namespace rondo
