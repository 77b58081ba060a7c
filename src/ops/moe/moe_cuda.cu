#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/linear/linear_cuda.h"
#include "ops/moe/mixture_sum.cuh"
#include "ops/moe/moe_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kRouteThreads = 128;
constexpr int kMaxExperts = 1024;

// A logit as a number that orders as it does, -0 as 0; 0 is under all of them.
__device__ unsigned key_of(float logit) {
  const unsigned bits = __float_as_uint(logit + 0.0F);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}
__device__ float logit_of(unsigned key) { return __uint_as_float(key >> 31 != 0 ? key & 0x7FFFFFFFu : ~key); }

// A row's choice by one warp: k times the best that is left, ties to the lower expert. A lane has every 32nd expert.
// take(i, expert) is called by one lane for each choice.
template <int Each, class Take>
__device__ void choose_row(const float* logits, float* weight, int experts, int k, bool normalise, Take take) {
  const int lane = threadIdx.x % kWarp;
  unsigned left[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) left[i] = lane + i * kWarp < experts ? key_of(logits[lane + i * kWarp]) : 0u;
  float most = 0, total = 0, mine = 0;  // mine: of the lane-th choice
  for (int i = 0; i < k; ++i) {
    unsigned best = 0;
    int expert = lane;
#pragma unroll
    for (int j = 0; j < Each; ++j) {
      if (left[j] > best) best = left[j], expert = lane + j * kWarp;
    }
    const unsigned best_of_all = __reduce_max_sync(0xFFFFFFFFu, best);
    expert = __reduce_min_sync(0xFFFFFFFFu, best == best_of_all ? expert : kMaxExperts);
    if (expert >= experts) expert = 0;  // nothing is left that has an order
    const float logit = logit_of(best_of_all);
    if (i == 0) most = logit;
    const float rho = expf(logit - most);
    total += rho;
    if (lane == i) {
      mine = rho;
      take(i, expert);
    }
#pragma unroll
    for (int j = 0; j < Each; ++j) left[j] = lane + j * kWarp == expert ? 0u : left[j];
  }
  if (!normalise) {
    total = 0;
    for (int e = lane; e < experts; e += kWarp) total += expf(logits[e] - most);
    total = warp_sum(total);
  }
  if (lane < k) weight[lane] = mine / total;
}

struct Routing {
  const float* logits;   // [rows, experts]
  std::int32_t* chosen;  // [rows, k]
  float* weight;         // [rows, k]
  int rows, experts, k;
  bool normalise;
};

template <int Each>
__global__ void choose(Routing r) {
  after_all_before();
  const int row = blockIdx.x * (kRouteThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= r.rows) return;
  choose_row<Each>(r.logits + static_cast<std::int64_t>(row) * r.experts, r.weight + row * r.k, r.experts, r.k,
                   r.normalise, [&](int i, int expert) { r.chosen[row * r.k + i] = expert; });
}

struct Grouped {
  std::int32_t* begin;   // [experts + 1]
  std::int32_t* rows;    // [rows * k] of the batch, expert by expert, ascending within one
  std::int32_t* place;   // [rows, k] where a row's i-th expert leaves its output
  std::int32_t* active;  // [experts] those with rows
  std::int32_t* num_active;
};

constexpr int kGroupThreads = kMaxExperts, kGroupWarps = kGroupThreads / kWarp, kMaxPairs = (1 << 16) - 1;
// Rows, a warp each, and experts that the block which groups also chooses for; more are chosen for by many, in a launch
// before.
constexpr int kRoutedByOne = kGroupWarps, kRoutedExperts = 16 * kWarp;

// Sum of `x` over the threads before this one, and over all.
__device__ int2 sums_before(int x) {
  __shared__ int parts[kGroupWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int upto = x;
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const int other = __shfl_up_sync(0xFFFFFFFFu, upto, offset);
    if (lane >= offset) upto += other;
  }
  if (lane == kWarp - 1) parts[warp] = upto;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < kGroupWarps; ++w) {
    before += w < warp ? parts[w] : 0;
    all += parts[w];
  }
  return make_int2(before + upto - x, all);
}

