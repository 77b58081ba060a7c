// A block has kColumns columns of one sequence's state for one V head; columns know nothing of each other. A warp has
// every fourth row of 32 of them in registers, from the first row of the span to the last: certain rows move the stored
// state, drafts only the registers, and what they would add is logged. Folding repeats the step's own two roundings.
//
// What a row needs besides the state is made while the state does the row before: a thread has one channel of q, k or v
// (of delta_net: convolved on its way in) or one column of the output's gate. So a row costs two barriers. delta_net
// norms a row's outputs while the next row is under way. Its operations are those of conv_cuda.cu and norm.cuh, in
// their order.
//
// The blocks of all V heads that share a K head are a cluster. What several of them read and one writes (the
// convolution's past of q and k; of a head of several blocks the logs of keys and decays) is written when all of them
// have read it.
#include "ops/common/launch.cuh"
#include "ops/delta/delta_cuda.h"
#include "ops/delta/delta_inputs.cuh"
#include "ops/delta/long_spans.cuh"

namespace rondo::cuda {

using namespace stepping;

namespace {

// Calls visit(state's element, where it is stored) for the thread's rows.
template <class Visit>
__device__ void for_stored(float (&state)[kRowsEach], const DeltaArgs& a, int slot, const Place& at, Visit visit) {
  if (!at.live) return;
  const std::int64_t head = (static_cast<std::int64_t>(slot) * a.v_heads + at.head) * a.k_dim * a.v_dim;
  float* first = a.memory + head + at.sum * a.v_dim + at.column;
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    if (r * kSums + at.sum < a.k_dim) visit(state[r], first[r * kSums * a.v_dim]);
  }
}
// Calls visit(state's element, the keys' element) for the thread's rows; past k_dim both are zero.
template <class Visit>
__device__ void for_keys(float (&state)[kRowsEach], const Place& at, const Keys& keys, Visit visit) {
#pragma unroll
  for (int r = 0; r < kRowsEach; r += 4) {
    const float4 k = keys.four(at.sum, r);
    visit(state[r], k.x), visit(state[r + 1], k.y), visit(state[r + 2], k.z), visit(state[r + 3], k.w);
  }
}

// The logged rows of the last span go into the state, some at a time.
__device__ void fold_logged(const DeltaArgs& a, const RowSpan& span, const Place& at, float (&state)[kRowsEach],
                            FoldRoom& room) {
  const int quarter = threadIdx.x / kColumns, element = threadIdx.x % kColumns;
  const int column = at.part * kColumns + element;
  const bool has_keys = quarter % 2 == 0, live = has_keys ? element < a.k_dim : column < a.v_dim;
  for (int first = 0; first < span.fold; first += kFolds) {
    const int count = min(kFolds, span.fold - first);
    const auto log_at = [&](int f) {
      return (static_cast<std::int64_t>(span.slot) * a.log_rows + first + f) * a.v_heads + at.head;
    };
    float logged[kFolds / 2];
#pragma unroll
    for (int j = 0; j < kFolds / 2; ++j) {
      const int f = 2 * j + quarter / 2;
      logged[j] = 0;
      if (!live || f >= count) continue;
      logged[j] = has_keys ? a.key_log[log_at(f) * a.k_dim + element] : a.delta_log[log_at(f) * a.v_dim + column];
    }
#pragma unroll
    for (int j = 0; j < kFolds / 2; ++j) {
      const int f = 2 * j + quarter / 2;
      (has_keys ? room.keys[f][element] : room.delta[f][element]) = logged[j];
    }
    if (static_cast<int>(threadIdx.x) < count) room.decay[threadIdx.x] = a.decay_log[log_at(threadIdx.x)];
    __syncthreads();
    for (int f = 0; f < count; ++f) {
      const float decay = room.decay[f], delta = room.delta[f][at.lane];
      for_keys(state, at, room.keys[f], [&](float& s, float k) { s = __fmaf_rn(k, delta, __fmul_rn(decay, s)); });
    }
    __syncthreads();
  }
}

// What a row needs is made in two halves, a barrier behind each: all but the norm of q and k, and that.
template <bool IsNet>
__device__ float begin_row(const NetArgs& n, const Part& part, const InputRoom& in, int half, RowRoom& room,
                           ChannelRoom& channel_room) {
  float mine = in.own[threadIdx.x];
  if constexpr (IsNet) {
    if (part.role != Role::Gate) {
      mine = convolve(mine, channel_room);
    } else {
      mine = n.sigmoid_gate ? sigmoid(mine) : silu(mine);
    }
  }
  if (part.role == Role::Query || part.role == Role::Key) {
    const float squares = warp_sum(__fmul_rn(mine, mine));
    if (threadIdx.x % kWarp == 0) room.squares[threadIdx.x / kWarp] = squares;
  }
  if (part.role == Role::Value) room.value[half][part.element] = mine;
  if (threadIdx.x == kDecayThread) room.decay[half] = decay_of(in.head[threadIdx.x], room.dt_bias, room.decay_rate);
  if (threadIdx.x == kBetaThread) room.beta[half] = 1.0F / (1.0F + expf(-in.head[threadIdx.x]));
  return mine;
}
__device__ void end_row(const Part& part, float mine, float q_scale, int half, RowRoom& room) {
  if (part.role == Role::Gate) room.gate[half][part.element] = mine;
  if (part.role != Role::Query && part.role != Role::Key) return;
  constexpr int kWarps = kMaxKeyDim / kWarp;
  const int which = part.role == Role::Query ? 0 : 1;
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) squares += room.squares[which * kWarps + i];
  room.keys[half][which][part.element] = mine * ((which == 0 ? q_scale : 1.0F) / sqrtf(squares + 1e-6F));
}

