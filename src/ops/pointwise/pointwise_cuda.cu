#include <algorithm>

#include "base/random.h"
#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/pointwise/pointwise_cuda.h"
#include "ops/weight/bf16_lanes.h"

namespace rondo::cuda {

namespace {

constexpr int kThreads = 256;

unsigned blocks_of(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

// step(index) for every index below n, a thread each.
template <class Step>
__global__ void for_each(std::int64_t n, Step step) {
  after_all_before();
  const auto i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) step(i);
}

template <class Step>
void over(Stream& s, std::int64_t n, const char* name, Step step) {
  if (n == 0) return;
  launch(s, name, {blocks_of(n), kThreads}, for_each<Step>, n, step);
}

struct Copies {
  static constexpr int kMost = 128;  // 2 KiB of a launch's 4 KiB of arguments
  RowCopy rows[kMost];
};

__global__ void copy_each(__grid_constant__ const Copies copies, std::int64_t width) {
  after_all_before();
  const RowCopy row = copies.rows[blockIdx.y];
  const auto i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < width) row.to[i] = row.from[i];
}

}  // namespace

void embed(Stream& s, const Weight& embedding, const std::int32_t* ids, int copies, Tensor out) {
  const CodedView table = embedding.view;
  float* to = out.f32();
  const std::int64_t width = embedding.shape[1], all = out.width();
  over(s, out.rows() * all, "embed",
       [=] __device__(std::int64_t i) { to[i] = bf16_lanes::value_at(table, ids[i / all], i % width); });
}

void add(Stream& s, Tensor a, Tensor out) {
  const float* from = a.f32();
  float* to = out.f32();
  const std::int64_t width = a.width(), all = out.width();
  over(s, a.rows() * all, "add", [=] __device__(std::int64_t i) { to[i] += from[i / all * width + i % width]; });
}

void gather_rows(Stream& s, Tensor x, const std::int32_t* rows, Tensor out) {
  const float* from = x.f32();
  float* to = out.f32();
  const std::int64_t width = out.width();
  over(s, out.rows() * width, "gather_rows",
       [=] __device__(std::int64_t i) { to[i] = from[rows[i / width] * width + i % width]; });
}

void side_by_side(Stream& s, Tensor a, Tensor b, Tensor out) {
  const float *left = a.f32(), *right = b.f32();
  float* to = out.f32();
  const std::int64_t left_width = a.width(), right_width = b.width(), width = out.width();
  over(s, a.rows() * width, "side_by_side", [=] __device__(std::int64_t i) {
    const std::int64_t row = i / width, d = i % width;
    to[i] = d < left_width ? left[row * left_width + d] : right[row * right_width + d - left_width];
  });
}

void silu_product(Stream& s, Tensor gate, Tensor up, Tensor out) {
  const float *a = gate.f32(), *b = up.f32();
  float* to = out.f32();
  over(s, gate.shape.num_elements(), "silu_product", [=] __device__(std::int64_t i) { to[i] = silu(a[i]) * b[i]; });
}

void silu_scaled(Stream& s, Tensor x, float scale, Tensor out) {
  const float* a = x.f32();
  float* to = out.f32();
  over(s, x.shape.num_elements(), "silu_scaled", [=] __device__(std::int64_t i) { to[i] = silu(scale * a[i]); });
}

void copy_rows(Stream& s, std::span<const RowCopy> copies, std::int64_t width) {
  while (!copies.empty()) {
    const std::size_t count = std::min<std::size_t>(copies.size(), Copies::kMost);
    Copies some;
    std::copy_n(copies.begin(), count, some.rows);
    launch(s, "copy_rows", {dim3(blocks_of(width), static_cast<unsigned>(count)), kThreads, 0}, copy_each, some, width);
    copies = copies.subspan(count);
  }
}

void fill_random(Stream& s, Tensor out, std::uint64_t seed, float half_width) {
  const bool is_bf16 = out.dtype == DType::BF16;
  void* to = const_cast<void*>(out.data);
  over(s, out.shape.num_elements(), "fill_random", [=] __device__(std::int64_t i) {
    const std::uint64_t bits = mix64(mix64(seed) + static_cast<std::uint64_t>(i));
    const float value = static_cast<float>(static_cast<int>(bits >> 40) - (1 << 23)) * (half_width / (1 << 23));
    if (is_bf16) {
      put(static_cast<std::uint16_t*>(to) + i, value);
    } else {
      put(static_cast<float*>(to) + i, value);
    }
  });
}

void fill_bytes(Stream& s, Tensor out, std::uint64_t seed, const MadeUp::Bytes& pattern) {
  auto* to = static_cast<std::uint8_t*>(const_cast<void*>(out.data));
  const std::int64_t n = out.shape.num_elements();
  over(s, (n + 7) / 8, "fill_bytes", [=] __device__(std::int64_t eight) {
    const std::uint64_t bits = mix64(mix64(mix64(seed) + static_cast<std::uint64_t>(eight)));
    for (std::int64_t i = 8 * eight; i < min(n, 8 * eight + 8); ++i) {
      to[i] = pattern.at(i, static_cast<std::uint8_t>(bits >> (i % 8 * 8)));
    }
  });
}

}  // namespace rondo::cuda