// One block, a thread an expert, then a thread a pair: its place is how many pairs before it chose the same expert, so
// the order is the same every time. Each: chooses first, 0: what is grouped is chosen already.
template <int Each>
__global__ void __launch_bounds__(kGroupThreads, 1) group_rows(Routing r, Grouped g) {
  after_all_before();
  __shared__ int next[kMaxExperts];                           // of each expert: how many it has, then its next place
  __shared__ std::uint8_t in_warp[kGroupWarps][kMaxExperts];  // pairs of each expert that a warp has
  __shared__ std::uint16_t just_chosen[Each > 0 ? kRoutedByOne * kWarp : 1];
  const int e = threadIdx.x, warp = e / kWarp, lane = e % kWarp, pairs = r.rows * r.k;
  const int warps = min(kGroupWarps, (pairs + kWarp - 1) / kWarp);  // that have pairs
  next[e] = 0;
  for (int w = 0; w < warps; ++w) in_warp[w][e] = 0;
  if constexpr (Each > 0) {
    if (warp < r.rows) {
      choose_row<Each>(r.logits + static_cast<std::int64_t>(warp) * r.experts, r.weight + warp * r.k, r.experts, r.k,
                       r.normalise,
                       [&](int i, int expert) { just_chosen[warp * r.k + i] = static_cast<std::uint16_t>(expert); });
    }
  }
  const auto expert_of = [&](int i) { return Each > 0 ? just_chosen[i] : r.chosen[i]; };
  __syncthreads();
  for (int i = e; i < pairs; i += kGroupThreads) atomicAdd(&next[expert_of(i)], 1);
  __syncthreads();
  const int mine = next[e];
  static_assert(kMaxPairs < 1 << 16);  // both sums at once: rows below, experts that have some above
  const int2 both = sums_before(mine | (mine > 0 ? 1 << 16 : 0));
  const int first = both.x & 0xFFFF;
  if (e <= r.experts) g.begin[e] = first;
  if (e == 0) {
    g.begin[r.experts] = both.y & 0xFFFF;
    *g.num_active = both.y >> 16;
  }
  if (mine > 0) g.active[both.x >> 16] = e;
  next[e] = first;
  for (int begin = 0; begin < pairs; begin += kGroupThreads) {
    const int i = begin + e, expert = i < pairs ? expert_of(i) : kMaxExperts;
    const unsigned same = __match_any_sync(0xFFFFFFFFu, expert);
    const int rank = __popc(same & ((1u << lane) - 1));
    if (i < pairs && rank == 0) in_warp[warp][expert] = static_cast<std::uint8_t>(__popc(same));
    __syncthreads();
    if (i < pairs) {
      int place = next[expert] + rank;
#pragma unroll 8
      for (int w = 0; w < warp; ++w) place += in_warp[w][expert];
      g.rows[place] = i / r.k;
      g.place[i] = place;
    }
    __syncthreads();
    for (int w = 0; begin + kGroupThreads < pairs && w < warps; ++w) {
      next[e] += in_warp[w][e];
      in_warp[w][e] = 0;
    }
    __syncthreads();
  }
}

Routing routing_of(Tensor logits, bool normalise_topk, Tensor chosen, Tensor weight) {
  CHECK(chosen.width() <= kWarp && logits.width() <= kMaxExperts);
  return {logits.f32(),
          chosen.i32(),
          weight.f32(),
          logits.rows(),
          static_cast<int>(logits.width()),
          static_cast<int>(chosen.width()),
          normalise_topk};
}

constexpr int kThreads = 256;

__global__ void add_up_rows(SumArgs sum, float* out, int hidden) {
  after_all_before();
  const int d = blockIdx.x * kThreads + threadIdx.x;
  if (d >= hidden) return;
  float total[1];
  sum.add_up<1>(blockIdx.y, d, hidden, total);
  out[static_cast<std::int64_t>(blockIdx.y) * hidden + d] = total[0];
}

// residual += the sum, and that is normed. A group is a row.
struct AddSum {
  SumArgs sum;
  float* residual;
  template <int Wide>
  __device__ void change(std::int64_t row, int d, int hidden, float (&x)[Wide]) const {
    float more[Wide];
    sum.add_up<Wide>(row, d, hidden, more);
#pragma unroll
    for (int j = 0; j < Wide; ++j) x[j] += more[j];
  }
  template <int Wide>
  __device__ void keep(std::int64_t row, int d, int hidden, const float (&x)[Wide]) const {
    write_wide<Wide>(residual + row * hidden, d, x);
  }
};

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
  const Routing routing = routing_of(logits, normalise_topk, chosen, weight);
  constexpr int kRows = kRouteThreads / kWarp;
  const auto blocks = static_cast<unsigned>((routing.rows + kRows - 1) / kRows);
  const auto kernel = routing.experts <= 8 * kWarp    ? choose<8>
                      : routing.experts <= 16 * kWarp ? choose<16>
                                                      : choose<kMaxExperts / kWarp>;
  launch(s, "route", {blocks, kRouteThreads}, kernel, routing);
}

