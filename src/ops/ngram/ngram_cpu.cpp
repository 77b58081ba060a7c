#include "ops/common/simd.h"
#include "ops/ngram/ngram_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

// sigmoid(sign(s) sqrt(max(|s|, 1e-6))); the sign of 0 is 0.
float open_gate(float score) {
  if (score == 0) return 0.5F;
  const float size = score < 0 ? -score : score;
  const float root = __builtin_sqrtf(size > 1e-6F ? size : 1e-6F);
  return 1.0F / (1.0F + __builtin_expf(score < 0 ? root : -root));
}

}  // namespace

void ngram_gate_range(const NgramGateRange& r) {
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(r.hidden));
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (int i = 0; i < r.streams; ++i) {
      const std::int64_t at = (row * r.streams + i) * r.hidden;
      F32 dot = zeros();
      for_lanes(r.hidden, [&](std::int64_t d, int lanes) {
        dot = fma(load_n(r.key + at + d, lanes), load_n(r.query + at + d, lanes), dot);
      });
      const F32 open = all(open_gate(sum(dot) * scale));
      for_lanes(r.hidden, [&](std::int64_t d, int lanes) {
        store_n(r.out + at + d, open * load_n(r.value + row * r.hidden + d, lanes), lanes);
      });
    }
  }
}

}  // namespace rondo::RONDO_ISA
