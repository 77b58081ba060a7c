// The kernels of attention_cuda.h's attention(): a row's positions in partitions, each by itself, and their merging.
//
// On the tensor cores (ops/common/mma.cuh): scores[position, column] = keys queries^T, then mixed[dimension, column] =
// values^T weights; a column is a query head of a row. So what is read of the cache serves all columns, and a column's
// sums are the same whatever the other columns are.
#pragma once

#include "ops/attention/attention.h"
#include "ops/attention/head_norm.cuh"
#include "ops/common/launch.cuh"
#include "ops/common/mma.cuh"

namespace rondo::cuda::attending {

constexpr int kPartition = 64,
              kMaxPartitions = 128;  // positions a partition, until there would be more of them than this
constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kHeads = 8;           // query heads of a block: the columns of an instruction
constexpr int kChunk = kPartition;  // positions at a time
constexpr int kRowsAtOnce = 64;     // of a launch: what the partitions leave behind is sized for them
constexpr int kShare = 4;           // rows of a span that share a block, and what it reads of the cache

// A function of how many positions a row sees.
__host__ __device__ inline int partition_tokens(int visible) {
  int size = kPartition;
  while (visible > size * kMaxPartitions) size *= 2;
  return size;
}
__host__ __device__ inline int partitions_of(int visible) {
  const int size = partition_tokens(visible);
  return (visible + size - 1) / size;
}

// Rows of a launch that share a block: of one span, each seeing one position more than the row before it.
struct RowGroup {
  std::uint8_t first, count;
};

struct AttendArgs {
  const RowSpan* spans;
  const std::int32_t* span_of_row;
  const float *q, *q_gate;
  const std::int32_t *selected, *counts;  // null: dense
  float *most, *sum, *mixed;              // [kRowsAtOnce, q_heads, max_partitions (, dim)]
  float* out;
  int first_row, q_heads, kv_heads, dim, block_tokens, selected_tokens, budget, max_partitions;
  float scale;
  RowGroup groups[kRowsAtOnce];
};

// The positions a row sees, in ascending order.
struct Visible {
  int count, first_pos, num_selected, selected_tokens, tail;
  const std::int32_t* selected;
  __device__ int position(int i) const {
    if (selected == nullptr) return first_pos + i;
    const int in_blocks = num_selected * selected_tokens;
    return i < in_blocks ? selected[i / selected_tokens] * selected_tokens + i % selected_tokens : tail + i - in_blocks;
  }
};
__device__ inline Visible visible_to(const AttendArgs& a, const RowPlace& place, int row) {
  const int num = a.counts != nullptr ? a.counts[row] : kDense;
  if (num == kDense) return {place.pos + 1 - place.first_pos, place.first_pos, 0, 1, 0, nullptr};
  const int tail = (place.pos + 1) / a.selected_tokens * a.selected_tokens;
  return {num * a.selected_tokens + place.pos + 1 - tail, 0, num, a.selected_tokens, tail, a.selected + row * a.budget};
}

// Eight elements of a cache's row as bf16.
__device__ inline uint4 eight_at(const std::uint16_t* at) { return *reinterpret_cast<const uint4*>(at); }
__device__ inline uint4 eight_at(const float* at) {
  const float4 low = *reinterpret_cast<const float4*>(at), high = *reinterpret_cast<const float4*>(at + 4);
  return make_uint4(to_bf16_pair(low.x, low.y), to_bf16_pair(low.z, low.w), to_bf16_pair(high.x, high.y),
                    to_bf16_pair(high.z, high.w));
}
__device__ inline unsigned word_of(const uint4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// A column is a head of a row. Rows lie so that the lanes of an instruction's operand find theirs in different banks.
template <int Rows>
struct ChunkRoom {
  static constexpr int kColumns = Rows * kHeads;
  std::int64_t at[kChunk];                                  // element of each position's key, of the KV head
  alignas(16) std::uint16_t q[kColumns][kMaxHeadDim + 32];  // bf16
  alignas(16) float score[kColumns][kChunk + 4];
  alignas(16) std::uint16_t weight[kColumns][kChunk + 16];  // bf16
  float correction[kColumns], most[kColumns], sum[kColumns];
};

// The group's queries as bf16, zeros for columns there are not.
template <int Rows>
__device__ void load_queries(const AttendArgs& a, const RowGroup& group, std::int64_t q_head, int heads,
                             ChunkRoom<Rows>& room) {
  const int pairs = (a.dim + 31) / 32 * 16;
  for (int i = threadIdx.x; i < ChunkRoom<Rows>::kColumns * pairs; i += kThreads) {
    const int column = i / pairs, d = i % pairs * 2, m = column / kHeads, h = column % kHeads;
    const bool live = m < group.count && h < heads && d < a.dim;
    const float* from = a.q + (q_head + static_cast<std::int64_t>(m) * a.q_heads + h) * a.dim + d;
    reinterpret_cast<unsigned*>(room.q[column])[d / 2] = live ? to_bf16_pair(from[0], from[1]) : 0;
  }
  if (threadIdx.x < ChunkRoom<Rows>::kColumns) room.most[threadIdx.x] = -INFINITY, room.sum[threadIdx.x] = 0;
}

// Scores of a chunk: a warp has sixteen positions, the rows of an instruction, whose keys it reads once for all
// columns. A lane hands over columns 8 t .. 8 t + 7 of 32 as multiply.cuh's lanes do.
template <int Rows, class Element>
__device__ void score_keys(const Element* keys, int dim, int count, ChunkRoom<Rows>& room) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const Element* low = keys + room.at[min(warp * 16 + g, count - 1)];
  const Element* high = keys + room.at[min(warp * 16 + g + 8, count - 1)];
  constexpr int kSteps = kMaxHeadDim / 32;
  uint4 k[kSteps][2];
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const int d = i * 32 + 8 * t;
    k[i][0] = d < dim ? eight_at(low + d) : make_uint4(0, 0, 0, 0);
    k[i][1] = d < dim ? eight_at(high + d) : make_uint4(0, 0, 0, 0);
  }
  float scores[Rows][4] = {};
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    if (i * 32 >= dim) break;
#pragma unroll
    for (int m = 0; m < Rows; ++m) {
      const uint4 q = *reinterpret_cast<const uint4*>(room.q[m * kHeads + g] + i * 32 + 8 * t);
      mma(scores[m], k[i][0].x, k[i][1].x, k[i][0].y, k[i][1].y, q.x, q.y);
      mma(scores[m], k[i][0].z, k[i][1].z, k[i][0].w, k[i][1].w, q.z, q.w);
    }
  }
