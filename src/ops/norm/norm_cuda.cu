#include "ops/norm/norm.cuh"
#include "ops/norm/norm_cuda.h"

namespace rondo::cuda {

namespace {

// residual += y, and that is normed. Groups of the two lie alike.
struct Add {
  const float* y;
  float* residual;
  template <int Wide>
  __device__ void change(std::int64_t group, int d, int size, float (&x)[Wide]) const {
    float more[Wide];
    read_wide<Wide>(y + group * size, d, size, more);
#pragma unroll
    for (int j = 0; j < Wide; ++j) x[j] += more[j];
  }
  template <int Wide>
  __device__ void keep(std::int64_t group, int d, int size, const float (&x)[Wide]) const {
    write_wide<Wide>(residual + group * size, d, x);
  }
};

}  // namespace

void rms_norm(Stream& s, Tensor x, Tensor gain, NormSpec spec, Tensor out) {
  if (x.rows() == 0) return;
  launch_norm(s, "norm", x.rows(), norm_args(x, gain, spec, out), Nothing{});
}

void add_norm(Stream& s, Tensor y, Tensor residual, Tensor gain, NormSpec spec, Tensor out) {
  if (residual.rows() == 0) return;
  launch_norm(s, "add_norm", residual.rows(), norm_args(residual, gain, spec, out), Add{y.f32(), residual.f32()});
}

void gated_norm(Stream& s, Tensor x, Tensor gate, Tensor gain, float eps, Gate act, Tensor out) {
  if (x.rows() == 0) return;
  const auto group = static_cast<int>(gain.shape.num_elements());
  launch_norm(s, "gated_norm", x.rows(),
              {x.f32(), gain.f32(), gate.f32(), out.f32(), group, static_cast<int>(x.width()) / group, 1, eps,
               act == Gate::Sigmoid},
              Nothing{});
}

}  // namespace rondo::cuda
