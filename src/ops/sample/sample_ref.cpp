#include <cmath>
#include <limits>

#include "ops/sample/sample_kernel.h"

namespace rondo::reference {

void highest_logit(LogitRow& r) {
  r.best = 0;
  for (std::int64_t i = 1; i < r.n; ++i) {
    if (r.logits[i] > r.logits[r.best]) r.best = i;
  }
}

void sum_of_exps(LogitRow& r) {
  r.total = 0;
  for (std::int64_t i = 0; i < r.n; ++i) r.total += std::exp((r.logits[i] - r.most) * r.scale);
}

void find_likely(LogitScan& r) {
  for (; r.begin < r.row.n && r.num_found < r.room; ++r.begin) {
    const float logit = r.row.logits[r.begin];
    if (logit > r.above) r.found[r.num_found++] = {logit, static_cast<std::int32_t>(r.begin)};
  }
}

void forbid_logits(LogitMask& m) {
  for (std::int64_t i = 0; i < m.n; ++i) {
    const bool is_allowed = i / 32 < m.words && (m.allowed[i / 32] >> (i % 32) & 1u) != 0;
    if (!is_allowed) m.logits[i] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace rondo::reference
