// Inputs of a matrix product, four at a time, as they are or as they become on the way (InputStep).
#pragma once

#include "ops/common/warp.cuh"
#include "ops/linear/linear_cuda.h"

namespace rondo::cuda::product {

// Four elements, or as many as `live` says and zeros.
template <bool Vectors>
__device__ void read_four(const float* at, int live, float (&v)[4]) {
  if (Vectors && live > 0) {
    const float4 four = *reinterpret_cast<const float4*>(at);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] = j < live ? at[j] : 0.0F;
  }
}

// Inputs that become something else on the way: what they take, and what it makes of them.
template <bool Vectors>
__device__ void read_times(const float* at, int live, InputStep step, float (&times)[4]) {
  if (step.times_behind != 0) read_four<Vectors>(at + step.times_behind, live, times);
}
__device__ inline void take_step(const float (&times)[4], InputStep step, float (&v)[4]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) v[j] = silu(step.silu_scale * v[j]) * (step.times_behind != 0 ? times[j] : 1.0F);
}
template <bool Vectors>
__device__ void read_stepped(const float* at, int live, InputStep step, float (&v)[4]) {
  float times[4];
  read_four<Vectors>(at, live, v);
  read_times<Vectors>(at, live, step, times);
  take_step(times, step, v);
}

}  // namespace rondo::cuda::product
