#include <algorithm>

#include "ops/attention/attention_cuda.h"
#include "ops/attention/head_norm.cuh"
#include "ops/common/launch.cuh"

namespace rondo::cuda {

namespace {

constexpr int kHeadWarps = 4;

struct WriteArgs {
  const RowSpan* spans;
  const std::int32_t* span_of_row;
  const float *q_gate, *k, *v, *q_gain, *k_gain, *rope;
  float* q;
  int rows, q_heads, kv_heads, dim, rotary_dim, block_tokens;
  float eps;
};

// One warp a head of a row: first the query heads, then keys, then values.
template <class Element>
__global__ void write_heads(WriteArgs a, Element* keys, Element* values) {
  after_all_before();
  __shared__ float rooms[kHeadWarps][kMaxHeadDim];
  const int heads = a.q_heads + 2 * a.kv_heads, warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int unit = blockIdx.x * kHeadWarps + warp;
  if (unit >= a.rows * heads) return;
  const int row = unit / heads, head = unit % heads;
  const RowPlace place = place_of(a.spans, a.span_of_row, row);
  const float* table = a.rope + static_cast<std::int64_t>(place.pos) * a.rotary_dim;
  float* room = rooms[warp];
  if (head < a.q_heads) {
    const std::int64_t at = static_cast<std::int64_t>(row) * a.q_heads + head;
    norm_and_turn(a.q_gate + 2 * at * a.dim, a.q_gain, table, a.dim, a.rotary_dim, a.eps, room);
    for (int d = lane; d < a.dim; d += kWarp) a.q[at * a.dim + d] = room[d];
    return;
  }
  const int kv_head = (head - a.q_heads) % a.kv_heads;
  const std::int64_t from = (static_cast<std::int64_t>(row) * a.kv_heads + kv_head) * a.dim;
  const std::int64_t block = place.blocks[place.pos / a.block_tokens];
  const std::int64_t to = ((block * a.kv_heads + kv_head) * a.block_tokens + place.pos % a.block_tokens) * a.dim;
  if (head < a.q_heads + a.kv_heads) {
    norm_and_turn(a.k + from, a.k_gain, table, a.dim, a.rotary_dim, a.eps, room);
    for (int d = lane; d < a.dim; d += kWarp) put(keys + to + d, room[d]);
  } else {
    for (int d = lane; d < a.dim; d += kWarp) put(values + to + d, a.v[from + d]);
  }
}

constexpr int kPartition = 64,
              kMaxPartitions = 128;  // positions a partition, until there would be more of them than this
constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kHeads = 8;           // query heads of a block
constexpr int kChunk = kPartition;  // positions at a time
constexpr int kRowsAtOnce = 64;     // of a launch: what the partitions leave behind is sized for them

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
int most_partitions(int max_positions) {
  return std::min(kMaxPartitions, (max_positions + kPartition - 1) / kPartition);
}

struct AttendArgs {
  const RowSpan* spans;
  const std::int32_t* span_of_row;
  const float *q, *q_gate;
  const std::int32_t *selected, *counts;  // null: dense
  float *most, *sum, *mixed;              // [kRowsAtOnce, q_heads, max_partitions (, dim)]
  float* out;
  int first_row, q_heads, kv_heads, dim, block_tokens, selected_tokens, budget, max_partitions;
  float scale;
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
__device__ Visible visible_to(const AttendArgs& a, const RowPlace& place, int row) {
  const int num = a.counts != nullptr ? a.counts[row] : kDense;
  if (num == kDense) return {place.pos + 1 - place.first_pos, place.first_pos, 0, 1, 0, nullptr};
  const int tail = (place.pos + 1) / a.selected_tokens * a.selected_tokens;
  return {num * a.selected_tokens + place.pos + 1 - tail, 0, num, a.selected_tokens, tail, a.selected + row * a.budget};
}

__device__ float2 pair_at(const float* at) { return *reinterpret_cast<const float2*>(at); }
__device__ float2 pair_at(const std::uint16_t* at) {
  const unsigned both = *reinterpret_cast<const unsigned*>(at);
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xFFFF0000u));
}

constexpr int kTogether = 4;

// Eight sums over the lanes at once: each exchange halves how many a lane still adds up. Lanes 4 h .. 4 h + 3 get head
// h's.
__device__ float sum_of_heads(float (&x)[kHeads], int lane) {
  static_assert(kHeads == 8);
#pragma unroll
  for (int half = kHeads / 2; half > 0; half /= 2) {
    const int offset = half * 4;
    const bool upper = (lane & offset) != 0;
#pragma unroll
    for (int h = 0; h < half; ++h) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, upper ? x[h] : x[h + half], offset);
      x[h] = (upper ? x[h + half] : x[h]) + other;
    }
  }
  x[0] += __shfl_xor_sync(0xFFFFFFFFu, x[0], 2);
  return x[0] + __shfl_xor_sync(0xFFFFFFFFu, x[0], 1);
}

