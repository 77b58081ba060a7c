#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/linear/linear_cuda.h"
#include "ops/moe/moe_cuda.h"
#include "ops/pointwise/pointwise.h"

namespace rondo::cuda {

namespace {

constexpr int kRouteThreads = 128;
constexpr int kMaxExperts = 1024;

struct Best {
  float logit;
  int expert;
};
__device__ Best better(Best a, Best b) {
  if (a.logit != b.logit) return a.logit > b.logit ? a : b;
  return a.expert < b.expert ? a : b;
}

// One warp a row: k times the best that is left. A lane has every 32nd expert.
template <int Each>
__global__ void choose(const float* logits, std::int32_t* chosen, float* weight, int rows, int experts, int k,
                       bool normalise) {
  after_all_before();
  const int row = blockIdx.x * (kRouteThreads / kWarp) + threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (row >= rows) return;
  const float* from = logits + static_cast<std::int64_t>(row) * experts;
  float left[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) left[i] = lane + i * kWarp < experts ? from[lane + i * kWarp] : -INFINITY;
  float most = 0, total = 0, mine = 0;  // mine: of the lane-th choice
  for (int i = 0; i < k; ++i) {
    Best best{-INFINITY, experts};
#pragma unroll
    for (int j = 0; j < Each; ++j) best = better(best, {left[j], lane + j * kWarp});
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      best = better(
          best, {__shfl_xor_sync(0xFFFFFFFFu, best.logit, offset), __shfl_xor_sync(0xFFFFFFFFu, best.expert, offset)});
    }
    if (best.expert >= experts) best.expert = 0;  // all that is left is NaN or -inf
    if (i == 0) most = best.logit;
    const float rho = expf(best.logit - most);
    total += rho;
    if (lane == i) {
      mine = rho;
      chosen[row * k + i] = best.expert;
    }
#pragma unroll
    for (int j = 0; j < Each; ++j) left[j] = lane + j * kWarp == best.expert ? -INFINITY : left[j];
  }
  if (!normalise) {
    total = 0;
    for (int e = lane; e < experts; e += kWarp) total += expf(from[e] - most);
    total = warp_sum(total);
  }
  if (lane < k) weight[row * k + lane] = mine / total;
}

struct Grouped {
  std::int32_t* begin;   // [experts + 1]
  std::int32_t* rows;    // [rows * k] of the batch, expert by expert, ascending within one
  std::int32_t* place;   // [rows, k] where a row's i-th expert leaves its output
  std::int32_t* active;  // [experts] those with rows
  std::int32_t* num_active;
};

constexpr int kGroupThreads = kMaxExperts, kMaxPairs = 24 * 1024;

// Sum of `x` over the threads before this one, and over all.
__device__ int2 sums_before(int x) {
  __shared__ int parts[kGroupThreads / kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int upto = x;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int other = __shfl_up_sync(0xFFFFFFFFu, upto, offset);
    if (lane >= offset) upto += other;
  }
  __syncthreads();
  if (lane == kWarp - 1) parts[warp] = upto;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < kGroupThreads / kWarp; ++w) {
    before += w < warp ? parts[w] : 0;
    all += parts[w];
  }
  return make_int2(before + upto - x, all);
}

// One block, a thread an expert, then a thread a pair: its place is how many pairs before it chose the same expert, so
// the order is the same every time.
__global__ void __launch_bounds__(kGroupThreads)
    group_rows(const std::int32_t* chosen, int pairs, int k, int experts, Grouped g) {
  after_all_before();
  __shared__ int count[kMaxExperts];
  extern __shared__ std::uint16_t expert_of[];  // [pairs]
  const int e = threadIdx.x;
  count[e] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < pairs; i += kGroupThreads) {
    expert_of[i] = static_cast<std::uint16_t>(chosen[i]);
    atomicAdd(&count[chosen[i]], 1);
  }
  __syncthreads();
  const int mine = count[e];
  const int2 at = sums_before(mine), active = sums_before(mine > 0 ? 1 : 0);
  if (e <= experts) g.begin[e] = at.x;
  if (e == 0) {
    g.begin[experts] = at.y;
    *g.num_active = active.y;
  }
  if (mine > 0) g.active[active.x] = e;
  count[e] = at.x;
  __syncthreads();
  for (int i = threadIdx.x; i < pairs; i += kGroupThreads) {
    const int expert = expert_of[i];
    int place = count[expert];
    for (int j = 0; j < i; ++j) place += expert_of[j] == expert ? 1 : 0;
    g.rows[place] = i / k;
    g.place[i] = place;
  }
}

