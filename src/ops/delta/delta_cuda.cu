// A block has kColumns columns of one sequence's state for one V head; columns know nothing of each other. A warp has
// every fourth row of 32 of them in registers, from the first row of the span to the last: certain rows move the stored
// state, drafts only the registers, and what they would add is logged. Folding repeats the step's own two roundings.
//
// The blocks of all V heads that share a K head are a cluster. What several of them read and one writes (the logs of
// keys and decays, the convolution's past of q and k) is written when all of them have read it. delta_net convolves a
// row's inputs on their way in, and norms its outputs once the cluster has all of them: the operations of conv_cuda.cu
// and norm.cuh, in their order.
#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/delta/delta_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kSums = 4;  // warps that share 32 columns
constexpr int kColumns = 64, kThreads = kColumns * kSums, kWarps = kThreads / kWarp;
constexpr int kMaxKeyDim = 128, kRowsEach = kMaxKeyDim / kSums;
constexpr int kMaxPast = 3;  // inputs a convolution looks back
constexpr int kMaxCluster = 8;
static_assert(kThreads == 2 * kMaxKeyDim);  // a thread an element of q or of k

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

// What the warps share of one row.
struct RowRoom {
  float squares[kWarps];
  float keys[2][kMaxKeyDim];  // q, k
  float read[kSums][kColumns], answer[kSums][kColumns];
};

// Between these two, every thread of the cluster has done what stands before the first.
__device__ void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// The same number, of which the compiler knows nothing: addresses that it makes come about where they are used, and do
// not lie in registers from before a loop.
__device__ int here(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

__device__ float decay_of(float a, float dt_bias, float decay_rate) {
  const float x = a + dt_bias;
  const float softplus = x > 20.0F ? x : log1pf(expf(x));
  return expf(decay_rate * softplus);
}

// What a thread's convolution needs of a channel, in shared memory, as registers are scarce: weights and past inputs of
// every thread. Shorter kernels have zeros in front.
struct ChannelRoom {
  float weight[kMaxPast + 1][kThreads], past[kMaxPast][kThreads];
};

// One channel of u: where it stands and, for delta_net, its convolution. Not live: zeros, for a thread without one.
struct Channel {
  int at;
  bool live;
  ChannelRoom* room;

  __device__ float& past(int j) const { return room->past[j][threadIdx.x]; }
  __device__ void read_weights(const NetArgs& n, int channels) const {
#pragma unroll
    for (int j = 0; j <= kMaxPast; ++j) {
      const int tap = j - (kMaxPast - n.past);
      room->weight[j][threadIdx.x] = live && tap >= 0 ? n.weight[static_cast<std::int64_t>(tap) * channels + at] : 0.0F;
    }
  }
  // The inputs before the span, the folded ones among them.
  __device__ void read_past(const NetArgs& n, const RowSpan& span, int channels) const {
#pragma unroll
    for (int j = 0; j < kMaxPast; ++j) {
      const int i = j - (kMaxPast - n.past), from = i + span.fold;
      past(j) = 0;
      if (!live || i < 0 || span.start_pos == 0) continue;
      const std::int64_t row = from < n.past ? static_cast<std::int64_t>(span.slot) * n.past + from
                                             : static_cast<std::int64_t>(span.slot) * n.log_rows + from - n.past;
      past(j) = (from < n.past ? n.history : n.log)[row * channels + at];
    }
  }
  __device__ float convolve(float x) const {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kMaxPast; ++j) sum = fmaf(room->weight[j][threadIdx.x], past(j), sum);
    sum = fmaf(room->weight[kMaxPast][threadIdx.x], x, sum);
#pragma unroll
    for (int j = 0; j + 1 < kMaxPast; ++j) past(j) = past(j + 1);
    past(kMaxPast - 1) = x;
    return silu(sum);
  }
  __device__ void keep_past(const NetArgs& n, const RowSpan& span, int channels) const {
#pragma unroll
    for (int j = 0; j < kMaxPast; ++j) {
      const int i = j - (kMaxPast - n.past);
      if (live && i >= 0)
        n.history[(static_cast<std::int64_t>(here(span.slot)) * n.past + i) * channels + at] = past(j);
    }
  }
  __device__ void log(const NetArgs& n, const RowSpan& span, int draft, int channels, float x) const {
    if (live) n.log[(static_cast<std::int64_t>(here(span.slot)) * n.log_rows + draft) * channels + at] = x;
  }
};

