#include "ops/common/simd.h"
#include "ops/pointwise/pointwise_kernel.h"
#include "ops/weight/decode_kernel.h"

namespace rondo::RONDO_ISA {

void add_range(const PointwiseRange& r) {
  for_lanes(r.end - r.begin, [&](std::int64_t at, int lanes) {
    const std::int64_t i = r.begin + at;
    store_n(r.out + i, load_n(r.out + i, lanes) + load_n(r.a + i, lanes), lanes);
  });
}

void silu_product_range(const PointwiseRange& r) {
  for_lanes(r.end - r.begin, [&](std::int64_t at, int lanes) {
    const std::int64_t i = r.begin + at;
    store_n(r.out + i, silu(load_n(r.a + i, lanes)) * load_n(r.b + i, lanes), lanes);
  });
}

void silu_scaled_range(const PointwiseRange& r) {
  for_lanes(r.end - r.begin, [&](std::int64_t at, int lanes) {
    const std::int64_t i = r.begin + at;
    store_n(r.out + i, silu(all(r.scale) * load_n(r.a + i, lanes)), lanes);
  });
}

void embed_range(const EmbedRange& r) {
  const std::int64_t width = r.table.columns;
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    float* out = r.out + row * r.copies * width;
    for (std::int64_t k = 0; k < width; k += kDecodeColumns) {
      const int count = width - k < kDecodeColumns ? static_cast<int>(width - k) : kDecodeColumns;
      decode_columns(r.table, r.ids[row], k, count, out + k);
    }
    for_lanes(width, [&](std::int64_t d, int lanes) {
      const F32 value = load_n(out + d, lanes);
      for (int copy = 1; copy < r.copies; ++copy) store_n(out + copy * width + d, value, lanes);
    });
  }
}

}  // namespace rondo::RONDO_ISA