// One row of the rule, in three pieces with a barrier between them: what the state says to the key, the state moves on
// and says something to the query, that is put together.
__device__ void read_state(const Place& at, int half, float (&state)[kRowsEach], RowRoom& room) {
  const float decay = room.decay[half];
  float read = 0;
  for_keys(state, at, room.keys[half][1], [&](float& s, float k) {
    s = __fmul_rn(decay, s);
    read = __fmaf_rn(k, s, read);
  });
  room.read[at.sum][at.lane] = read;
}
__device__ float total(const float (&of)[kSums][kColumns], int lane) {
  return ((of[0][lane] + of[1][lane]) + of[2][lane]) + of[3][lane];
}
// Gives delta.
__device__ float move_state(const Place& at, int half, float (&state)[kRowsEach], RowRoom& room) {
  const float said = __fsub_rn(room.value[half][at.lane], total(room.read, at.lane));
  const float delta = at.live ? room.beta[half] * said : 0.0F;
  float answer = 0;
#pragma unroll
  for (int r = 0; r < kRowsEach; r += 4) {
    const float4 q = room.keys[half][0].four(at.sum, r), k = room.keys[half][1].four(at.sum, r);
    const float queries[4] = {q.x, q.y, q.z, q.w}, keys[4] = {k.x, k.y, k.z, k.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      state[r + j] = __fmaf_rn(keys[j], delta, state[r + j]);
      answer = __fmaf_rn(queries[j], state[r + j], answer);
    }
  }
  room.answer[at.sum][at.lane] = answer;
  return delta;
}
// The head's output, normed, by one warp.
__device__ void put_normed(const DeltaArgs& a, const NetArgs& n, const Place& at, int row, int half,
                           const RowRoom& room) {
  const int d = threadIdx.x % kWarp * 4;
  const bool live = d < a.v_dim;
  float x[4], squares = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) x[j] = live ? total(room.answer, d + j) : 0.0F;
#pragma unroll
  for (int j = 0; j < 4; ++j) squares = fmaf(x[j], x[j], squares);
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(a.v_dim) + n.eps);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    x[j] *= scale * room.gain[d + j];
    x[j] *= room.gate[half][d + j];
  }
  float* to = a.out + (static_cast<std::int64_t>(row) * a.v_heads + at.head) * a.v_dim + d;
  if (live) *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
}
template <bool IsNet>
__device__ void put_output(const DeltaArgs& a, const NetArgs& n, const Place& at, int row, int half,
                           const RowRoom& room) {
  if constexpr (IsNet) {
    if (threadIdx.x / kWarp == kNormWarp) put_normed(a, n, at, row, half, room);
  } else if (at.sum == 0 && at.live) {
    a.out[(static_cast<std::int64_t>(row) * a.v_heads + at.head) * a.v_dim + at.column] = total(room.answer, at.lane);
  }
}

// What folding a draft will need.
__device__ void log_draft(const DeltaArgs& a, const RowSpan& span, const Place& at, const Part& part, int t,
                          float delta, RowRoom& room) {
  const std::int64_t to =
      (static_cast<std::int64_t>(here(span.slot)) * a.log_rows + t - span.certain) * a.v_heads + at.head;
  if (at.sum == 0 && at.live) a.delta_log[to * a.v_dim + at.column] = delta;
  if (at.part > 0) return;
  if (part.role == Role::Key && part.live) a.key_log[to * a.k_dim + part.element] = room.keys[t & 1][1][part.element];
  if (threadIdx.x == kDecayThread) a.decay_log[to] = room.decay[t & 1];
}

// What the compiler knows: the sizes of a head that has the most a block takes. The arithmetic is the same.
enum class Fit { Any, FullHeads };