struct ChunkRoom {
  std::int64_t at[kChunk];       // element of each position's key, of the KV head
  float weight[kHeads][kChunk];  // scores, then weights
  float correction[kHeads], most[kHeads], sum[kHeads];
};

// One block: a partition of a row, a KV head, up to kHeads of its query heads.
template <class Element>
__global__ void __launch_bounds__(kThreads) attend(AttendArgs a, const Element* keys, const Element* values) {
  after_all_before();
  __shared__ ChunkRoom room;
  const int local_row = blockIdx.z, row = a.first_row + local_row;
  const int group = a.q_heads / a.kv_heads, slices = (group + kHeads - 1) / kHeads;
  const int kv_head = blockIdx.y / slices, first_head = blockIdx.y % slices * kHeads;
  const int heads = min(kHeads, group - first_head);
  const RowPlace place = place_of(a.spans, a.span_of_row, row);
  const Visible visible = visible_to(a, place, row);
  const int size = partition_tokens(visible.count);
  const int begin = blockIdx.x * size, end = min(begin + size, visible.count);
  if (begin >= end) return;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const std::int64_t q_head = static_cast<std::int64_t>(row) * a.q_heads + kv_head * group + first_head;

  constexpr int kPairs = kMaxHeadDim / (2 * kWarp);
  float2 q[kHeads][kPairs];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int d = 2 * (lane + i * kWarp);
      q[h][i] = h < heads && d < a.dim ? pair_at(a.q + (q_head + h) * a.dim + d) : make_float2(0, 0);
    }
  }
  if (threadIdx.x < kHeads) room.most[threadIdx.x] = -INFINITY, room.sum[threadIdx.x] = 0;
  float2 mixed[kHeads] = {};
  const int my_d = 2 * threadIdx.x;

  for (int chunk = begin; chunk < end; chunk += kChunk) {
    const int count = min(kChunk, end - chunk);
    __syncthreads();
    if (threadIdx.x < count) {
      const int pos = visible.position(chunk + threadIdx.x);
      const std::int64_t block = place.blocks[pos / a.block_tokens];
      room.at[threadIdx.x] = ((block * a.kv_heads + kv_head) * a.block_tokens + pos % a.block_tokens) * a.dim;
    }
    __syncthreads();
    for (int first = warp; first < count; first += kTogether * kWarps) {
      float2 k[kTogether][kPairs];  // several keys under way at once
#pragma unroll
      for (int p = 0; p < kTogether; ++p) {
        const Element* key = keys + room.at[min(first + p * kWarps, count - 1)];
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
          const int d = 2 * (lane + i * kWarp);
          k[p][i] = d < a.dim ? pair_at(key + d) : make_float2(0, 0);
        }
      }
#pragma unroll
      for (int p = 0; p < kTogether; ++p) {
        float scores[kHeads] = {};
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
#pragma unroll
          for (int h = 0; h < kHeads; ++h)
            scores[h] = fmaf(q[h][i].x, k[p][i].x, fmaf(q[h][i].y, k[p][i].y, scores[h]));
        }
        const float score = sum_of_heads(scores, lane);
        const int j = first + p * kWarps;
        if (j < count && lane % 4 == 0) room.weight[lane / 4][j] = score;
      }
    }
    __syncthreads();
    for (int h = warp; h < heads; h += kWarps) {
      float most = room.most[h];
      for (int j = lane; j < count; j += kWarp) most = fmaxf(most, room.weight[h][j]);
      most = warp_max(most);
      float sum = 0;
      for (int j = lane; j < count; j += kWarp) {
        const float weight = __expf((room.weight[h][j] - most) * a.scale);
        room.weight[h][j] = weight;
        sum += weight;
      }
      sum = warp_sum(sum);
      if (lane == 0) {
        const float correction = __expf((room.most[h] - most) * a.scale);  // 0 for the first chunk
        room.correction[h] = correction;
        room.sum[h] = room.sum[h] * correction + sum;
        room.most[h] = most;
      }
    }
    __syncthreads();
    if (my_d < a.dim) {
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        const float correction = h < heads ? room.correction[h] : 0.0F;
        mixed[h].x *= correction, mixed[h].y *= correction;
      }