#pragma unroll
  for (int m = 0; m < Rows; ++m) {
#pragma unroll
    for (int c = 0; c < 4; ++c) room.score[m * kHeads + 2 * t + c % 2][warp * 16 + g + c / 2 * 8] = scores[m][c];
  }
}

// Scores to weights, column by column: own positions of the chunk, the first so many of it. What is mixed is the
// rounded weight, so that is what is added up.
template <int Rows>
__device__ void weigh_column(int column, int own, float scale, ChunkRoom<Rows>& room) {
  static_assert(kChunk == 2 * kWarp);
  const int lane = threadIdx.x % kWarp;
  const float before = room.most[column];
  const float low = lane < own ? room.score[column][lane] : -INFINITY;
  const float high = lane + kWarp < own ? room.score[column][lane + kWarp] : -INFINITY;
  const float most = warp_max(fmaxf(before, fmaxf(low, high)));
  const unsigned pair = own > 0 ? to_bf16_pair(__expf((low - most) * scale), __expf((high - most) * scale)) : 0;
  room.weight[column][lane] = static_cast<std::uint16_t>(pair);
  room.weight[column][lane + kWarp] = static_cast<std::uint16_t>(pair >> 16);
  const float sum = warp_sum(__uint_as_float(pair << 16) + __uint_as_float(pair & 0xFFFF0000u));
  __syncwarp();  // all have read what lane 0 writes
  if (lane == 0) {
    const float correction = own > 0 ? __expf((before - most) * scale) : 1.0F;  // 0 for the first chunk
    room.correction[column] = correction;
    room.sum[column] = fmaf(room.sum[column], correction, sum);
    room.most[column] = most;
  }
}

