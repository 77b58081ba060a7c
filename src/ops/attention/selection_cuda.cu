#include <algorithm>

#include "ops/attention/attention_cuda.h"
#include "ops/attention/head_norm.cuh"
#include "ops/common/launch.cuh"

namespace rondo::cuda {

namespace {

struct IndexArgs {
  const RowSpan* spans;
  const std::int32_t* span_of_row;
  float* index_qk;
  const float *q_gain, *k_gain, *rope;
  float *raw, *pooled;
  int rows, heads, dim, rotary_dim, block_tokens, cache_block_tokens, budget;
  float eps;
};

// The index key of a row's sequence at a position up to its own: of the launch itself, or of the cache.
__device__ const float* key_at(const IndexArgs& a, const RowSpan& span, const RowPlace& place, int row, int pos) {
  const std::int64_t own = static_cast<std::int64_t>(row - (place.pos - pos)) * (a.heads + 1) + a.heads;
  return pos >= span.start_pos ? a.index_qk + own * a.dim : a.raw + cache_row(place, pos, a.cache_block_tokens) * a.dim;
}

// One warp: a query head of a row, in place; or, behind the last head, the row's key and the pooled key of the block it
// completes. Rows of one launch write their keys at once, so none is read from where another writes it. counts: where
// no row of the launch chooses, that all are dense; else null.
__global__ void turn_queries_and_keep_keys(IndexArgs a, int first_head, std::int32_t* counts) {
  after_all_before();
  __shared__ float room[kMaxHeadDim], mean[kMaxHeadDim];
  const int row = blockIdx.x, head = first_head + static_cast<int>(blockIdx.y), lane = threadIdx.x;
  const RowPlace place = place_of(a.spans, a.span_of_row, row);
  if (head < a.heads) {
    float* query = a.index_qk + (static_cast<std::int64_t>(row) * (a.heads + 1) + head) * a.dim;
    norm_and_turn(query, a.q_gain, a.rope + static_cast<std::int64_t>(place.pos) * a.rotary_dim, a.dim, a.rotary_dim,
                  a.eps, room);
    for (int d = lane; d < a.dim; d += kWarp) query[d] = room[d];
    return;
  }
  if (counts != nullptr && lane == 0) counts[row] = kDense;
  const RowSpan& span = a.spans[a.span_of_row[row]];
  const float* key = key_at(a, span, place, row, place.pos);
  float* raw = a.raw + cache_row(place, place.pos, a.cache_block_tokens) * a.dim;
  for (int d = lane; d < a.dim; d += kWarp) raw[d] = key[d];
  if ((place.pos + 1) % a.block_tokens != 0) return;
  const int first = place.pos + 1 - a.block_tokens;
  for (int d = lane; d < a.dim; d += kWarp) {
    float total = 0;
    for (int i = 0; i < a.block_tokens; ++i) total += key_at(a, span, place, row, first + i)[d];
    mean[d] = total / static_cast<float>(a.block_tokens);
  }
  __syncwarp();
  norm_and_turn(mean, a.k_gain, a.rope + static_cast<std::int64_t>(first) * a.rotary_dim, a.dim, a.rotary_dim, a.eps,
                room);
  float* to = a.pooled + cache_row(place, first, a.cache_block_tokens) / a.block_tokens * a.dim;
  for (int d = lane; d < a.dim; d += kWarp) to[d] = room[d];
}

constexpr int kScoreWarps = 8, kPerWarp = 4;

// Whole blocks of a row that may be chosen, from first_block on.
struct Whole {
  int first, count;
};
__device__ Whole whole_blocks(const IndexArgs& a, const RowPlace& place) {
  const int first = place.first_pos / a.block_tokens;
  return {first, (place.pos + 1) / a.block_tokens - first};
}

__global__ void score(IndexArgs a, float* scores, std::int64_t stride) {
  after_all_before();
  const int row = blockIdx.y, warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const RowPlace place = place_of(a.spans, a.span_of_row, row);
  const Whole whole = whole_blocks(a, place);
  if (whole.count <= a.budget) return;
  const int per_block = a.cache_block_tokens / a.block_tokens;
  const float* queries = a.index_qk + static_cast<std::int64_t>(row) * (a.heads + 1) * a.dim;
  for (int i = 0; i < kPerWarp; ++i) {
    const int at = (blockIdx.x * kScoreWarps + warp) * kPerWarp + i;
    if (at >= whole.count) return;
    const int b = whole.first + at;
    const float* key =
        a.pooled + (static_cast<std::int64_t>(place.blocks[b / per_block]) * per_block + b % per_block) * a.dim;
    float total = 0;
    for (int h = 0; h < a.heads; ++h) {
      float dot = 0;
      for (int d = lane; d < a.dim; d += kWarp) dot = fmaf(queries[h * a.dim + d], key[d], dot);
      total += fmaxf(warp_sum(dot), 0.0F);
    }
    if (lane == 0) scores[row * stride + at] = total * rsqrtf(static_cast<float>(a.dim));
  }
}

constexpr int kChooseThreads = 512;

// How many of the threads before this one say yes, and how many in all.
__device__ int2 votes_before(bool yes) {
  __shared__ int parts[kChooseThreads / kWarp];
  const unsigned ballot = __ballot_sync(0xFFFFFFFFu, yes);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  __syncthreads();
  if (lane == 0) parts[warp] = __popc(ballot);
  __syncthreads();
  int before = __popc(ballot & ((1u << lane) - 1u)), all = 0;
  for (int w = 0; w < kChooseThreads / kWarp; ++w) {
    before += w < warp ? parts[w] : 0;
    all += parts[w];
  }
  return make_int2(before, all);
}

// Scores are at least 0, so their bits order as they do.
__device__ unsigned key_of(float score) { return __float_as_uint(score); }

// One block a row: the worst score that is still chosen, byte by byte from the top; then the chosen in ascending order,
// the lower blocks first where scores tie.
__global__ void choose_blocks(IndexArgs a, const float* scores, std::int64_t stride, std::int32_t* chosen,
                              std::int32_t* counts) {
  after_all_before();
  __shared__ int histogram[256];
  __shared__ unsigned prefix;
  __shared__ int needed;
  const int row = blockIdx.x;
  const Whole whole = whole_blocks(a, place_of(a.spans, a.span_of_row, row));
  if (threadIdx.x == 0) counts[row] = whole.count <= a.budget ? kDense : a.budget;
  if (whole.count <= a.budget) return;
  const float* from = scores + row * stride;
  if (threadIdx.x == 0) prefix = 0, needed = a.budget;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += kChooseThreads) histogram[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < whole.count; i += kChooseThreads) {
      const unsigned key = key_of(from[i]);
      if (shift == 24 || key >> (shift + 8) == prefix >> (shift + 8)) atomicAdd(&histogram[key >> shift & 255u], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int bin = 255, left = needed;
      while (bin > 0 && histogram[bin] < left) left -= histogram[bin--];
      prefix |= static_cast<unsigned>(bin) << shift;
      needed = left;
    }
    __syncthreads();
  }
  const unsigned worst = prefix;
  const int ties = needed;  // of those with that very score, the first so many
  int taken = 0, tied = 0;
  for (int begin = 0; begin < whole.count; begin += kChooseThreads) {
    const int i = begin + threadIdx.x;
    const unsigned key = i < whole.count ? key_of(from[i]) : 0u;
    const bool ties_here = i < whole.count && key == worst;
    const int2 before = votes_before(ties_here);
    const bool take = i < whole.count && (key > worst || (ties_here && tied + before.x < ties));
    const int2 place = votes_before(take);
    if (take) chosen[row * a.budget + taken + place.x] = whole.first + i;
    taken += place.y;
    tied += before.y;
  }
}

}  // namespace