// IsNet: delta_net; else gated_delta, and nothing of `n` is there.
template <bool IsNet, Fit Fits>
__global__ void __launch_bounds__(kThreads, Fits == Fit::FullHeads ? 2 : 1) step_states(DeltaArgs a, NetArgs n) {
  let_next_in();
  if constexpr (Fits != Fit::Any) a.k_dim = kMaxKeyDim, a.v_dim = kColumns;
  __shared__ RowRoom room;
  __shared__ ChannelRoom channel_room;
  __shared__ InputRoom inputs;
  __shared__ FoldRoom fold_room;
  const Place at = place_of(a);
  const Part part = part_of<IsNet>(a, at);
  // Weights are there before everything else.
  if (threadIdx.x == kDecayThread) room.dt_bias = a.dt_bias[at.head], room.decay_rate = a.decay_rate[at.head];
  if constexpr (IsNet) read_weights(a, n, part, room, channel_room);
  wait_for_before();
  const RowSpan span = a.spans[blockIdx.y];

  // A row's inputs are under way before they are needed: the first ahead of the state, each next one as soon as there
  // is room for it.
  if (span.count > 0) bring_row(a, n, at, part, span.begin, inputs);
  if constexpr (IsNet) bring_past(a, n, span, part, channel_room);
  commit_copies();
  float state[kRowsEach] = {};  // row r * kSums + sum of the column
  if (span.start_pos > 0) for_stored(state, a, span.slot, at, [](float& s, const float& stored) { s = stored; });
  wait_for_copies<0>();
  fold_logged(a, span, at, state, fold_room);
  arrive_in_cluster();  // this thread has read all that others may write
  // Row t, and what row t + 1 needs; a span that only folds has no rows.
  for (int t = -1; t < span.count; ++t) {
    const int half = t & 1;
    const bool more = t + 1 < span.count;
    float mine = 0;
    if (t >= 0) read_state(at, half, state, room);
    if (t == 0 || span.count == 0) wait_for_cluster();
    if constexpr (IsNet) keep_past(a, n, span, part, t, channel_room);
    if (more) {
      wait_for_copies<0>();
      mine = begin_row<IsNet>(n, part, inputs, half ^ 1, room, channel_room);
    }
    if (t + 2 < span.count) bring_row(a, n, at, part, span.begin + t + 2, inputs), commit_copies();
    __syncthreads();
    if (t >= 0) {
      const float delta = move_state(at, half, state, room);
      if (t >= span.certain) log_draft(a, span, at, part, t, delta, room);
    }
    if (more) end_row(part, mine, a.q_scale, half ^ 1, room);
    __syncthreads();
    if (t >= 0) put_output<IsNet>(a, n, at, span.begin + t, half, room);
    if (t + 1 == span.certain) {
      for_stored(state, a, here(span.slot), at, [](float& s, float& stored) { stored = s; });
    }
  }
}

int parts_of(DeltaSpec spec) { return (spec.v_dim + kColumns - 1) / kColumns; }

template <bool IsNet>
auto kernel_for(DeltaSpec spec) {
  const bool full = spec.k_dim == kMaxKeyDim && spec.v_dim == kColumns;
  return full ? step_states<IsNet, Fit::FullHeads> : step_states<IsNet, Fit::Any>;
}

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
  launch(s, "gated_delta", {grid_of(spec, rows), kThreads, 0, parts_of(spec)}, kernel_for<false>(spec),
         args_of(rows, u, a, b, gains, spec, state, out), NetArgs{});
}

bool has_delta_net(DeltaSpec spec, ConvSpec conv) {
  const bool fits = spec.k_dim <= kMaxKeyDim && spec.v_dim <= kColumns && spec.v_dim % 4 == 0;
  return fits && spec.v_heads / spec.k_heads * parts_of(spec) <= kMaxCluster && conv.dilation == 1 &&
         conv.kernel <= kMaxPast + 1;
}

void delta_net(Stream& s, const RowSpans& rows, const DeltaInputs& in, const DeltaNet& net, Tensor u, Tensor heads,
               Tensor out) {
  if (rows.host.empty()) return;
  const DeltaArgs args = args_of(rows, in.qkv, in.a, in.b, net.gains, net.spec, net.state, out);
  const NetArgs net_args{.weight = net.conv_weight.f32(),
                         .history = net.conv_state.history.f32(),
                         .log = net.conv_state.log.f32(),
                         .z = in.z.f32(),
                         .gain = net.norm_gain.f32(),
                         .past = net.conv.kernel - 1,
                         .log_rows = static_cast<int>(net.conv_state.log.shape[1]),
                         .eps = net.eps,
                         .sigmoid_gate = net.gate == Gate::Sigmoid};
  if (has_long_spans(net.spec, rows.host)) return delta_net_of_long_spans(s, rows, args, net_args, u, heads);
  launch(s, "delta_net",
         {grid_of(net.spec, rows), kThreads, 0, net.spec.v_heads / net.spec.k_heads * parts_of(net.spec)},
         kernel_for<true>(net.spec), args, net_args);
}

}  // namespace rondo::cuda
