// Range kernel of the n-gram gate: rows [begin, end).
#pragma once

#include <cstdint>

#include "ops/common/isa.h"

namespace rondo {

struct NgramGateRange {
  const float* key;
  const float* query;
  const float* value;
  float* out;
  std::int64_t hidden;
  int streams;
  int begin, end;
};

RONDO_DECLARE_KERNEL(ngram_gate_range, const NgramGateRange& r)

}  // namespace rondo
