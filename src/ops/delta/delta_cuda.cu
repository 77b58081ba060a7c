// A block has kColumns columns of one sequence's state for one V head; columns know nothing of each other. A warp has
// every fourth row of them in registers, from the first row of the span to the last: certain rows move the stored
// state, drafts only the registers, and what they would add is logged. Folding repeats the step's own two roundings.
#include <cooperative_groups.h>

#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/delta/delta_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kColumns = 32, kWarps = 4, kThreads = kColumns * kWarps;
constexpr int kMaxKeyDim = 128, kRowsEach = kMaxKeyDim / kWarps;

struct DeltaArgs {
  const RowSpan* spans;
  const float *u, *a, *b, *decay_rate, *dt_bias;
  float *memory, *key_log, *delta_log, *decay_log, *out;
  int k_heads, v_heads, k_dim, v_dim, log_rows;
};

// What the four warps share of one row.
struct RowRoom {
  float q[kMaxKeyDim], k[kMaxKeyDim];
  float read[kWarps][kColumns], answer[kWarps][kColumns];
};

__device__ float decay_of(float a, float dt_bias, float decay_rate) {
  const float x = a + dt_bias;
  const float softplus = x > 20.0F ? x : log1pf(expf(x));
  return expf(decay_rate * softplus);
}

// What a thread reads of a row: its element of q and k, its column of v, and the head's gates.
struct RowInputs {
  float q, k, v, a, b;
};
__device__ RowInputs read_row(const DeltaArgs& a, std::int64_t row, int head, int column) {
  const std::int64_t keys = static_cast<std::int64_t>(a.k_heads) * a.k_dim;
  const float* u = a.u + row * (2 * keys + static_cast<std::int64_t>(a.v_heads) * a.v_dim);
  const std::int64_t k_head = head / (a.v_heads / a.k_heads), i = threadIdx.x;
  return {.q = i < a.k_dim ? u[k_head * a.k_dim + i] : 0.0F,
          .k = i < a.k_dim ? u[keys + k_head * a.k_dim + i] : 0.0F,
          .v = column < a.v_dim ? u[2 * keys + head * a.v_dim + column] : 0.0F,
          .a = a.a[row * a.v_heads + head],
          .b = a.b[row * a.v_heads + head]};
}

