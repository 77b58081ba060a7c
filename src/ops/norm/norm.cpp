#include "ops/norm/norm.h"

#include "ops/common/fork.h"
#include "ops/norm/norm_cuda.h"
#include "ops/norm/norm_kernel.h"
#include "ops/pointwise/pointwise.h"

namespace rondo {

void rms_norm(Stream& s, Tensor x, Tensor gain, NormSpec spec, Tensor out) {
  CHECK(gain.shape.num_elements() == x.width() && out.width() == x.width() && out.rows() >= x.rows());
  CHECK(spec.group > 0 && x.width() % spec.group == 0);
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, rms_norm(s, x, gain, spec, out));
  const auto kernel = RONDO_PICK(s.isa(), rms_norm_range);
  fork_rows(s, x.rows(), x.width(), [&](int begin, int end) {
    kernel({.x = x.f32(),
            .gain = gain.f32(),
            .gate = nullptr,
            .out = out.f32(),
            .width = x.width(),
            .group = spec.group,
            .eps = spec.eps,
            .sigmoid_gate = false,
            .begin = begin,
            .end = end});
  });
}

void add_norm(Stream& s, Tensor y, Tensor residual, Tensor gain, NormSpec spec, Tensor out) {
  CHECK(y.width() == residual.width() && y.rows() == residual.rows());
  CHECK(gain.shape.num_elements() == residual.width() && out.width() == residual.width());
  CHECK(out.rows() >= residual.rows() && spec.group > 0 && residual.width() % spec.group == 0);
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, add_norm(s, y, residual, gain, spec, out));
  add(s, y, residual);
  rms_norm(s, residual, gain, spec, out);
}

void gated_norm(Stream& s, Tensor x, Tensor gate, Tensor gain, float eps, Gate act, Tensor out) {
  const std::int64_t head_dim = gain.shape.num_elements();
  CHECK(x.width() % head_dim == 0 && gate.width() == x.width() && out.width() == x.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, gated_norm(s, x, gate, gain, eps, act, out));
  const auto kernel = RONDO_PICK(s.isa(), gated_norm_range);
  fork_rows(s, x.rows(), 4 * x.width(), [&](int begin, int end) {
    kernel({.x = x.f32(),
            .gain = gain.f32(),
            .gate = gate.f32(),
            .out = out.f32(),
            .width = x.width(),
            .group = head_dim,
            .eps = eps,
            .sigmoid_gate = act == Gate::Sigmoid,
            .begin = begin,
            .end = end});
  });
}

}  // namespace rondo
