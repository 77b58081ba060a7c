#include <cmath>

#include "ops/hyper/hyper_kernel.h"

namespace rondo::reference {

namespace {
float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }
}  // namespace

void hyper_read_range(const HyperRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t d = 0; d < r.hidden; ++d) {
      float sum = 0;
      for (int s = 0; s < r.streams; ++s) {
        const std::int64_t at = (row * r.streams + s) * r.hidden + d;
        sum += sigmoid(r.b[at]) * r.a[at];
      }
      r.out[row * r.hidden + d] = sum / static_cast<float>(r.streams);
    }
  }
}

void hyper_inject_range(const HyperRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (int s = 0; s < r.streams; ++s) {
      const float kappa = 2.0F * sigmoid(r.b[row * r.streams + s] / static_cast<float>(r.streams));
      for (std::int64_t d = 0; d < r.hidden; ++d) {
        r.out[(row * r.streams + s) * r.hidden + d] += kappa * r.a[row * r.hidden + d];
      }
    }
  }
}

}  // namespace rondo::reference