// What a thread reads of a row: its element of q or k, its column of v, and the head's gates.
struct RowInputs {
  float key, value, a, b;
};
__device__ RowInputs read_row(const DeltaArgs& a, std::int64_t row, int head, const Channel& key, const Channel& value,
                              int channels) {
  const float* u = a.u + row * channels;
  return {.key = key.live ? u[key.at] : 0.0F,
          .value = value.live ? u[value.at] : 0.0F,
          .a = a.a[row * a.v_heads + head],
          .b = a.b[row * a.v_heads + head]};
}

// q and k of a row to room.keys, normalised: the first half of the threads has q.
__device__ void normalise_keys(float key, float q_scale, RowRoom& room) {
  const int half = threadIdx.x / kMaxKeyDim;
  const float mine = warp_sum(__fmul_rn(key, key));
  if (threadIdx.x % kWarp == 0) room.squares[threadIdx.x / kWarp] = mine;
  __syncthreads();
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kWarps / 2; ++i) squares += room.squares[half * (kWarps / 2) + i];
  room.keys[half][threadIdx.x % kMaxKeyDim] = key * ((half == 0 ? q_scale : 1.0F) / sqrtf(squares + 1e-6F));
  __syncthreads();
}

// The head's outputs of a span, a warp a row, once all its blocks have left theirs: block `part` of `parts` begins.
__device__ void norm_outputs(const DeltaArgs& a, const NetArgs& n, const RowSpan& span, int head, int part, int parts) {
  const int warp = threadIdx.x / kWarp, d = threadIdx.x % kWarp * 4;
  const bool live = d < a.v_dim;
  const auto four_at = [&](const float* at) {
    return live ? *reinterpret_cast<const float4*>(at) : make_float4(0, 0, 0, 0);
  };
  for (int t = part * kWarps + warp; t < span.count; t += parts * kWarps) {
    const std::int64_t at = (static_cast<std::int64_t>(span.begin + t) * a.v_heads + head) * a.v_dim + d;
    const float4 o = live ? __ldcg(reinterpret_cast<const float4*>(a.out + at)) : make_float4(0, 0, 0, 0);
    const float4 z = four_at(n.z + at), gain = four_at(n.gain + d);
    float x[4] = {o.x, o.y, o.z, o.w};
    const float gates[4] = {z.x, z.y, z.z, z.w}, gains[4] = {gain.x, gain.y, gain.z, gain.w};
    float squares = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) squares = fmaf(x[j], x[j], squares);
    const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(a.v_dim) + n.eps);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      x[j] *= scale * gains[j];
      x[j] *= n.sigmoid_gate ? sigmoid(gates[j]) : silu(gates[j]);
    }
    if (live) *reinterpret_cast<float4*>(a.out + at) = make_float4(x[0], x[1], x[2], x[3]);
  }
}

// Where a thread of a block stands.
struct Place {
  int head, part, parts;  // its columns of the head's
  int sum, lane, column;  // which rows of the state it has, and of which column
  bool live;              // there is such a column
};

__device__ Place place_of(const DeltaArgs& a) {
  const int parts = (a.v_dim + kColumns - 1) / kColumns, part = static_cast<int>(blockIdx.x) % parts;
  const int warp = threadIdx.x / kWarp, lane = warp / kSums * kWarp + threadIdx.x % kWarp;
  const int column = part * kColumns + lane;
  return {static_cast<int>(blockIdx.x) / parts, part, parts, warp % kSums, lane, column, column < a.v_dim};
}

// Calls visit(state's element, row of the state) for the thread's rows.
template <class Visit>
__device__ void for_state(float (&state)[kRowsEach], const Place& at, int k_dim, Visit visit) {
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    const int i = r * kSums + at.sum;
    if (i < k_dim) visit(state[r], i);
  }
}

