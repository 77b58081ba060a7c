// What the blocks of step_states (delta_cuda.cu) share of a row, and what its threads bring in and make of a row before
// the state meets it: q, k and v (of delta_net: convolved), decay, beta, and the output's gate.
#pragma once

#include "ops/common/copies.cuh"
#include "ops/common/row_spans.h"
#include "ops/common/warp.cuh"

namespace rondo::cuda::stepping {

constexpr int kSums = 4;  // warps that share 32 columns
constexpr int kColumns = 128, kThreads = kColumns * kSums;
constexpr int kMaxKeyDim = 128, kRowsEach = kMaxKeyDim / kSums;
constexpr int kMaxPast = 3;  // inputs a convolution looks back
constexpr int kMaxCluster = 8;
constexpr int kFolds = 8;                             // logged rows that are brought in together
static_assert(kColumns == kMaxKeyDim && kSums == 4);  // a quarter of the threads each: q, k, v, the gate

// Which thread makes what of a row there is once a head, each in a warp of its own.
constexpr int kDecayThread = 3 * kColumns, kBetaThread = kDecayThread + kWarp, kNormWarp = kBetaThread / kWarp + 1;

struct DeltaArgs {
  const RowSpan* spans;
  const float *u, *a, *b, *decay_rate, *dt_bias;
  float *memory, *key_log, *delta_log, *decay_log, *out;
  int k_heads, v_heads, k_dim, v_dim, log_rows;
  float q_scale;
};

// What delta_net has besides; its u is not convolved yet.
struct NetArgs {
  const float* weight;
  float *history, *log;
  const float *z, *gain;
  int past, log_rows;
  float eps;
  bool sigmoid_gate;
};

// One number for each row of the state, those of a thread's next to each other: four at a time, and the threads of a
// warp that write them meet no bank twice.
struct alignas(16) Keys {
  float of[kSums][kRowsEach + 8];

  __device__ float& operator[](int i) { return of[i % kSums][i / kSums]; }
  __device__ float4 four(int sum, int r) const { return *reinterpret_cast<const float4*>(&of[sum][r]); }
};

// What the warps share of one row; of pairs, the row under way has one half and the next row the other.
struct alignas(16) RowRoom {
  float read[kSums][kColumns], answer[kSums][kColumns];
  Keys keys[2][2];  // q, k
  float gate[2][kColumns], gain[kColumns];
  float value[2][kColumns];
  float decay[2], beta[2];
  float dt_bias, decay_rate;
  float squares[2 * kMaxKeyDim / kWarp];
};

struct FoldRoom {
  Keys keys[kFolds];
  float delta[kFolds][kColumns], decay[kFolds];
};

// Between these two, every thread of the cluster has done what stands before the first, as far as it waited for that
// itself: what it read lies in shared memory. So nothing is fenced, and the state on its way in is not waited for.
__device__ inline void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void wait_for_cluster() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// The same number, of which the compiler knows nothing: addresses that it makes come about where they are used, and do
// not lie in registers from before a loop.
__device__ inline int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

__device__ inline float decay_of(float a, float dt_bias, float decay_rate) {
  const float x = a + dt_bias;
  const float softplus = x > 20.0F ? x : log1pf(expf(x));
  return expf(decay_rate * softplus);
}

// Where a thread of a block stands.
struct Place {
  int head, part, parts;  // its columns of the head's
  int sum, lane, column;  // which rows of the state it has, and of which column
  bool live;              // there is such a column
};

__device__ inline Place place_of(const DeltaArgs& a) {
  const int parts = (a.v_dim + kColumns - 1) / kColumns, part = static_cast<int>(blockIdx.x) % parts;
  const int warp = threadIdx.x / kWarp, lane = warp / kSums * kWarp + threadIdx.x % kWarp;
  const int column = part * kColumns + lane;
  return {static_cast<int>(blockIdx.x) / parts, part, parts, warp % kSums, lane, column, column < a.v_dim};
}

// What a thread makes of each row: an element of q, k or v, or of the gate.
enum class Role { Query, Key, Value, Gate };
struct Part {
  Role role;
  int element;
  bool live;    // there is such an element
  int channel;  // of u; of the gate, column of z
  bool keeps;   // of the blocks that read the channel, this one writes its past
};

template <bool IsNet>
__device__ Part part_of(const DeltaArgs& a, const Place& at) {
  const int ratio = a.v_heads / a.k_heads, keys = a.k_heads * a.k_dim, key = at.head / ratio * a.k_dim;
  const int element = threadIdx.x % kColumns, column = at.part * kColumns + element;
  const bool has_keys = blockIdx.x % (ratio * at.parts) == 0;
  switch (static_cast<Role>(threadIdx.x / kColumns)) {
    case Role::Query: return {Role::Query, element, element < a.k_dim, key + element, has_keys};
    case Role::Key: return {Role::Key, element, element < a.k_dim, keys + key + element, has_keys};
    case Role::Value: return {Role::Value, element, column < a.v_dim, 2 * keys + at.head * a.v_dim + column, true};
    default: return {Role::Gate, element, IsNet && column < a.v_dim, at.head * a.v_dim + column, false};
  }
}

__device__ inline int channels_of(const DeltaArgs& a) { return 2 * a.k_heads * a.k_dim + a.v_heads * a.v_dim; }

// What a thread reads of a row, on its way into shared memory: its own part, and what its head has for the decay or for
// beta.
struct InputRoom {
  float own[kThreads], head[kThreads];
};
// Past the end: zero.
__device__ inline void bring(float& to, const float* from, bool live) {
  if (live) {
    copy_async<4>(&to, from);
  } else {
    to = 0;
  }
}
__device__ inline void bring_row(const DeltaArgs& a, const NetArgs& n, const Place& at, const Part& part, int row,
                                 InputRoom& room) {
  const int outputs = a.v_heads * a.v_dim;
  const bool is_gate = here(threadIdx.x) >= 3 * kColumns;
  const float* own = (is_gate ? n.z : a.u) + static_cast<std::int64_t>(row) * (is_gate ? outputs : channels_of(a));
  bring(room.own[threadIdx.x], own + here(part.channel), part.live);
  const std::int64_t head = static_cast<std::int64_t>(row) * a.v_heads + at.head;
  if (threadIdx.x == kDecayThread) bring(room.head[threadIdx.x], a.a + head, true);
  if (threadIdx.x == kBetaThread) bring(room.head[threadIdx.x], a.b + head, true);
}

// What a thread's convolution needs of its channel, in shared memory, as registers are scarce: weights and past inputs
// of every thread. Shorter kernels have zeros in front.
struct ChannelRoom {
  float weights[kMaxPast + 1][3 * kColumns], inputs[kMaxPast][3 * kColumns];

