#include "ops/pointwise/pointwise.h"

#include "ops/common/fork.h"
#include "ops/pointwise/pointwise_kernel.h"

namespace rondo {

namespace {

// The same elementwise kernel over whole rows.
template <class Kernel>
void over_rows(Stream& s, Kernel* kernel, Tensor a, const float* b, float scale, Tensor out) {
  CHECK(a.width() == out.width() && out.rows() >= a.rows());
  if (s.is_dry()) return;
  fork_rows(s, a.rows(), a.width(), [&](int begin, int end) {
    kernel(
        {.a = a.f32(), .b = b, .out = out.f32(), .scale = scale, .begin = begin * a.width(), .end = end * a.width()});
  });
}

}  // namespace

void embed(Stream& s, Tensor embedding, const std::int32_t* ids, int copies, Tensor out) {
  const std::int64_t width = embedding.shape[1];
  CHECK(embedding.dtype == DType::BF16 && out.width() == copies * width);
  if (s.is_dry()) return;
  const auto kernel = RONDO_PICK(s.isa(), embed_range);
  fork_rows(s, out.rows(), out.width(), [&](int begin, int end) {
    kernel({.table = embedding.as<std::uint16_t>(),
            .ids = ids,
            .out = out.f32(),
            .width = width,
            .copies = copies,
            .begin = begin,
            .end = end});
  });
}

void add(Stream& s, Tensor a, Tensor out) { over_rows(s, RONDO_PICK(s.isa(), add_range), a, nullptr, 1, out); }

void silu_product(Stream& s, Tensor gate, Tensor up, Tensor out) {
  CHECK(up.width() == gate.width());
  over_rows(s, RONDO_PICK(s.isa(), silu_product_range), gate, up.f32(), 1, out);
}

void silu_scaled(Stream& s, Tensor x, float scale, Tensor out) {
  over_rows(s, RONDO_PICK(s.isa(), silu_scaled_range), x, nullptr, scale, out);
}

}  // namespace rondo