// One row of the rule: the state moves on, the thread's part of the head's output is written. Gives delta.
__device__ float step(const DeltaArgs& a, const Place& at, std::int64_t row, float value, float decay, float beta,
                      float (&state)[kRowsEach], RowRoom& room) {
  float read = 0;
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    state[r] = __fmul_rn(decay, state[r]);
    read = __fmaf_rn(room.keys[1][r * kSums + at.sum], state[r], read);  // past k_dim both are zero
  }
  room.read[at.sum][at.lane] = read;
  __syncthreads();
  const auto total = [&](const float(&of)[kSums][kColumns]) {
    return ((of[0][at.lane] + of[1][at.lane]) + of[2][at.lane]) + of[3][at.lane];
  };
  const float delta = at.live ? beta * __fsub_rn(value, total(room.read)) : 0.0F;
  float answer = 0;
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    state[r] = __fmaf_rn(room.keys[1][r * kSums + at.sum], delta, state[r]);
    answer = __fmaf_rn(room.keys[0][r * kSums + at.sum], state[r], answer);
  }
  room.answer[at.sum][at.lane] = answer;
  __syncthreads();  // the next row writes its keys behind a barrier of its own
  if (at.sum == 0 && at.live) a.out[(row * a.v_heads + at.head) * a.v_dim + at.column] = total(room.answer);
  return delta;
}

// IsNet: delta_net; else gated_delta, and nothing of `n` is there.
template <bool IsNet>
__global__ void __launch_bounds__(kThreads, 2) step_states(DeltaArgs a, NetArgs n) {
  let_next_in();
  __shared__ RowRoom room;
  __shared__ ChannelRoom channel_rooms[IsNet ? 2 : 1];
  const Place at = place_of(a);
  const int ratio = a.v_heads / a.k_heads, keys = a.k_heads * a.k_dim, channels = 2 * keys + a.v_heads * a.v_dim;
  const int key_row = threadIdx.x % kMaxKeyDim;
  Channel key{(threadIdx.x < kMaxKeyDim ? 0 : keys) + at.head / ratio * a.k_dim + key_row, key_row < a.k_dim,
              &channel_rooms[0]};
  Channel value{2 * keys + at.head * a.v_dim + at.column, at.live, &channel_rooms[IsNet ? 1 : 0]};
  // Weights are there before everything else.
  const float dt_bias = a.dt_bias[at.head], decay_rate = a.decay_rate[at.head];
  if constexpr (IsNet) key.read_weights(n, channels), value.read_weights(n, channels);
  wait_for_before();
  const RowSpan span = a.spans[blockIdx.y];
  const auto log_at = [&](int i) {
    return (static_cast<std::int64_t>(here(span.slot)) * a.log_rows + i) * a.v_heads + at.head;
  };

  // A row's inputs are under way before they are needed: the first ahead of the state, each next one with the row
  // before.
  RowInputs next{};
  if (span.count > 0) next = read_row(a, span.begin, at.head, key, value, channels);
  if constexpr (IsNet) key.read_past(n, span, channels), value.read_past(n, span, channels);
  const auto memory = [&] {
    return a.memory + (static_cast<std::int64_t>(here(span.slot)) * a.v_heads + at.head) * a.k_dim * a.v_dim +
           at.column;
  };
  float state[kRowsEach] = {};  // row r * kSums + sum of the column
  if (at.live && span.start_pos > 0) {
    const float* from = memory();
    for_state(state, at, a.k_dim, [&](float& s, int i) { s = from[i * a.v_dim]; });
  }
  for (int f = 0; f < span.fold; ++f) {
    const float decay = a.decay_log[log_at(f)];
    const float delta = at.live ? a.delta_log[log_at(f) * a.v_dim + at.column] : 0.0F;
    const float* k = a.key_log + log_at(f) * a.k_dim;
    for_state(state, at, a.k_dim, [&](float& s, int i) { s = __fmaf_rn(k[i], delta, __fmul_rn(decay, s)); });
  }
  arrive_in_cluster();                                          // this thread has read all that others may write
  const bool has_keys = blockIdx.x % (ratio * at.parts) == 0;   // of what blocks share, this one writes q and k
  for (int t = span.count > 0 ? 0 : -1; t < span.count; ++t) {  // -1: a span that only folds
    RowInputs now{};
    float decay = 0, delta = 0;
    if (t >= 0) {
      now = next;
      if (t + 1 < span.count) next = read_row(a, span.begin + t + 1, at.head, key, value, channels);
      float key_now = now.key, value_now = now.value;
      if constexpr (IsNet) key_now = key.convolve(now.key), value_now = value.convolve(now.value);
      normalise_keys(key_now, a.q_scale, room);
      decay = decay_of(now.a, dt_bias, decay_rate);
      delta = step(a, at, span.begin + t, value_now, decay, 1.0F / (1.0F + expf(-now.b)), state, room);
    }
    if (t <= 0) wait_for_cluster();
    if (t + 1 == span.certain) {
      float* to = memory();
      if (at.live) for_state(state, at, a.k_dim, [&](float& s, int i) { to[i * a.v_dim] = s; });
      if constexpr (IsNet) {
        if (has_keys) key.keep_past(n, span, channels);
        if (at.sum == 0) value.keep_past(n, span, channels);
      }
    }
    if (t < span.certain) continue;
    const int draft = t - span.certain;
    if (at.sum == 0 && at.live) a.delta_log[log_at(draft) * a.v_dim + at.column] = delta;
    if (at.part == 0 && threadIdx.x < a.k_dim) {
      a.key_log[log_at(draft) * a.k_dim + threadIdx.x] = room.keys[1][threadIdx.x];
    }
    if (at.part == 0 && threadIdx.x == 0) a.decay_log[log_at(draft)] = decay;
    if constexpr (IsNet) {
      if (has_keys) key.log(n, span, draft, channels, now.key);
      if (at.sum == 0) value.log(n, span, draft, channels, now.value);
    }
  }
  if constexpr (IsNet) {
    arrive_in_cluster();
    wait_for_cluster();
    norm_outputs(a, n, span, at.head, at.part, at.parts);
  }
}