  __device__ float& weight(int j) { return weights[j][threadIdx.x]; }
  __device__ float& past(int j) { return inputs[j][threadIdx.x]; }
};

__device__ inline void read_weights(const DeltaArgs& a, const NetArgs& n, const Part& part, RowRoom& room,
                                    ChannelRoom& channel_room) {
  if (part.role == Role::Gate) {
    room.gain[part.element] = part.live ? n.gain[part.element] : 0.0F;
    return;
  }
#pragma unroll
  for (int j = 0; j <= kMaxPast; ++j) {
    const int tap = j - (kMaxPast - n.past);
    channel_room.weight(j) =
        part.live && tap >= 0 ? n.weight[static_cast<std::int64_t>(tap) * channels_of(a) + part.channel] : 0.0F;
  }
}
// The inputs before the span, the folded ones among them.
__device__ inline void bring_past(const DeltaArgs& a, const NetArgs& n, const RowSpan& span, const Part& part,
                                  ChannelRoom& room) {
  if (part.role == Role::Gate) return;
  const std::int64_t slot = span.slot, channels = channels_of(a);
  const float* history = n.history + slot * n.past * channels + part.channel;
  const float* log = n.log + slot * n.log_rows * channels + part.channel;
#pragma unroll
  for (int j = 0; j < kMaxPast; ++j) {
    const int i = j - (kMaxPast - n.past), from = i + span.fold;
    const float* base = from < n.past ? history : log;
    bring(room.past(j), base + (from < n.past ? from : from - n.past) * static_cast<int>(channels),
          part.live && i >= 0 && span.start_pos > 0);
  }
}
__device__ inline float convolve(float x, ChannelRoom& room) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kMaxPast; ++j) sum = fmaf(room.weight(j), room.past(j), sum);
  sum = fmaf(room.weight(kMaxPast), x, sum);
#pragma unroll
  for (int j = 0; j + 1 < kMaxPast; ++j) room.past(j) = room.past(j + 1);
  room.past(kMaxPast - 1) = x;
  return silu(sum);
}
// Row t is the last that a channel's past has.
__device__ inline void keep_past(const DeltaArgs& a, const NetArgs& n, const RowSpan& span, const Part& part, int t,
                                 ChannelRoom& room) {
  if (!part.live || !part.keeps) return;
  const auto slot = static_cast<std::int64_t>(here(span.slot));
  if (t + 1 == span.certain) {
#pragma unroll
    for (int j = 0; j < kMaxPast; ++j) {
      const int i = j - (kMaxPast - n.past);
      if (i >= 0) n.history[(slot * n.past + i) * channels_of(a) + part.channel] = room.past(j);
    }
  }
  if (t >= span.certain)
    n.log[(slot * n.log_rows + t - span.certain) * channels_of(a) + part.channel] = room.past(kMaxPast - 1);
}

}  // namespace rondo::cuda::stepping