constexpr int kValueSteps = kChunk / 16,
              kValueTiles = 4;  // of a warp: positions sixteen at a time, dimensions likewise

// Of sixteen positions a lane has four, and eight dimensions of them; two dimensions' are the two rows that it has of
// an instruction, the four positions its columns. Positions from `own` on are zeros.
__device__ inline void add_values(const uint4 (&v)[4], int first, int own, int i, uint2 weights, float* mixed) {
  unsigned word[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) word[j] = first + j < own ? word_of(v[j], i) : 0;
  mma(mixed, __byte_perm(word[0], word[1], 0x5410), __byte_perm(word[0], word[1], 0x7632),
      __byte_perm(word[2], word[3], 0x5410), __byte_perm(word[2], word[3], 0x7632), weights.x, weights.y);
}

// One block: a partition of a row group, a KV head, up to kHeads of its query heads. A warp has 64 dimensions of the
// values, and all positions of them.
template <int Rows, class Element>
__global__ void __launch_bounds__(kThreads)
    attend(__grid_constant__ const AttendArgs a, const Element* keys, const Element* values) {
  after_all_before();
  __shared__ ChunkRoom<Rows> room;
  const RowGroup group = a.groups[blockIdx.z];
  const int first_row = a.first_row + group.first, last_row = first_row + group.count - 1;
  const int heads_each = a.q_heads / a.kv_heads, slices = (heads_each + kHeads - 1) / kHeads;
  const int kv_head = blockIdx.y / slices, first_head = kv_head * heads_each + blockIdx.y % slices * kHeads;
  const int heads = min(kHeads, (kv_head + 1) * heads_each - first_head);
  const RowPlace place = place_of(a.spans, a.span_of_row, last_row);
  const Visible visible = visible_to(a, place, last_row);  // the rows before see all but the last of these
  const int size = partition_tokens(visible.count);
  const int begin = blockIdx.x * size, end = min(begin + size, visible.count);
  if (begin >= end) return;
  const auto seen_by = [&](int m) { return visible.count - (group.count - 1 - m); };
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int my_d = warp * 64 + 8 * g;
  load_queries<Rows>(a, group, static_cast<std::int64_t>(first_row) * a.q_heads + first_head, heads, room);
  float mixed[kValueTiles][Rows][4] = {};

  for (int chunk = begin; chunk < end; chunk += kChunk) {
    const int count = min(kChunk, end - chunk);
    __syncthreads();
    if (threadIdx.x < count) {
      const int pos = visible.position(chunk + threadIdx.x);
      const std::int64_t block = place.blocks[pos / a.block_tokens];
      room.at[threadIdx.x] = ((block * a.kv_heads + kv_head) * a.block_tokens + pos % a.block_tokens) * a.dim;
    }
    __syncthreads();
    score_keys<Rows>(keys, a.dim, count, room);
    uint4 v[kValueSteps][4];  // under way while the scores become weights
#pragma unroll
    for (int s = 0; s < kValueSteps; ++s) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = 16 * s + 4 * t + j;
        v[s][j] = my_d < a.dim && at < count ? eight_at(values + room.at[at] + my_d) : make_uint4(0, 0, 0, 0);
      }
    }
    __syncthreads();
    for (int column = warp; column < group.count * kHeads; column += kWarps) {
      const int own = column % kHeads < heads ? min(count, seen_by(column / kHeads) - chunk) : 0;
      weigh_column<Rows>(column, own, a.scale, room);
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < Rows; ++m) {
      if (m >= group.count) break;
      const int own = min(count, seen_by(m) - chunk);
      const float low = room.correction[m * kHeads + 2 * t], high = room.correction[m * kHeads + 2 * t + 1];
#pragma unroll
      for (int i = 0; i < kValueTiles; ++i) {
        mixed[i][m][0] *= low, mixed[i][m][1] *= high, mixed[i][m][2] *= low, mixed[i][m][3] *= high;
      }
#pragma unroll
      for (int s = 0; s < kValueSteps; ++s) {
        const uint2 weights = *reinterpret_cast<const uint2*>(room.weight[m * kHeads + g] + 16 * s + 4 * t);
#pragma unroll
        for (int i = 0; i < kValueTiles; ++i) add_values(v[s], 16 * s + 4 * t, own, i, weights, mixed[i][m]);
      }
    }
  }
  for (int m = 0; m < group.count; ++m) {
    if (seen_by(m) <= begin) continue;  // it has no such partition
    const auto unit_of = [&](int h) {
      const std::int64_t head = static_cast<std::int64_t>(group.first + m) * a.q_heads + first_head + h;
      return head * a.max_partitions + blockIdx.x;
    };
    if (threadIdx.x < heads) {
      a.most[unit_of(threadIdx.x)] = room.most[m * kHeads + threadIdx.x];
      a.sum[unit_of(threadIdx.x)] = room.sum[m * kHeads + threadIdx.x];
    }
  }
  if (my_d >= a.dim) return;
