#include "ops/pointwise/pointwise.h"

#include "base/random.h"
#include "ops/common/fork.h"
#include "ops/pointwise/pointwise_cuda.h"
#include "ops/pointwise/pointwise_kernel.h"

namespace rondo {

namespace {

// The same elementwise kernel over whole rows.
template <class Kernel>
void over_rows(Stream& s, Kernel* kernel, Tensor a, const float* b, float scale, Tensor out) {
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
  RONDO_ON_CUDA(s, embed(s, embedding, ids, copies, out));
  const auto kernel = RONDO_PICK(s.isa(), embed_range);
  fork_rows(s, out.rows(), out.width(), [&](int begin, int end) {
    kernel({.table = embedding.view, .ids = ids, .out = out.f32(), .copies = copies, .begin = begin, .end = end});
  });
}

void add(Stream& s, Tensor a, Tensor out) {
  const std::int64_t copies = out.width() / a.width();
  CHECK(copies * a.width() == out.width() && out.rows() >= a.rows());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, add(s, a, out));
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
  RONDO_ON_CUDA(s, gather_rows(s, x, rows, out));
  for (int i = 0; i < out.rows(); ++i) {
    std::copy_n(x.f32() + rows[i] * x.width(), x.width(), out.f32() + i * x.width());
  }
}

void side_by_side(Stream& s, Tensor a, Tensor b, Tensor out) {
  CHECK(a.width() + b.width() == out.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, side_by_side(s, a, b, out));
  for (int r = 0; r < a.rows(); ++r) {
    std::copy_n(a.f32() + r * a.width(), a.width(), out.f32() + r * out.width());
    std::copy_n(b.f32() + r * b.width(), b.width(), out.f32() + r * out.width() + a.width());
  }
}

void silu_product(Stream& s, Tensor gate, Tensor up, Tensor out) {
  CHECK(up.width() == gate.width() && gate.width() == out.width() && out.rows() >= gate.rows());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, silu_product(s, gate, up, out));
  over_rows(s, RONDO_PICK(s.isa(), silu_product_range), gate, up.f32(), 1, out);
}

void silu_scaled(Stream& s, Tensor x, float scale, Tensor out) {
  CHECK(x.width() == out.width() && out.rows() >= x.rows());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, silu_scaled(s, x, scale, out));
  over_rows(s, RONDO_PICK(s.isa(), silu_scaled_range), x, nullptr, scale, out);
}

void copy_rows(Stream& s, std::span<const RowCopy> copies, std::int64_t width) {
  if (s.is_dry() || copies.empty()) return;
  RONDO_ON_CUDA(s, copy_rows(s, copies, width));
  for (const RowCopy& each : copies) std::copy_n(each.from, width, each.to);
}

void fill_random(Stream& s, Tensor out, std::uint64_t seed, float half_width) {
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, fill_random(s, out, seed, half_width));
  CHECK(out.dtype == DType::F32);
  for (std::int64_t i = 0; i < out.shape.num_elements(); ++i) {
    const double even = unit_interval(random_bits(seed, static_cast<std::uint64_t>(i))) * 2 - 1;
    out.f32()[i] = half_width * static_cast<float>(even);
  }
}

void fill_bytes(Stream& s, Tensor out, std::uint64_t seed, const MadeUp::Bytes& pattern) {
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, fill_bytes(s, out, seed, pattern));
  CHECK(out.dtype == DType::U8);
  auto* to = static_cast<std::uint8_t*>(const_cast<void*>(out.data));
  for (std::int64_t i = 0; i < out.shape.num_elements(); ++i) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(i / 8));
    to[i] = pattern.at(i, static_cast<std::uint8_t>(bits >> (i % 8 * 8)));
  }
}

}  // namespace rondo