void select_blocks(Stream& s, const RowSpans& batch, Tensor index_qk, HeadGains gains, Tensor rope_table,
                   IndexerSpec spec, IndexCache cache, int max_positions, Scratch scratch, Selection selection) {
  const int rows = index_qk.rows(), max_blocks = max_positions / spec.block_tokens + 1;
  const Tensor scores = scratch.take_f32({rows, max_blocks});
  if (s.is_dry() || rows == 0) return;
  CHECK(index_qk.width() == (spec.heads + 1) * spec.head_dim && spec.cache_block_tokens % spec.block_tokens == 0);
  CHECK(spec.head_dim <= kMaxHeadDim && selection.blocks.width() == spec.budget_blocks);
  const IndexArgs args{batch.on_device,   batch.span_of_row,       index_qk.f32(),
                       gains.q.f32(),     gains.k.f32(),           rope_table.f32(),
                       cache.raw.f32(),   cache.pooled.f32(),      rows,
                       spec.heads,        spec.head_dim,           spec.rotary_dim,
                       spec.block_tokens, spec.cache_block_tokens, spec.budget_blocks,
                       spec.eps};
  const auto height = static_cast<unsigned>(rows);
  int most_whole = 0;
  for (const RowSpan& span : batch.host)
    most_whole = std::max(most_whole, (span.start_pos + span.count) / spec.block_tokens);
  const bool none_chooses = most_whole <= spec.budget_blocks;  // all see everything, and nobody asks for the queries
  const int first_head = none_chooses ? spec.heads : 0;
  launch(s, "select_blocks, keys", {dim3(height, static_cast<unsigned>(spec.heads + 1 - first_head)), kWarp},
         turn_queries_and_keep_keys, args, first_head, none_chooses ? selection.count.i32() : nullptr);
  if (none_chooses) return;
  constexpr int kEach = kScoreWarps * kPerWarp;
  launch(s, "select_blocks, scores",
         {dim3(static_cast<unsigned>((most_whole + kEach - 1) / kEach), height), kScoreWarps * kWarp}, score, args,
         scores.f32(), max_blocks);
  launch(s, "select_blocks, choice", {height, kChooseThreads}, choose_blocks, args, scores.f32(), max_blocks,
         selection.blocks.i32(), selection.count.i32());
}

}  // namespace rondo::cuda
