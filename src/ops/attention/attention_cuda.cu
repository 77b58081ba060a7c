#include <algorithm>

#include "ops/attention/attend.cuh"
#include "ops/attention/attention_cuda.h"
#include "ops/attention/head_norm.cuh"
#include "ops/common/launch.cuh"

namespace rondo::cuda {

using namespace attending;

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

int most_partitions(int max_positions) {
  return std::min(kMaxPartitions, (max_positions + kPartition - 1) / kPartition);
}

template <class Element>
void launch_attend(Stream& s, const AttendArgs& args, KvCache cache, bool shares, const dim3& grid) {
  launch(s, "attention", {grid, kThreads}, shares ? attend<kShare, Element> : attend<1, Element>, args,
         cache.keys.as<Element>(), cache.values.as<Element>());
}

// The groups of rows [begin, end): of a span's rows that see everything up to their own, kShare together, as long as
// their partitions are of one size.
int group_rows(std::span<const RowSpan> spans, int begin, int end, bool is_dense, RowGroup* groups) {
  int num_groups = 0;
  for (const RowSpan& span : spans) {
    const int last = std::min(end, span.begin + span.count);
    for (int row = std::max(begin, span.begin); row < last;) {
      const auto visible = [&](int at) { return span.start_pos + at - span.begin + 1 - span.first_pos; };
      int count = is_dense ? std::min(kShare, last - row) : 1;
      while (partition_tokens(visible(row + count - 1)) != partition_tokens(visible(row))) --count;
      groups[num_groups++] = {static_cast<std::uint8_t>(row - begin), static_cast<std::uint8_t>(count)};
      row += count;
    }
  }
  return num_groups;
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
  CHECK(spec.head_dim <= kMaxHeadDim && spec.head_dim % 8 == 0);
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
                  .scale = 1.0F / std::sqrt(static_cast<float>(spec.head_dim)),
                  .groups = {}};
  const int slices = (spec.q_heads / spec.kv_heads + kHeads - 1) / kHeads;
  for (; args.first_row < rows; args.first_row += kRowsAtOnce) {
    const int count = std::min(kRowsAtOnce, rows - args.first_row);
    const int wide = partitions_between(batch.host, args.first_row, args.first_row + count, max_positions);
    const int groups =
        group_rows(batch.host, args.first_row, args.first_row + count, selection == nullptr, args.groups);
    const dim3 grid(static_cast<unsigned>(wide), static_cast<unsigned>(spec.kv_heads * slices),
                    static_cast<unsigned>(groups));
    if (is_bf16(cache)) {
      launch_attend<std::uint16_t>(s, args, cache, groups < count, grid);
    } else {
      launch_attend<float>(s, args, cache, groups < count, grid);
    }
    launch(s, "attention, merging", {dim3(static_cast<unsigned>(spec.q_heads), static_cast<unsigned>(count)), kThreads},
           merge, args);
  }
}

}  // namespace rondo::cuda
