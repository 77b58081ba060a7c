#include <cmath>

#include "ops/pointwise/pointwise_kernel.h"
#include "tensor/tensor.h"

namespace rondo::reference {

namespace {
float silu(float x) { return x / (1.0F + std::exp(-x)); }
}  // namespace

void add_range(const PointwiseRange& r) {
  for (std::int64_t i = r.begin; i < r.end; ++i) r.out[i] += r.a[i];
}

void silu_product_range(const PointwiseRange& r) {
  for (std::int64_t i = r.begin; i < r.end; ++i) r.out[i] = silu(r.a[i]) * r.b[i];
}

void silu_scaled_range(const PointwiseRange& r) {
  for (std::int64_t i = r.begin; i < r.end; ++i) r.out[i] = silu(r.scale * r.a[i]);
}

void embed_range(const EmbedRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (int copy = 0; copy < r.copies; ++copy) {
      for (std::int64_t d = 0; d < r.width; ++d) {
        r.out[(row * r.copies + copy) * r.width + d] = to_float(BFloat16{r.table[r.ids[row] * r.width + d]});
      }
    }
  }
}

}  // namespace rondo::reference
