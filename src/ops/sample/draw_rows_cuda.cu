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

// draw.cpp's sums, in its order: the bias, then a penalty for each time.
__device__ float shifted(float logit, const Shift& by, const DrawKey& key) {
  const unsigned before = key.num_drafts < kMostDrafted ? (1u << key.num_drafts) - 1 : ~0u;
  const int times = by.times + __popc(by.drafted & before);
  logit += by.bias;
  if (times > 0) logit += key.first_penalty;
  if (key.next_penalty == 0) return logit;
  for (int i = 1; i < times; ++i) logit += key.next_penalty;
  return logit;
}

// To the logits of one slice, all by the block that draws from it.
__device__ void add_shifts(float* row, int begin, int end, const Shift* shifts, const DrawKey& key) {
  for (int i = threadIdx.x; i < key.num_shifts; i += kThreads) {
    const Shift each = shifts[key.first_shift + i];
    if (each.at >= begin && each.at < end) row[each.at] = shifted(row[each.at], each, key);
  }
  __syncthreads();
}

// Null: all are allowed.
__device__ const std::uint32_t* mask_of(const DrawKey& key, RowShaping shaping, int n) {
  return key.mask < 0 ? nullptr : shaping.masks + key.mask * mask_words(n);
}
__device__ bool is_allowed(const std::uint32_t* mask, int i) {
  const auto at = static_cast<unsigned>(i);
  return mask == nullptr || (mask[at / 32] >> (at % 32) & 1u) != 0;
}

