#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/hyper/hyper_cuda.h"

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

__global__ void inject_streams(const float* y, const float* inject, float* to, int hidden, int streams) {
  after_all_before();
  const int d = blockIdx.x * kThreads + threadIdx.x;
  if (d >= hidden) return;
  const auto row = static_cast<std::int64_t>(blockIdx.y);
  const float value = y[row * hidden + d];
  for (int i = 0; i < streams; ++i) {
    const float kappa = 2.0F * sigmoid(inject[row * streams + i] / static_cast<float>(streams));
    to[(row * streams + i) * hidden + d] += kappa * value;
  }
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

void hyper_inject(Stream& s, Tensor y, Tensor inject, Tensor streams) {
  if (y.rows() == 0) return;
  launch(s, "hyper_inject", {grid_of(y.width(), y.rows()), kThreads, 0}, inject_streams, y.f32(), inject.f32(),
         streams.f32(), static_cast<int>(y.width()), static_cast<int>(inject.width()));
}

}  // namespace rondo::cuda
