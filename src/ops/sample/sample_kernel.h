// Passes over a whole row of logits: what drawing costs with a vocabulary of a quarter million.
#pragma once

#include <cstdint>

#include "ops/common/isa.h"

namespace rondo {

struct LogitRow {
  const float* logits;  // [n]
  std::int64_t n;
  float most;         // sum_of_exps: subtracted first
  float scale;        // sum_of_exps: then multiplied by, before the exponential
  std::int64_t best;  // out, highest_logit: index of the highest, the first of equals
  float total;        // out, sum_of_exps
};

RONDO_DECLARE_KERNEL(highest_logit, LogitRow& r)
RONDO_DECLARE_KERNEL(sum_of_exps, LogitRow& r)

}  // namespace rondo
