#include <cmath>

#include "ops/pointwise/pointwise_kernel.h"
#include "tensor/weight.h"

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
  const std::int64_t width = r.table.columns;
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t copy = row * r.copies; copy < (row + 1) * r.copies; ++copy) {
      decode(r.table, r.ids[row], 0, std::span(r.out + copy * width, static_cast<std::size_t>(width)));
    }
  }
}

}  // namespace rondo::reference
