#include <cmath>

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

}  // namespace rondo::reference
