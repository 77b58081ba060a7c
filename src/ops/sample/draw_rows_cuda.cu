#include "base/random.h"
#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/sample/draw_rows_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kThreads = 256;

// The highest score of two, ties to the lower token; their sums over the higher of the two highest logits.
__device__ SliceBest joined(const SliceBest& a, const SliceBest& b, float inverse_temperature) {
  const bool first = a.score > b.score || (a.score == b.score && a.chosen <= b.chosen);
  SliceBest out = first ? a : b;
  out.most = fmaxf(a.most, b.most);
  const float a_total = a.total > 0 ? a.total * __expf((a.most - out.most) * inverse_temperature) : 0.0F;
  const float b_total = b.total > 0 ? b.total * __expf((b.most - out.most) * inverse_temperature) : 0.0F;
  out.total = a_total + b_total;
  return out;
}

__device__ SliceBest shuffled(const SliceBest& x, int offset) {
  return {__shfl_xor_sync(0xFFFFFFFFu, x.score, offset), __shfl_xor_sync(0xFFFFFFFFu, x.most, offset),
          __shfl_xor_sync(0xFFFFFFFFu, x.total, offset), __shfl_xor_sync(0xFFFFFFFFu, x.chosen_logit, offset),
          __shfl_xor_sync(0xFFFFFFFFu, x.chosen, offset)};
}

__device__ SliceBest nothing() { return {-INFINITY, -INFINITY, 0.0F, -INFINITY, 0x7FFFFFFF}; }

// draw.cpp's noise and the bound on it that takes no logarithm.
__device__ double noise_of(std::uint64_t bits) { return -log(-log(unit_interval(bits))); }
__device__ double noise_at_most(std::uint64_t bits) {
  constexpr double kLog2 = 0.693147180559945310;
  return kLog2 * (__clzll(static_cast<long long>(~bits >> 12)) - 11) + 1e-6;
}

__global__ void __launch_bounds__(kThreads)
    draw_slices(const float* logits, int n, const DrawKey* keys, const std::int32_t* ids, SliceBest* room) {
  after_all_before();
  const int row = blockIdx.y;
  const DrawKey key = keys[row];
  const bool greedy = key.temperature <= 0;
  const float inverse_temperature = greedy ? 1.0F : 1.0F / key.temperature;
  const std::uint64_t noise_key = mix64(mix64(key.seed) + static_cast<std::uint64_t>(key.position));
  const int each = (n + kDrawSlices - 1) / kDrawSlices, begin = blockIdx.x * each, end = min(begin + each, n);
  const float* from = logits + static_cast<std::int64_t>(row) * n;
  SliceBest best = nothing();
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    const float logit = from[i];
    if (logit > best.most) {
      best.total *= __expf((best.most - logit) * inverse_temperature);
      best.most = logit;
    }
    best.total += __expf((logit - best.most) * inverse_temperature);
    const std::int32_t id = ids != nullptr ? ids[i] : i;
    double score = logit;
    if (!greedy) {
      score = static_cast<double>(logit) / key.temperature;
      const std::uint64_t bits = mix64(noise_key + static_cast<std::uint64_t>(id));
      if (score + noise_at_most(bits) < best.score) continue;
      score += noise_of(bits);
    }
    if (score > best.score || (score == best.score && id < best.chosen)) {
      best.score = score;
      best.chosen = id;
      best.chosen_logit = logit;
    }
  }
  __shared__ SliceBest parts[kThreads / kWarp];
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    best = joined(best, shuffled(best, offset), inverse_temperature);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kThreads / kWarp; ++w) best = joined(best, parts[w], inverse_temperature);
  room[row * kDrawSlices + blockIdx.x] = best;
}

// One warp a row, a lane a slice.
__global__ void join_slices(const SliceBest* room, const DrawKey* keys, DrawnRow* drawn) {
  after_all_before();
  const int row = blockIdx.x;
  const float temperature = keys[row].temperature, inverse_temperature = temperature <= 0 ? 1.0F : 1.0F / temperature;
  SliceBest best = room[row * kDrawSlices + threadIdx.x];
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    best = joined(best, shuffled(best, offset), inverse_temperature);
  if (threadIdx.x != 0) return;
  // All NaN: nothing is higher than anything, and the first token it is.
  const std::int32_t token = best.chosen == 0x7FFFFFFF ? 0 : best.chosen;
  drawn[row] = {token, __expf((best.chosen_logit - best.most) * inverse_temperature) / best.total};
}

constexpr int kLikelyThreads = 1024;

// One block a row. The k-th highest of the threads' own highest logits is no higher than the k-th highest of all, and
// hardly lower: what is at least as high is found in a second pass.
__global__ void __launch_bounds__(kLikelyThreads)
    find_likely(const float* logits, int n, const DrawKey* keys, LikelyRow* likely) {
  after_all_before();
  const int wanted = keys[blockIdx.x].likely;
  if (wanted == 0) return;
  __shared__ float highest[kLikelyThreads];
  __shared__ float bound;
  __shared__ int num_found;
  const float* row = logits + static_cast<std::int64_t>(blockIdx.x) * n;
  float own = -INFINITY;
  for (int i = threadIdx.x; i < n; i += kLikelyThreads) own = fmaxf(own, row[i]);
  highest[threadIdx.x] = own;
  if (threadIdx.x == 0) num_found = 0;
  __syncthreads();
  int place = 0;  // among the threads, ties to the lower one
  for (int i = 0; i < kLikelyThreads; ++i) {
    const float other = highest[i];
    place += other > own || (other == own && i < static_cast<int>(threadIdx.x)) ? 1 : 0;
  }
  if (place == wanted - 1) bound = own;
  __syncthreads();
  LikelyRow& out = likely[blockIdx.x];
  for (int i = threadIdx.x; i < n; i += kLikelyThreads) {
    if (!(row[i] >= bound)) continue;
    const int at = atomicAdd(&num_found, 1);
    if (at < kMostFound) out.found[at] = {row[i], i};
  }
  __syncthreads();
  if (threadIdx.x == 0) out.num_found = num_found <= kMostFound ? num_found : 0;
}

}  // namespace

void draw_rows(Stream& s, Tensor logits, const DrawKey* keys, const std::int32_t* ids, Tensor room, Tensor drawn) {
  if (logits.rows() == 0) return;
  static_assert(kDrawSlices == kWarp);
  auto* slices = static_cast<SliceBest*>(const_cast<void*>(room.data));
  launch(s, "draw_rows", {dim3(kDrawSlices, static_cast<unsigned>(logits.rows())), kThreads, 0}, draw_slices,
         logits.f32(), static_cast<int>(logits.width()), keys, ids, slices);
  launch(s, "draw_rows, joining", {static_cast<unsigned>(logits.rows()), kWarp, 0}, join_slices, slices, keys,
         static_cast<DrawnRow*>(const_cast<void*>(drawn.data)));
}

void find_likely_rows(Stream& s, Tensor logits, const DrawKey* keys, Tensor likely) {
  if (logits.rows() == 0) return;
  static_assert(kMostLikely <= kLikelyThreads);
  launch(s, "find_likely_rows", {static_cast<unsigned>(logits.rows()), kLikelyThreads, 0}, find_likely, logits.f32(),
         static_cast<int>(logits.width()), keys, static_cast<LikelyRow*>(const_cast<void*>(likely.data)));
}

}  // namespace rondo::cuda
