#include "ops/common/simd.h"
#include "ops/hyper/hyper_kernel.h"

namespace rondo::RONDO_ISA {

void hyper_read_range(const HyperRange& r) {
  const F32 share = all(1.0F / static_cast<float>(r.streams));
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    const std::int64_t first = row * r.streams * r.hidden;
    for_lanes(r.hidden, [&](std::int64_t d, int lanes) {
      F32 sum = zeros();
      for (int s = 0; s < r.streams; ++s) {
        const std::int64_t at = first + s * r.hidden + d;
        sum = fma(sigmoid(load_n(r.b + at, lanes)), load_n(r.a + at, lanes), sum);
      }
      store_n(r.out + row * r.hidden + d, sum * share, lanes);
    });
  }
}

void hyper_inject_range(const HyperRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (int s = 0; s < r.streams; ++s) {
      const float inject = r.b[row * r.streams + s] / static_cast<float>(r.streams);
      const F32 kappa = all(2.0F / (1.0F + __builtin_expf(-inject)));
      float* stream = r.out + (row * r.streams + s) * r.hidden;
      for_lanes(r.hidden, [&](std::int64_t d, int lanes) {
        store_n(stream + d, fma(kappa, load_n(r.a + row * r.hidden + d, lanes), load_n(stream + d, lanes)), lanes);
      });
    }
  }
}

}  // namespace rondo::RONDO_ISA