constexpr int kThreads = 256;

__global__ void combine(const float* expert_out, const std::int32_t* place, const float* weight,
                        const float* shared_out, const float* shared_gate, float* out, int hidden, int k) {
  after_all_before();
  const int d = blockIdx.x * kThreads + threadIdx.x;
  if (d >= hidden) return;
  const auto row = static_cast<std::int64_t>(blockIdx.y);
  float sum = 0;
  for (int i = 0; i < k; ++i) {
    sum += weight[row * k + i] * expert_out[static_cast<std::int64_t>(place[row * k + i]) * hidden + d];
  }
  out[row * hidden + d] = sum + sigmoid(shared_gate[row]) * shared_out[row * hidden + d];
}

// Bytes between what neighbouring experts have there.
template <class Address>
std::int64_t stride_of(std::span<const GatedMlpWeights> experts, Address address) {
  if (experts.size() == 1) return 0;
  const std::int64_t stride = address(experts[1]) - address(experts[0]);
  CHECK(address(experts.back()) == address(experts[0]) + stride * static_cast<std::int64_t>(experts.size() - 1));
  return stride;
}

// part: number of it among gate, up and down, whose tensor scales are a row each.
ExpertLinear expert_weights(const MoeWeights& w, Weight GatedMlpWeights::*which, int part) {
  const CodedView& first = (w.experts[0].*which).view;
  ExpertLinear out{};
  out.weight = first;
  out.codes_stride = stride_of(w.experts, [&](const GatedMlpWeights& e) { return (e.*which).view.codes; });
  for (const auto grid : {&CodedView::scales, &CodedView::biases}) {
    if (first.*grid == nullptr) continue;
    const std::int64_t stride = stride_of(w.experts, [&](const GatedMlpWeights& e) { return (e.*which).view.*grid; });
    CHECK(grid == &CodedView::scales || stride == out.scales_stride);
    out.scales_stride = stride;
  }
  if (w.tensor_scales.data != nullptr) {
    out.tensor_scales = w.tensor_scales.f32() + part * static_cast<std::int64_t>(w.experts.size());
  }
  return out;
}

}  // namespace

void route(Stream& s, Tensor logits, bool normalise_topk, Tensor chosen, Tensor weight) {
  if (logits.rows() == 0) return;
  CHECK(logits.width() <= kMaxExperts);
  const int rows = logits.rows(), experts = static_cast<int>(logits.width()), k = static_cast<int>(chosen.width());
  CHECK(k <= kWarp);
  constexpr int kRows = kRouteThreads / kWarp;
  const auto blocks = static_cast<unsigned>((rows + kRows - 1) / kRows);
  const auto run = [&](auto kernel) {
    launch(s, "route", {blocks, kRouteThreads}, kernel, logits.f32(), chosen.i32(), weight.f32(), rows, experts, k,
           normalise_topk);
  };
  if (experts <= 8 * kWarp) {
    run(choose<8>);
  } else if (experts <= 16 * kWarp) {
    run(choose<16>);
  } else {
    run(choose<32>);
  }
}