#pragma unroll 4
      for (int j = 0; j < count; ++j) {
        const float2 v = pair_at(values + room.at[j] + my_d);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) {
          const float weight = h < heads ? room.weight[h][j] : 0.0F;
          mixed[h].x = fmaf(weight, v.x, mixed[h].x), mixed[h].y = fmaf(weight, v.y, mixed[h].y);
        }
      }
    }
  }
  const std::int64_t unit =
      (static_cast<std::int64_t>(local_row) * a.q_heads + kv_head * group + first_head) * a.max_partitions + blockIdx.x;
  for (int h = 0; h < heads; ++h) {
    const std::int64_t to = unit + static_cast<std::int64_t>(h) * a.max_partitions;
    if (threadIdx.x == 0) a.most[to] = room.most[h], a.sum[to] = room.sum[h];
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const std::int64_t to = unit + static_cast<std::int64_t>(h) * a.max_partitions;
    if (h < heads && my_d < a.dim) *reinterpret_cast<float2*>(a.mixed + to * a.dim + my_d) = mixed[h];
  }
}

// One block a query head of a row: its partitions in ascending order, then the gate.
__global__ void merge(AttendArgs a) {
  after_all_before();
  const int head = blockIdx.x, local_row = blockIdx.y, row = a.first_row + local_row;
  const int partitions = partitions_of(visible_to(a, place_of(a.spans, a.span_of_row, row), row).count);
  const std::int64_t unit = (static_cast<std::int64_t>(local_row) * a.q_heads + head) * a.max_partitions;
  float most = a.most[unit];
  for (int p = 1; p < partitions; ++p) most = fmaxf(most, a.most[unit + p]);
  float total = 0;
  for (int p = 0; p < partitions; ++p)
    total = fmaf(a.sum[unit + p], __expf((a.most[unit + p] - most) * a.scale), total);
  const std::int64_t to = static_cast<std::int64_t>(row) * a.q_heads + head;
  for (int d = threadIdx.x; d < a.dim; d += kThreads) {
    float sum = 0;
    for (int p = 0; p < partitions; ++p) {
      sum = fmaf(a.mixed[(unit + p) * a.dim + d], __expf((a.most[unit + p] - most) * a.scale), sum);
    }
    a.out[to * a.dim + d] = sum / total * sigmoid(a.q_gate[to * 2 * a.dim + a.dim + d]);
  }
}

template <class Element>
void launch_attend(Stream& s, const AttendArgs& args, KvCache cache, const dim3& grid) {
  launch(s, "attention", {grid, kThreads}, attend<Element>, args, cache.keys.as<Element>(), cache.values.as<Element>());
}

// The most partitions that a row of [begin, end) has.
int partitions_between(std::span<const RowSpan> spans, int begin, int end, int most_visible) {
  int most = 1;
  for (const RowSpan& span : spans) {
    const int last = std::min(end, span.begin + span.count) - 1;
    if (last < std::max(begin, span.begin)) continue;
    // The number of partitions does not grow evenly: half of it is left where the size doubles.
    const int visible = std::min(span.start_pos + last - span.begin + 1 - span.first_pos, most_visible);
    most = std::max(most, visible > kPartition * kMaxPartitions ? kMaxPartitions : partitions_of(visible));
  }
  return most;
}

