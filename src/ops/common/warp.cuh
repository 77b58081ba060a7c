// The small vocabulary of the CUDA kernels: sums over a warp or a block, always by the same tree, and bfloat16 as bits.
#pragma once

#include <cstdint>

namespace rondo::cuda {

constexpr int kWarp = 32;

__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, offset);
  return x;
}
__device__ inline float warp_max(float x) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, offset));
  return x;
}

// Over a block of Threads threads; every thread gets the sum.
template <int Threads>
__device__ inline float block_sum(float x) {
  __shared__ float parts[Threads / kWarp];
  x = warp_sum(x);
  __syncthreads();  // the last sum's parts are read
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = x;
  __syncthreads();
  float total = 0;
#pragma unroll
  for (int i = 0; i < Threads / kWarp; ++i) total += parts[i];
  return total;
}

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }
__device__ inline float silu(float x) { return x * sigmoid(x); }

__device__ inline float from_bf16(std::uint16_t bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }
// Two floats rounded to nearest even, the first in the lower half.
__device__ inline unsigned to_bf16_pair(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// An element of the KV cache, in either type.
__device__ inline float widened(float x) { return x; }
__device__ inline float widened(std::uint16_t x) { return from_bf16(x); }
__device__ inline void put(float* to, float x) { *to = x; }
__device__ inline void put(std::uint16_t* to, float x) { *to = static_cast<std::uint16_t>(to_bf16_pair(x, 0.0F)); }

}  // namespace rondo::cuda