int parts_of(DeltaSpec spec) { return (spec.v_dim + kColumns - 1) / kColumns; }

DeltaArgs args_of(const RowSpans& rows, Tensor u, Tensor a, Tensor b, DeltaGains gains, DeltaSpec spec,
                  DeltaState state, Tensor out) {
  return {.spans = rows.on_device,
          .u = u.f32(),
          .a = a.f32(),
          .b = b.f32(),
          .decay_rate = gains.decay_rate.f32(),
          .dt_bias = gains.dt_bias.f32(),
          .memory = state.memory.f32(),
          .key_log = state.key_log.f32(),
          .delta_log = state.delta_log.f32(),
          .decay_log = state.decay_log.f32(),
          .out = out.f32(),
          .k_heads = spec.k_heads,
          .v_heads = spec.v_heads,
          .k_dim = spec.k_dim,
          .v_dim = spec.v_dim,
          .log_rows = static_cast<int>(state.decay_log.shape[1]),
          .q_scale = 1.0F / std::sqrt(static_cast<float>(spec.k_dim))};
}

dim3 grid_of(DeltaSpec spec, const RowSpans& rows) {
  return {static_cast<unsigned>(spec.v_heads * parts_of(spec)), static_cast<unsigned>(rows.host.size())};
}

}  // namespace

void gated_delta(Stream& s, const RowSpans& rows, Tensor u, Tensor a, Tensor b, DeltaGains gains, DeltaSpec spec,
                 DeltaState state, Tensor out) {
  if (rows.host.empty()) return;
  CHECK(spec.k_dim <= kMaxKeyDim && parts_of(spec) <= kMaxCluster);
  launch(s, "gated_delta", {grid_of(spec, rows), kThreads, 0, parts_of(spec)}, step_states<false>,
         args_of(rows, u, a, b, gains, spec, state, out), NetArgs{});
}

bool has_delta_net(DeltaSpec spec, ConvSpec conv) {
  const bool fits = spec.k_dim <= kMaxKeyDim && spec.v_dim <= 4 * kWarp && spec.v_dim % 4 == 0;
  return fits && spec.v_heads / spec.k_heads * parts_of(spec) <= kMaxCluster && conv.dilation == 1 &&
         conv.kernel <= kMaxPast + 1;
}

void delta_net(Stream& s, const RowSpans& rows, const DeltaInputs& in, const DeltaNet& net, Tensor out) {
  if (rows.host.empty()) return;
  launch(s, "delta_net",
         {grid_of(net.spec, rows), kThreads, 0, net.spec.v_heads / net.spec.k_heads * parts_of(net.spec)},
         step_states<true>, args_of(rows, in.qkv, in.a, in.b, net.gains, net.spec, net.state, out),
         NetArgs{.weight = net.conv_weight.f32(),
                 .history = net.conv_state.history.f32(),
                 .log = net.conv_state.log.f32(),
                 .z = in.z.f32(),
                 .gain = net.norm_gain.f32(),
                 .past = net.conv.kernel - 1,
                 .log_rows = static_cast<int>(net.conv_state.log.shape[1]),
                 .eps = net.eps,
                 .sigmoid_gate = net.gate == Gate::Sigmoid});
}

}  // namespace rondo::cuda