// q and k of a row, normalised; a thread each element.
__device__ void normalise_keys(const RowInputs& row, float q_scale, RowRoom& room) {
  const float q_squares = block_sum<kThreads>(row.q * row.q), k_squares = block_sum<kThreads>(row.k * row.k);
  room.q[threadIdx.x] = row.q * (q_scale / sqrtf(q_squares + 1e-6F));
  room.k[threadIdx.x] = row.k * (1.0F / sqrtf(k_squares + 1e-6F));
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads, 4) step_states(DeltaArgs a) {
  after_all_before();
  __shared__ RowRoom room;
  const RowSpan span = a.spans[blockIdx.z];
  const int head = blockIdx.y, warp = threadIdx.x / kColumns, lane = threadIdx.x % kColumns;
  const int column = blockIdx.x * kColumns + lane;
  const bool live = column < a.v_dim;
  float* memory = a.memory + (static_cast<std::int64_t>(span.slot) * a.v_heads + head) * a.k_dim * a.v_dim + column;
  const auto log_at = [&](int i) { return (static_cast<std::int64_t>(span.slot) * a.log_rows + i) * a.v_heads + head; };

  // A row's inputs are under way before they are needed: the first ahead of the state, each next one with the row
  // before.
  RowInputs next{};
  if (span.count > 0) next = read_row(a, span.begin, head, column);
  const float dt_bias = a.dt_bias[head], decay_rate = a.decay_rate[head];
  float state[kRowsEach];  // row r * kWarps + warp of the column
#pragma unroll
  for (int r = 0; r < kRowsEach; ++r) {
    const int i = r * kWarps + warp;
    state[r] = live && i < a.k_dim && span.start_pos > 0 ? memory[static_cast<std::int64_t>(i) * a.v_dim] : 0.0F;
  }
  for (int f = 0; f < span.fold; ++f) {
    const std::int64_t at = log_at(f);
    const float decay = a.decay_log[at], delta = live ? a.delta_log[at * a.v_dim + column] : 0.0F;
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      const int i = r * kWarps + warp;
      if (i < a.k_dim) state[r] = __fmaf_rn(a.key_log[at * a.k_dim + i], delta, __fmul_rn(decay, state[r]));
    }
  }
  const auto keep_state = [&] {
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      const int i = r * kWarps + warp;
      if (live && i < a.k_dim) memory[static_cast<std::int64_t>(i) * a.v_dim] = state[r];
    }
  };
  // The blocks of a head share its logs of keys and decays: all have folded before the first writes anew.
  if (span.fold > 0 && span.count > span.certain) cooperative_groups::this_cluster().sync();
  if (span.certain == 0) keep_state();  // a span that only folds
  const float q_scale = 1.0F / sqrtf(static_cast<float>(a.k_dim));
  for (int t = 0; t < span.count; ++t) {
    const std::int64_t row = span.begin + t;
    const RowInputs now = next;
    if (t + 1 < span.count) next = read_row(a, row + 1, head, column);
    normalise_keys(now, q_scale, room);
    const float decay = decay_of(now.a, dt_bias, decay_rate), beta = 1.0F / (1.0F + expf(-now.b));
    float read = 0;
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      state[r] = __fmul_rn(decay, state[r]);
      read = __fmaf_rn(room.k[r * kWarps + warp], state[r], read);  // past k_dim both are zero
    }
    room.read[warp][lane] = read;
    __syncthreads();
    const float all_read = ((room.read[0][lane] + room.read[1][lane]) + room.read[2][lane]) + room.read[3][lane];
    const float delta = live ? beta * (now.v - all_read) : 0.0F;
    float answer = 0;
#pragma unroll
    for (int r = 0; r < kRowsEach; ++r) {
      state[r] = __fmaf_rn(room.k[r * kWarps + warp], delta, state[r]);
      answer = __fmaf_rn(room.q[r * kWarps + warp], state[r], answer);
    }
    room.answer[warp][lane] = answer;
    __syncthreads();
    if (warp == 0 && live) {
      a.out[(row * a.v_heads + head) * a.v_dim + column] =
          ((room.answer[0][lane] + room.answer[1][lane]) + room.answer[2][lane]) + room.answer[3][lane];
    }
    if (t + 1 == span.certain) keep_state();
    if (t >= span.certain) {
      const std::int64_t at = log_at(t - span.certain);
      if (warp == 0 && live) a.delta_log[at * a.v_dim + column] = delta;
      if (blockIdx.x == 0 && threadIdx.x < a.k_dim) a.key_log[at * a.k_dim + threadIdx.x] = room.k[threadIdx.x];
      if (blockIdx.x == 0 && threadIdx.x == 0) a.decay_log[at] = decay;
    }
    __syncthreads();  // the row's room is free
  }
}

}  // namespace

void gated_delta(Stream& s, const RowSpans& rows, Tensor u, Tensor a, Tensor b, DeltaGains gains, DeltaSpec spec,
                 DeltaState state, Tensor out) {
  if (rows.host.empty()) return;
  const auto blocks = static_cast<unsigned>((spec.v_dim + kColumns - 1) / kColumns);
  CHECK(spec.k_dim <= kMaxKeyDim && blocks <= 8);
  const DeltaArgs args{.spans = rows.on_device,
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
                       .log_rows = static_cast<int>(state.decay_log.shape[1])};
  launch(s, "gated_delta",
         {dim3(blocks, static_cast<unsigned>(spec.v_heads), static_cast<unsigned>(rows.host.size())), kThreads, 0,
          static_cast<int>(blocks)},
         step_states, args);
}

}  // namespace rondo::cuda
