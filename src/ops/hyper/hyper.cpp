#include "ops/hyper/hyper.h"

#include "ops/common/fork.h"
#include "ops/hyper/hyper_cuda.h"
#include "ops/hyper/hyper_kernel.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_cuda.h"
#include "ops/norm/norm.h"
#include "ops/pointwise/pointwise.h"

namespace rondo {

void hyper_read(Stream& s, Tensor normed, Tensor omega, Tensor x) {
  const auto streams = static_cast<int>(normed.width() / x.width());
  CHECK(omega.width() == normed.width() && normed.width() == streams * x.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, hyper_read(s, normed, omega, x));
  const auto kernel = RONDO_PICK(s.isa(), hyper_read_range);
  fork_rows(s, x.rows(), 4 * normed.width(), [&](int begin, int end) {
    kernel({.a = normed.f32(),
            .b = omega.f32(),
            .out = x.f32(),
            .hidden = x.width(),
            .streams = streams,
            .begin = begin,
            .end = end});
  });
}

void hyper_mix(Stream& s, Tensor normed, Tensor mix, const Weight& up, Scratch scratch, Tensor x) {
  CHECK(up.shape == (Shape{normed.width(), mix.width()}));
  const Tensor omega = scratch.take_f32({normed.rows(), normed.width()});
  if (s.is_dry()) return;
  const float share = static_cast<float>(x.width()) / static_cast<float>(normed.width());
  RONDO_ON_CUDA(s, hyper_mix(s, normed, mix, up, share, omega, x));
  silu_scaled(s, mix, share, mix);
  linear(s, up, mix, omega);
  hyper_read(s, normed, omega, x);
}

void hyper_inject(Stream& s, Tensor y, Tensor inject, Tensor streams) {
  const auto num_streams = static_cast<int>(inject.width());
  CHECK(streams.width() == num_streams * y.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, hyper_inject(s, y, inject, streams));
  const auto kernel = RONDO_PICK(s.isa(), hyper_inject_range);
  fork_rows(s, y.rows(), streams.width(), [&](int begin, int end) {
    kernel({.a = y.f32(),
            .b = inject.f32(),
            .out = streams.f32(),
            .hidden = y.width(),
            .streams = num_streams,
            .begin = begin,
            .end = end});
  });
}

void hyper_inject_norm(Stream& s, Tensor y, Tensor inject, Tensor streams, Tensor gain, float eps, Tensor normed) {
  CHECK(streams.width() == inject.width() * y.width() && y.rows() == streams.rows());
  CHECK(gain.shape.num_elements() == streams.width() && normed.width() == streams.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, hyper_inject_norm(s, y, inject, streams, gain, eps, normed));
  hyper_inject(s, y, inject, streams);
  rms_norm(s, streams, gain, {eps, y.width()}, normed);
}

void hyper_inject_norm(Stream& s, const MixtureSum& sum, Tensor y, Tensor inject, Tensor streams, Tensor gain,
                       float eps, Tensor normed) {
  CHECK(streams.width() == inject.width() * sum.shared.width() && sum.shared.rows() == streams.rows());
  CHECK(gain.shape.num_elements() == streams.width() && normed.width() == streams.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, hyper_inject_norm(s, sum, inject, streams, gain, eps, normed));
  add_up(s, sum, y);
  hyper_inject_norm(s, y, inject, streams, gain, eps, normed);
}

}  // namespace rondo