#pragma unroll
  for (int m = 0; m < Rows; ++m) {
    if (m >= group.count || seen_by(m) <= begin) continue;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int h = 2 * t + c;
      if (h >= heads) continue;
      const std::int64_t head = static_cast<std::int64_t>(group.first + m) * a.q_heads + first_head + h;
      float* to = a.mixed + (head * a.max_partitions + blockIdx.x) * a.dim + my_d;
      *reinterpret_cast<float4*>(to) =
          make_float4(mixed[0][m][c], mixed[0][m][c + 2], mixed[1][m][c], mixed[1][m][c + 2]);
      *reinterpret_cast<float4*>(to + 4) =
          make_float4(mixed[2][m][c], mixed[2][m][c + 2], mixed[3][m][c], mixed[3][m][c + 2]);
    }
  }
}

// One block a query head of a row: its partitions in ascending order, then the gate.
__global__ void merge(AttendArgs a) {
  after_all_before();
  static_assert(kThreads >= kMaxPartitions);
  __shared__ float weight[kMaxPartitions], sum_of[kMaxPartitions], mosts[kWarps];
  const int head = blockIdx.x, local_row = blockIdx.y, row = a.first_row + local_row, p = threadIdx.x;
  const int partitions = partitions_of(visible_to(a, place_of(a.spans, a.span_of_row, row), row).count);
  const std::int64_t unit = (static_cast<std::int64_t>(local_row) * a.q_heads + head) * a.max_partitions;
  const float own = p < partitions ? a.most[unit + p] : -INFINITY;
  if (p < partitions) sum_of[p] = a.sum[unit + p];
  const float warps_most = warp_max(own);
  if (p % kWarp == 0) mosts[p / kWarp] = warps_most;
  __syncthreads();
  float most = mosts[0];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) most = fmaxf(most, mosts[i]);
  if (p < partitions) weight[p] = __expf((own - most) * a.scale);
  __syncthreads();
  float total = 0;
  for (int i = 0; i < partitions; ++i) total = fmaf(sum_of[i], weight[i], total);
  const std::int64_t to = static_cast<std::int64_t>(row) * a.q_heads + head;
  for (int d = threadIdx.x; d < a.dim; d += kThreads) {
    const float gate = a.q_gate[to * 2 * a.dim + a.dim + d];
    float sum = 0;
#pragma unroll 8
    for (int i = 0; i < partitions; ++i) sum = fmaf(a.mixed[(unit + i) * a.dim + d], weight[i], sum);
    a.out[to * a.dim + d] = sum / total * sigmoid(gate);
  }
}

}  // namespace rondo::cuda::attending
