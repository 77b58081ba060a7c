#include "ops/common/simd.h"
#include "ops/pointwise/pointwise_kernel.h"

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
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    const std::uint16_t* from = r.table + r.ids[row] * r.width;
    float* out = r.out + row * r.copies * r.width;
    for_lanes(r.width, [&](std::int64_t d, int lanes) {
      const F32 value = load_bf16_first(from + d, lanes);
      for (int copy = 0; copy < r.copies; ++copy) store_n(out + copy * r.width + d, value, lanes);
    });
  }
}

}  // namespace rondo::RONDO_ISA
