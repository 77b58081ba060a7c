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

void embed(Stream& s, const Weight& embedding, const std::int32_t* ids, int copies, Tensor out) {
  const std::int64_t width = embedding.shape[1];
  CHECK(out.width() == copies * width);
  if (s.is_dry()) return;
  const auto kernel = RONDO_PICK(s.isa(), embed_range);
  fork_rows(s, out.rows(), out.width(), [&](int begin, int end) {
    kernel({.table = embedding.view, .ids = ids, .out = out.f32(), .copies = copies, .begin = begin, .end = end});
  });
}

void add(Stream& s, Tensor a, Tensor out) {
  const std::int64_t copies = out.width() / a.width();
  CHECK(copies * a.width() == out.width() && out.rows() >= a.rows());
  if (s.is_dry()) return;
  const auto kernel = RONDO_PICK(s.isa(), add_range);
  fork_rows(s, a.rows(), out.width(), [&](int begin, int end) {
    for (std::int64_t i = begin * copies; i < end * copies; ++i) {
      kernel({.a = a.f32() + i / copies * a.width(),
              .b = nullptr,
              .out = out.f32() + i * a.width(),
              .scale = 1,
              .begin = 0,
              .end = a.width()});
    }
  });
}

void gather_rows(Stream& s, Tensor x, const std::int32_t* rows, Tensor out) {
  CHECK(x.width() == out.width());
  if (s.is_dry()) return;
  for (int i = 0; i < out.rows(); ++i) {
    std::copy_n(x.f32() + rows[i] * x.width(), x.width(), out.f32() + i * x.width());
  }
}

void side_by_side(Stream& s, Tensor a, Tensor b, Tensor out) {
  CHECK(a.width() + b.width() == out.width());
  if (s.is_dry()) return;
  for (int r = 0; r < a.rows(); ++r) {
    std::copy_n(a.f32() + r * a.width(), a.width(), out.f32() + r * out.width());
    std::copy_n(b.f32() + r * b.width(), b.width(), out.f32() + r * out.width() + a.width());
  }
}

void silu_product(Stream& s, Tensor gate, Tensor up, Tensor out) {
  CHECK(up.width() == gate.width());
  over_rows(s, RONDO_PICK(s.isa(), silu_product_range), gate, up.f32(), 1, out);
}

void silu_scaled(Stream& s, Tensor x, float scale, Tensor out) {
  over_rows(s, RONDO_PICK(s.isa(), silu_scaled_range), x, nullptr, scale, out);
}

}  // namespace rondo
