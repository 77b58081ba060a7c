// Range kernels of the hyper-connection: rows [begin, end).
#pragma once

#include <cstdint>

#include "ops/common/isa.h"

namespace rondo {

struct HyperRange {
  const float* a;  // read: N [rows, streams, hidden]; inject: y [rows, hidden]
  const float* b;  // read: omega, as N; inject: [rows, streams]
  float* out;      // read: x [rows, hidden]; inject: R [rows, streams, hidden]
  std::int64_t hidden;
  int streams;
  int begin, end;
};

RONDO_DECLARE_KERNEL(hyper_read_range, const HyperRange& r)
RONDO_DECLARE_KERNEL(hyper_inject_range, const HyperRange& r)

}  // namespace rondo