__global__ void __launch_bounds__(kThreads) draw_slices(float* logits, int n, const DrawKey* keys,
                                                        const std::int32_t* ids, RowShaping shaping, SliceBest* room) {
  after_all_before();
  const int row = blockIdx.y;
  const DrawKey key = keys[row];
  const bool greedy = key.temperature <= 0;
  const float inverse_temperature = greedy ? 1.0F : 1.0F / key.temperature;
  const std::uint64_t noise_key = mix64(mix64(key.seed) + static_cast<std::uint64_t>(key.position));
  const int each = (n + kDrawSlices - 1) / kDrawSlices, begin = blockIdx.x * each, end = min(begin + each, n);
  float* from = logits + static_cast<std::int64_t>(row) * n;
  if (key.num_shifts > 0) add_shifts(from, begin, end, shaping.shifts, key);
  const std::uint32_t* mask = mask_of(key, shaping, n);
  SliceBest best = nothing();
  for (int i = begin + threadIdx.x; i < end; i += kThreads) {
    if (!is_allowed(mask, i)) continue;
    const float logit = from[i];
    if (logit == -INFINITY) continue;  // never drawn, and of no share
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
  // All NaN, or none allowed: nothing is higher than anything, and the first token it is.
  const std::int32_t token = best.chosen == 0x7FFFFFFF ? 0 : best.chosen;
  drawn[row] = {token, __expf((best.chosen_logit - best.most) * inverse_temperature) / best.total};
}

constexpr int kLikelyThreads = 1024;

// By a whole block. The k-th highest of the threads' own highest logits is no higher than the k-th highest of all, and
// hardly lower: what is at least as high is found in a second pass. Every thread gets the highest of all.
__device__ float find_highest(const float* row, int n, const std::uint32_t* mask, int wanted, LikelyRow& out) {
  __shared__ float highest[kLikelyThreads];
  __shared__ float bound;
  __shared__ int num_found;
  float own = -INFINITY;
  for (int i = threadIdx.x; i < n; i += kLikelyThreads) {
    if (is_allowed(mask, i)) own = fmaxf(own, row[i]);
  }
  highest[threadIdx.x] = own;
  if (threadIdx.x == 0) {
    num_found = 0;
    bound = INFINITY;  // none is wanted, or NaNs stand in the way
  }
  __syncthreads();
  int place = 0;  // among the threads, ties to the lower one
  float most = -INFINITY;
  for (int i = 0; i < kLikelyThreads; ++i) {
    const float other = highest[i];
    most = fmaxf(most, other);
    place += other > own || (other == own && i < static_cast<int>(threadIdx.x)) ? 1 : 0;
  }
  if (place == wanted - 1) bound = own;
  __syncthreads();
  for (int i = threadIdx.x; i < n && wanted > 0; i += kLikelyThreads) {
    if (!is_allowed(mask, i) || !(row[i] >= bound) || row[i] == -INFINITY) continue;
    const int at = atomicAdd(&num_found, 1);
    if (at < kMostFound) out.found[at] = {row[i], i};
  }
  __syncthreads();
  if (threadIdx.x == 0) out.num_found = num_found <= kMostFound ? num_found : 0;
  return most;
}

// One block a row, as in the next.
__global__ void __launch_bounds__(kLikelyThreads)
    find_likely(const float* logits, int n, const DrawKey* keys, RowShaping shaping, LikelyRow* likely) {
  after_all_before();
  const DrawKey key = keys[blockIdx.x];
  if (key.likely == 0) return;
  const float* row = logits + static_cast<std::int64_t>(blockIdx.x) * n;
  find_highest(row, n, mask_of(key, shaping, n), key.likely, likely[blockIdx.x]);
}

__global__ void __launch_bounds__(kLikelyThreads)
    tell(const float* logits, int n, const DrawKey* keys, const DrawnRow* drawn, ToldRow* told) {
  after_all_before();
  const int wanted = keys[blockIdx.x].told;
  if (wanted < 0) return;
  __shared__ double totals[kLikelyThreads];
  const float* row = logits + static_cast<std::int64_t>(blockIdx.x) * n;
  ToldRow& out = told[blockIdx.x];
  const float most = find_highest(row, n, nullptr, wanted, out.likeliest);
  double own = 0;
  for (int i = threadIdx.x; i < n; i += kLikelyThreads) own += expf(row[i] - most);
  totals[threadIdx.x] = own;
  for (int half = kLikelyThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) totals[threadIdx.x] += totals[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  out.log_total = most + log(totals[0]);
  out.drawn_logit = row[drawn[blockIdx.x].token];
}

}  // namespace

void draw_rows(Stream& s, Tensor logits, const DrawKey* keys, const std::int32_t* ids, RowShaping shaping, Tensor room,
               Tensor drawn) {
  if (logits.rows() == 0) return;
  static_assert(kDrawSlices == kWarp);
  auto* slices = static_cast<SliceBest*>(const_cast<void*>(room.data));
  launch(s, "draw_rows", {dim3(kDrawSlices, static_cast<unsigned>(logits.rows())), kThreads, 0}, draw_slices,
         logits.f32(), static_cast<int>(logits.width()), keys, ids, shaping, slices);
  launch(s, "draw_rows, joining", {static_cast<unsigned>(logits.rows()), kWarp, 0}, join_slices, slices, keys,
         static_cast<DrawnRow*>(const_cast<void*>(drawn.data)));
}

void find_likely_rows(Stream& s, Tensor logits, const DrawKey* keys, RowShaping shaping, Tensor likely) {
  if (logits.rows() == 0) return;
  static_assert(kMostLikely <= kLikelyThreads);
  launch(s, "find_likely_rows", {static_cast<unsigned>(logits.rows()), kLikelyThreads, 0}, find_likely, logits.f32(),
         static_cast<int>(logits.width()), keys, shaping, static_cast<LikelyRow*>(const_cast<void*>(likely.data)));
}

void tell_rows(Stream& s, Tensor logits, const DrawKey* keys, Tensor drawn, Tensor told) {
  if (logits.rows() == 0) return;
  launch(s, "tell_rows", {static_cast<unsigned>(logits.rows()), kLikelyThreads, 0}, tell, logits.f32(),
         static_cast<int>(logits.width()), keys, drawn.as<DrawnRow>(),
         static_cast<ToldRow*>(const_cast<void*>(told.data)));
}

}  // namespace rondo::cuda
