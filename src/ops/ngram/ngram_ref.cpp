#include <algorithm>
#include <cmath>

#include "ops/ngram/ngram_kernel.h"

namespace rondo::reference {

void ngram_gate_range(const NgramGateRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (int i = 0; i < r.streams; ++i) {
      const std::int64_t at = (row * r.streams + i) * r.hidden;
      float dot = 0;
      for (std::int64_t d = 0; d < r.hidden; ++d) dot += r.key[at + d] * r.query[at + d];
      const float score = dot / std::sqrt(static_cast<float>(r.hidden));
      const float root = std::copysign(std::sqrt(std::max(std::abs(score), 1e-6F)), score);
      const float open = score == 0 ? 0.5F : 1.0F / (1.0F + std::exp(-root));
      for (std::int64_t d = 0; d < r.hidden; ++d) r.out[at + d] = open * r.value[row * r.hidden + d];
    }
  }
}

}  // namespace rondo::reference