bool is_bf16(KvCache cache) {
  CHECK(cache.keys.dtype == cache.values.dtype && (cache.keys.dtype == DType::BF16 || cache.keys.dtype == DType::F32));
  return cache.keys.dtype == DType::BF16;
}

}  // namespace

void attention_write(Stream& s, const RowSpans& batch, Tensor q_gate, Tensor k, Tensor v, HeadGains gains,
                     Tensor rope_table, AttentionSpec spec, KvCache cache, Tensor q) {
  CHECK(spec.head_dim <= kMaxHeadDim);
  if (q_gate.rows() == 0) return;
  const WriteArgs args{batch.on_device, batch.span_of_row, q_gate.f32(),      k.f32(),
                       v.f32(),         gains.q.f32(),     gains.k.f32(),     rope_table.f32(),
                       q.f32(),         q_gate.rows(),     spec.q_heads,      spec.kv_heads,
                       spec.head_dim,   spec.rotary_dim,   spec.block_tokens, spec.eps};
  const int units = q_gate.rows() * (spec.q_heads + 2 * spec.kv_heads);
  const auto blocks = static_cast<unsigned>((units + kHeadWarps - 1) / kHeadWarps);
  void *keys = const_cast<void*>(cache.keys.data), *values = const_cast<void*>(cache.values.data);
  if (is_bf16(cache)) {
    launch(s, "attention_write", {blocks, kHeadWarps * kWarp}, write_heads<std::uint16_t>, args,
           static_cast<std::uint16_t*>(keys), static_cast<std::uint16_t*>(values));
  } else {
    launch(s, "attention_write", {blocks, kHeadWarps * kWarp}, write_heads<float>, args, static_cast<float*>(keys),
           static_cast<float*>(values));
  }
}

void attention(Stream& s, const RowSpans& batch, Tensor q, Tensor q_gate, KvCache cache, const Selection* selection,
               AttentionSpec spec, int max_positions, Scratch scratch, Tensor out) {
  const int rows = q.rows(), at_once = std::min(rows, kRowsAtOnce), partitions = most_partitions(max_positions);
  const Tensor most = scratch.take_f32({at_once, spec.q_heads, partitions});
  const Tensor sum = scratch.take_f32({at_once, spec.q_heads, partitions});
  const Tensor mixed = scratch.take_f32({at_once, spec.q_heads, partitions, spec.head_dim});
  if (s.is_dry()) return;
  CHECK(spec.head_dim <= kMaxHeadDim && spec.head_dim % 2 == 0);
  AttendArgs args{.spans = batch.on_device,
                  .span_of_row = batch.span_of_row,
                  .q = q.f32(),
                  .q_gate = q_gate.f32(),
                  .selected = selection != nullptr ? selection->blocks.i32() : nullptr,
                  .counts = selection != nullptr ? selection->count.i32() : nullptr,
                  .most = most.f32(),
                  .sum = sum.f32(),
                  .mixed = mixed.f32(),
                  .out = out.f32(),
                  .first_row = 0,
                  .q_heads = spec.q_heads,
                  .kv_heads = spec.kv_heads,
                  .dim = spec.head_dim,
                  .block_tokens = spec.block_tokens,
                  .selected_tokens = selection != nullptr ? selection->block_tokens : 1,
                  .budget = selection != nullptr ? static_cast<int>(selection->blocks.width()) : 0,
                  .max_partitions = partitions,
                  .scale = 1.0F / std::sqrt(static_cast<float>(spec.head_dim))};
  const int slices = (spec.q_heads / spec.kv_heads + kHeads - 1) / kHeads;
  for (; args.first_row < rows; args.first_row += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, rows - args.first_row);
    const int wide = partitions_between(batch.host, args.first_row, args.first_row + count, max_positions);
    const dim3 grid(static_cast<unsigned>(wide), static_cast<unsigned>(spec.kv_heads * slices),
                    static_cast<unsigned>(count));
    if (is_bf16(cache)) {
      launch_attend<std::uint16_t>(s, args, cache, grid);
    } else {
      launch_attend<float>(s, args, cache, grid);
    }
    launch(s, "attention, merging", {dim3(static_cast<unsigned>(spec.q_heads), static_cast<unsigned>(count)), kThreads},
           merge, args);
  }
}

}  // namespace rondo::cuda