namespace {

// route(), and the rows grouped by what they chose.
void route_and_group(Stream& s, Tensor logits, bool normalise_topk, Tensor chosen, Tensor weight,
                     const Grouped& grouped) {
  const Routing routing = routing_of(logits, normalise_topk, chosen, weight);
  const int pairs = routing.rows * routing.k;
  CHECK(pairs <= kMaxPairs);
  const LaunchShape one{1, kGroupThreads};
  if (routing.rows > kRoutedByOne || routing.experts > kRoutedExperts) {
    cuda::route(s, logits, normalise_topk, chosen, weight);
    return launch(s, "group_rows", one, group_rows<0>, routing, grouped);
  }
  const auto kernel = routing.experts <= 8 * kWarp ? group_rows<8> : group_rows<kRoutedExperts / kWarp>;
  launch(s, "route_and_group", one, kernel, routing, grouped);
}

}  // namespace

void mixture_of_experts(Stream& s, const MoeWeights& w, Tensor x, Scratch scratch, const MixtureSum& sum) {
  const std::int64_t rows = x.rows(), k = w.experts_per_token;
  const auto experts = static_cast<std::int64_t>(w.experts.size());
  const std::int64_t size = w.experts[0].gate.shape[0], shared_size = w.shared.gate.shape[0];
  const Tensor logits = scratch.take_f32({rows, experts}), chosen = scratch.take_i32({rows, k});
  const Tensor begin = scratch.take_i32({experts + 1}), gathered = scratch.take_i32({rows * k});
  const Tensor active = scratch.take_i32({experts}), num_active = scratch.take_i32({1});
  // The shared expert's activations lie behind the others', and what multiplies them as far behind: so one step serves
  // both.
  const std::int64_t routed = rows * k * size, acts = routed + rows * shared_size;
  const Tensor gates = scratch.take_f32({1, acts}), ups = scratch.take_f32({1, acts});
  if (s.is_dry() || rows == 0) return;
  const Tensor gate{gates.data, DType::F32, {rows * k, size}}, up{ups.data, DType::F32, {rows * k, size}};
  const Tensor shared_act{gates.f32() + routed, DType::F32, {rows, shared_size}};
  const Tensor shared_up{ups.f32() + routed, DType::F32, {rows, shared_size}};

  const auto part = [&](const Weight& weights, Tensor in, Tensor to) {
    return LinearPart{.weight = weights, .x = in, .out = to, .rows = x.rows()};
  };
  const LinearPart first[] = {part(w.router, x, logits), part(w.shared_gate, x, sum.shared_gate)};
  rondo::linear(s, first);
  route_and_group(s, logits, w.normalise_topk, chosen, sum.weight,
                  {begin.i32(), gathered.i32(), sum.place.i32(), active.i32(), num_active.i32()});

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
  const ExpertLinear down[] = {expert_part(&GatedMlpWeights::down, 2, gate.f32(), nullptr, sum.experts)};
  const LinearPart shared_down[] = {part(w.shared.down, shared_act, sum.shared)};
  expert_linear(s, down, shared_down, most_active, x.rows(),
                {.silu_scale = 1, .times_behind = ups.f32() - gates.f32()});
}

void add_up(Stream& s, const MixtureSum& sum, Tensor out) {
  if (sum.shared.rows() == 0) return;
  const auto hidden = static_cast<int>(out.width());
  const dim3 grid(static_cast<unsigned>((hidden + kThreads - 1) / kThreads), static_cast<unsigned>(sum.shared.rows()));
  launch(s, "add_up", {grid, kThreads}, add_up_rows, sum_args(sum), out.f32(), hidden);
}

void add_up_norm(Stream& s, const MixtureSum& sum, Tensor residual, Tensor gain, NormSpec spec, Tensor out) {
  if (residual.rows() == 0) return;
  launch_norm(s, "add_up_norm", residual.rows(), norm_args(residual, gain, spec, out),
              AddSum{sum_args(sum), residual.f32()});
}

}  // namespace rondo::cuda