void mixture_of_experts(Stream& s, const MoeWeights& w, Tensor x, Scratch scratch, Tensor out) {
  const std::int64_t rows = x.rows(), hidden = x.width(), k = w.experts_per_token;
  const auto experts = static_cast<std::int64_t>(w.experts.size());
  const std::int64_t size = w.experts[0].gate.shape[0], shared_size = w.shared.gate.shape[0];
  const Tensor logits = scratch.take_f32({rows, experts}), shared_gate = scratch.take_f32({rows, 1});
  const Tensor chosen = scratch.take_i32({rows, k}), weight = scratch.take_f32({rows, k});
  const Tensor begin = scratch.take_i32({experts + 1}), gathered = scratch.take_i32({rows * k});
  const Tensor place = scratch.take_i32({rows, k}), active = scratch.take_i32({experts}),
               num_active = scratch.take_i32({1});
  // The shared expert's activations lie behind the others', so that one step serves both.
  const std::int64_t routed = rows * k * size, acts = routed + rows * shared_size;
  const Tensor gates = scratch.take_f32({1, acts}), ups = scratch.take_f32({1, acts});
  const Tensor expert_out = scratch.take_f32({rows * k, hidden});
  const Tensor shared_out = scratch.take_f32({rows, hidden});
  if (s.is_dry() || rows == 0) return;
  const Tensor gate{gates.data, DType::F32, {rows * k, size}}, up{ups.data, DType::F32, {rows * k, size}};
  const Tensor shared_act{gates.f32() + routed, DType::F32, {rows, shared_size}};
  const Tensor shared_up{ups.f32() + routed, DType::F32, {rows, shared_size}};
  CHECK(experts <= kMaxExperts && rows * k <= kMaxPairs);

  const auto part = [&](const Weight& weights, Tensor in, Tensor to) {
    return LinearPart{.weight = weights, .x = in, .out = to, .rows = x.rows()};
  };
  const LinearPart first[] = {part(w.router, x, logits), part(w.shared_gate, x, shared_gate)};
  rondo::linear(s, first);
  rondo::route(s, logits, w.normalise_topk, chosen, weight);
  const Grouped grouped{begin.i32(), gathered.i32(), place.i32(), active.i32(), num_active.i32()};
  launch(s, "group_rows", {1, kGroupThreads, static_cast<int>(rows * k) * static_cast<int>(sizeof(std::uint16_t))},
         group_rows, chosen.i32(), static_cast<int>(rows * k), static_cast<int>(k), static_cast<int>(experts), grouped);

  const auto expert_part = [&](Weight GatedMlpWeights::*which, int number, const float* in, const std::int32_t* in_rows,
                               Tensor to) {
    ExpertLinear experts_part = expert_weights(w, which, number);
    experts_part.x = in;
    experts_part.in_rows = in_rows;
    experts_part.out = to.f32();
    experts_part.begin = begin.i32();
    experts_part.active = active.i32();
    experts_part.num_active = num_active.i32();
    return experts_part;
  };
  const int most_active = static_cast<int>(std::min(experts, rows * k));
  const ExpertLinear wide[] = {expert_part(&GatedMlpWeights::gate, 0, x.f32(), gathered.i32(), gate),
                               expert_part(&GatedMlpWeights::up, 1, x.f32(), gathered.i32(), up)};
  const LinearPart shared_wide[] = {part(w.shared.gate, x, shared_act), part(w.shared.up, x, shared_up)};
  expert_linear(s, wide, shared_wide, most_active, x.rows());
  rondo::silu_product(s, gates, ups, gates);
  const ExpertLinear down[] = {expert_part(&GatedMlpWeights::down, 2, gate.f32(), nullptr, expert_out)};
  const LinearPart shared_down[] = {part(w.shared.down, shared_act, shared_out)};
  expert_linear(s, down, shared_down, most_active, x.rows());

  const dim3 grid(static_cast<unsigned>((hidden + kThreads - 1) / kThreads), static_cast<unsigned>(rows));
  launch(s, "combine", {grid, kThreads}, combine, expert_out.f32(), place.i32(), weight.f32(), shared_out.f32(),
         shared_gate.f32(), out.f32(), static_cast<int>(hidden), static_cast<int>(k));
}

}  // namespace rondo::cuda
