#include "ops/hyper/hyper_cuda.h"
#include "ops/linear/linear_cuda.h"
#include "ops/moe/mixture_sum.cuh"

namespace rondo::cuda {

namespace {

constexpr int kThreads = 256;

__global__ void read_streams(const float* normed, const float* omega, float* x, int hidden, int streams) {
  after_all_before();
  const int d = blockIdx.x * kThreads + threadIdx.x;
  if (d >= hidden) return;
  const auto row = static_cast<std::int64_t>(blockIdx.y);
  float sum = 0;
  for (int i = 0; i < streams; ++i) {
    const std::int64_t at = (row * streams + i) * hidden + d;
    sum += sigmoid(omega[at]) * normed[at];
  }
  x[row * hidden + d] = sum / static_cast<float>(streams);
}

// How much of y goes to a stream.
__device__ float kappa_of(float inject, int streams) { return 2.0F * sigmoid(inject / static_cast<float>(streams)); }

__global__ void inject_streams(const float* y, const float* inject, float* to, int hidden, int streams) {
  after_all_before();
  const int d = blockIdx.x * kThreads + threadIdx.x;
  if (d >= hidden) return;
  const auto row = static_cast<std::int64_t>(blockIdx.y);
  const float value = y[row * hidden + d];
  for (int i = 0; i < streams; ++i) {
    float& stream = to[(row * streams + i) * hidden + d];
    stream = fmaf(kappa_of(inject[row * streams + i], streams), value, stream);
  }
}

// What is injected: a block's output, or a mixture's sum, elements [d, d + Wide) of a row.
struct Whole {
  const float* y;
  template <int Wide>
  __device__ void read(std::int64_t row, int d, int hidden, float (&value)[Wide]) const {
    read_wide<Wide>(y + row * hidden, d, hidden, value);
  }
};
struct Summed {
  SumArgs sum;
  template <int Wide>
  __device__ void read(std::int64_t row, int d, int hidden, float (&value)[Wide]) const {
    sum.add_up<Wide>(row, d, hidden, value);
  }
};

// The same for a group, a stream of a row, which is then normed.
template <class Source>
struct Inject {
  Source source;
  const float* inject;
  float* to;
  int streams;
  template <int Wide>
  __device__ void change(std::int64_t group, int d, int hidden, float (&x)[Wide]) const {
    const float kappa = kappa_of(inject[group], streams);
    float value[Wide];
    source.template read<Wide>(group / streams, d, hidden, value);
#pragma unroll
    for (int j = 0; j < Wide; ++j) x[j] = fmaf(kappa, value[j], x[j]);
  }
  template <int Wide>
  __device__ void keep(std::int64_t group, int d, int hidden, const float (&x)[Wide]) const {
    write_wide<Wide>(to + group * hidden, d, x);
  }
};

template <class Source>
void inject_norm(Stream& s, Source source, Tensor inject, Tensor streams, Tensor gain, float eps, Tensor normed) {
  if (streams.rows() == 0) return;
  const auto count = static_cast<int>(inject.width());
  launch_norm(s, "hyper_inject_norm", streams.rows(), norm_args(streams, gain, {eps, streams.width() / count}, normed),
              Inject<Source>{source, inject.f32(), streams.f32(), count});
}

dim3 grid_of(std::int64_t hidden, int rows) {
  return {static_cast<unsigned>((hidden + kThreads - 1) / kThreads), static_cast<unsigned>(rows)};
}

}  // namespace

void hyper_read(Stream& s, Tensor normed, Tensor omega, Tensor x) {
  if (x.rows() == 0) return;
  launch(s, "hyper_read", {grid_of(x.width(), x.rows()), kThreads, 0}, read_streams, normed.f32(), omega.f32(), x.f32(),
         static_cast<int>(x.width()), static_cast<int>(normed.width() / x.width()));
}

void hyper_mix(Stream& s, Tensor normed, Tensor mix, const Weight& up, float share, Tensor omega, Tensor x) {
  if (x.rows() == 0) return;
  const LinearPart part{.weight = up, .x = mix, .out = omega, .rows = mix.rows()};
  linear(s, std::span(&part, 1), {.silu_scale = share});
  cuda::hyper_read(s, normed, omega, x);
}

void hyper_inject(Stream& s, Tensor y, Tensor inject, Tensor streams) {
  if (y.rows() == 0) return;
  launch(s, "hyper_inject", {grid_of(y.width(), y.rows()), kThreads, 0}, inject_streams, y.f32(), inject.f32(),
         streams.f32(), static_cast<int>(y.width()), static_cast<int>(inject.width()));
}

void hyper_inject_norm(Stream& s, Tensor y, Tensor inject, Tensor streams, Tensor gain, float eps, Tensor normed) {
  inject_norm(s, Whole{y.f32()}, inject, streams, gain, eps, normed);
}

void hyper_inject_norm(Stream& s, const MixtureSum& sum, Tensor inject, Tensor streams, Tensor gain, float eps,
                       Tensor normed) {
  inject_norm(s, Summed{sum_args(sum)}, inject, streams, gain, eps, normed);
}

}  // namespace rondo::cuda
