#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/norm/norm_cuda.h"

namespace rondo::cuda {

namespace {

struct NormArgs {
  const float* x;
  const float* gain;
  const float* gate;  // gated_norm
  float* out;
  int group, groups_per_row, gain_groups;  // gain holds gain_groups groups, one after the other for a row's
  float eps;
  bool sigmoid_gate;
};

// Wide elements from d on, zeros past the end.
template <int Wide>
__device__ void read_wide(const float* from, int d, int end, float* to) {
  if constexpr (Wide == 4) {
    const float4 four = d < end ? *reinterpret_cast<const float4*>(from + d) : make_float4(0, 0, 0, 0);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    to[0] = d < end ? from[d] : 0.0F;
  }
}

// One block a group, its elements in registers between the sum and the writing, four by four where they lie so.
template <int Threads, int Each, bool Fours>
__global__ void __launch_bounds__(Threads) norm_groups(NormArgs a) {
  after_all_before();
  const auto at = static_cast<std::int64_t>(blockIdx.x) * a.group;
  const float* gain = a.gain + static_cast<std::int64_t>(blockIdx.x % a.groups_per_row % a.gain_groups) * a.group;
  constexpr int kWide = Fours ? 4 : 1;
  float x[Each][kWide];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int d = (i * Threads + threadIdx.x) * kWide;
    read_wide<kWide>(a.x + at, d, a.group, x[i]);
#pragma unroll
    for (int j = 0; j < kWide; ++j) squares = fmaf(x[i][j], x[i][j], squares);
  }
  const float scale = rsqrtf(block_sum<Threads>(squares) / static_cast<float>(a.group) + a.eps);
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int d = (i * Threads + threadIdx.x) * kWide;
    if (d >= a.group) break;
    float gains[kWide], gates[kWide] = {};
    read_wide<kWide>(gain, d, a.group, gains);
    if (a.gate != nullptr) read_wide<kWide>(a.gate + at, d, a.group, gates);
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      x[i][j] *= scale * gains[j];
      if (a.gate != nullptr) x[i][j] *= a.sigmoid_gate ? sigmoid(gates[j]) : silu(gates[j]);
    }
    if constexpr (Fours) {
      *reinterpret_cast<float4*>(a.out + at + d) = make_float4(x[i][0], x[i][1], x[i][2], x[i][3]);
    } else {
      a.out[at + d] = x[i][0];
    }
  }
}

template <int Threads, int Each, bool Fours>
void launch_as(Stream& s, unsigned blocks, const NormArgs& args) {
  CHECK(args.group <= Threads * Each * (Fours ? 4 : 1));
  launch(s, "norm", {blocks, Threads, 0}, norm_groups<Threads, Each, Fours>, args);
}

void launch_norm(Stream& s, std::int64_t rows, const NormArgs& args) {
  const auto blocks = static_cast<unsigned>(rows * args.groups_per_row);
  // The width of a block goes by the group's size alone: so does the order of its sum.
  const bool fours = args.group % 4 == 0;  // every tensor begins at a multiple of 64 bytes
  if (args.group <= 128 && fours) return launch_as<32, 1, true>(s, blocks, args);
  if (args.group <= 512 && fours) return launch_as<128, 1, true>(s, blocks, args);
  if (args.group <= 8192 && fours) return launch_as<512, 4, true>(s, blocks, args);
  if (fours) return launch_as<1024, 8, true>(s, blocks, args);
  if (args.group <= 256) return launch_as<64, 4, false>(s, blocks, args);
  launch_as<1024, 16, false>(s, blocks, args);
}

}  // namespace

void rms_norm(Stream& s, Tensor x, Tensor gain, NormSpec spec, Tensor out) {
  if (x.rows() == 0) return;
  const auto groups = static_cast<int>(x.width() / spec.group);
  launch_norm(s, x.rows(),
              {x.f32(), gain.f32(), nullptr, out.f32(), static_cast<int>(spec.group), groups, groups, spec.eps, false});
}

void gated_norm(Stream& s, Tensor x, Tensor gate, Tensor gain, float eps, Gate act, Tensor out) {
  if (x.rows() == 0) return;
  const auto group = static_cast<int>(gain.shape.num_elements());
  launch_norm(s, x.rows(),
              {x.f32(), gain.f32(), gate.f32(), out.f32(), group, static_cast<int>(x.width()) / group, 1, eps,
               act == Gate::Sigmoid});
}

}  // namespace rondo::cuda
