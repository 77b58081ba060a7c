// The norms' kernel: RMSNorm of groups, behind a step that may change what is normed.
//
// A `Before` is asked with a group's number, a column of it, the group's size and the elements from there on: change()
// makes of them what is normed, keep() writes that back. All are changed before the first is kept, so that no read
// waits for a write.
#pragma once

#include "base/check.h"
#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/norm/norm.h"

namespace rondo::cuda {

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
template <int Wide>
__device__ void write_wide(float* to, int d, const float* x) {
  if constexpr (Wide == 4) {
    *reinterpret_cast<float4*>(to + d) = make_float4(x[0], x[1], x[2], x[3]);
  } else {
    to[d] = x[0];
  }
}

// The norm alone.
struct Nothing {
  template <int Wide>
  __device__ void change(std::int64_t, int, int, float (&)[Wide]) const {}
  template <int Wide>
  __device__ void keep(std::int64_t, int, int, const float (&)[Wide]) const {}
};

// One block a group, its elements in registers between the sum and the writing, four by four where they lie so. The
// gain is a weight: it is read ahead of everything that waits.
template <int Threads, int Each, bool Fours, class Before>
__global__ void __launch_bounds__(Threads) norm_groups(NormArgs a, Before before) {
  let_next_in();
  const std::int64_t group = blockIdx.x, at = group * a.group;
  const float* gain = a.gain + static_cast<std::int64_t>(blockIdx.x % a.groups_per_row % a.gain_groups) * a.group;
  constexpr int kWide = Fours ? 4 : 1;
  constexpr bool kGainsAhead = Each * kWide <= 16;  // as many registers as there are for it
  float x[Each][kWide], gains[kGainsAhead ? Each : 1][kWide];
  const auto column = [](int i) { return (i * Threads + static_cast<int>(threadIdx.x)) * kWide; };
  if constexpr (kGainsAhead) {
#pragma unroll
    for (int i = 0; i < Each; ++i) read_wide<kWide>(gain, column(i), a.group, gains[i]);
  }
  wait_for_before();
  float squares = 0;
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    read_wide<kWide>(a.x + at, column(i), a.group, x[i]);
    if (column(i) < a.group) before.change(group, column(i), a.group, x[i]);
#pragma unroll
    for (int j = 0; j < kWide; ++j) squares = fmaf(x[i][j], x[i][j], squares);
  }
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    if (column(i) < a.group) before.keep(group, column(i), a.group, x[i]);
  }
  const float scale = rsqrtf(block_sum<Threads>(squares) / static_cast<float>(a.group) + a.eps);
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const int d = column(i);
    if (d >= a.group) break;
    float gates[kWide] = {};
    if constexpr (!kGainsAhead) read_wide<kWide>(gain, d, a.group, gains[0]);
    if (a.gate != nullptr) read_wide<kWide>(a.gate + at, d, a.group, gates);
#pragma unroll
    for (int j = 0; j < kWide; ++j) {
      x[i][j] *= scale * gains[kGainsAhead ? i : 0][j];
      if (a.gate != nullptr) x[i][j] *= a.sigmoid_gate ? sigmoid(gates[j]) : silu(gates[j]);
    }
    write_wide<kWide>(a.out + at, d, x[i]);
  }
}

inline NormArgs norm_args(Tensor x, Tensor gain, NormSpec spec, Tensor out) {
  const auto groups = static_cast<int>(x.width() / spec.group);
  return {x.f32(), gain.f32(), nullptr, out.f32(), static_cast<int>(spec.group), groups, groups, spec.eps, false};
}

template <int Threads, int Each, bool Fours, class Before>
void launch_norm_as(Stream& s, const char* name, unsigned blocks, const NormArgs& args, const Before& before) {
  CHECK(args.group <= Threads * Each * (Fours ? 4 : 1));
  launch(s, name, {blocks, Threads, 0}, norm_groups<Threads, Each, Fours, Before>, args, before);
}

template <class Before>
void launch_norm(Stream& s, const char* name, std::int64_t rows, const NormArgs& args, const Before& before) {
  const auto blocks = static_cast<unsigned>(rows * args.groups_per_row);
  // The width of a block goes by the group's size alone: so does the order of its sum.
  const bool fours = args.group % 4 == 0;  // every tensor begins at a multiple of 64 bytes
  if (args.group <= 128 && fours) return launch_norm_as<32, 1, true>(s, name, blocks, args, before);
  if (args.group <= 512 && fours) return launch_norm_as<128, 1, true>(s, name, blocks, args, before);
  if (args.group <= 8192 && fours) return launch_norm_as<512, 4, true>(s, name, blocks, args, before);
  if (fours) return launch_norm_as<1024, 8, true>(s, name, blocks, args, before);
  if (args.group <= 256) return launch_norm_as<64, 4, false>(s, name, blocks, args, before);
  launch_norm_as<1024, 16, false>(s, name, blocks, args, before);
}

}  // namespace rondo::cuda
