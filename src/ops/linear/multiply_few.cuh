// The sums of multiply.cuh for small weights, which are a matter of latency: a block has 32 weight rows, and all
// columns of its run are under way at once, or nearly. Its warps share the rows and the inputs; a sum is still made by
// one warp, in the order of the other kernels, so which of them computes a row is of no consequence to it.
#pragma once

#include <type_traits>

#include "ops/linear/multiply_wide.cuh"

namespace rondo::cuda::product {

constexpr int kFewTile = 32;     // weight rows a block
constexpr int kFewDepth = 8;     // stages of kRound columns under way
constexpr int kMostStages = 16;  // of a run

// Up to eight inputs are rounded here, all of the run at once; more are rounded already.
template <int Tiles>
using FewArgs = std::conditional_t<Tiles == 1, Args, WideArgs>;

__host__ __device__ constexpr int stages_of(int run) { return (run + kRound - 1) / kRound; }

// A run's bytes in shared memory: the weights' slots, then the inputs'.
template <int Tiles>
constexpr int few_bytes(int stages) {
  const int slots = std::min(stages, kFewDepth), input_slots = Tiles == 1 ? stages : slots;
  return std::max(slots * kFewTile * kRound * 2 + input_slots * 8 * Tiles * kRound * 2,
                  8 * Tiles * (kFewTile + kOutPad) * 4);
}

// Rows of x, columns k_begin .. of so many stages, as one tile a stage; zeros past k_end. A thread has eight reads
// under way, of one row or of several.
template <bool IsStepped>
__device__ void round_into_tiles(const Part& part, InputStep step, int k_begin, int k_end, int stages,
                                 std::byte* tiles) {
  constexpr int kAtOnce = 8;
  const int fours = stages * (kRound / 4), all = part.rows * fours;
  // Which row has four i: a division of small numbers, by a product whose rounding cannot matter.
  const float rows_each = 1.0F / static_cast<float>(stages);
  const auto row_of = [&](int i) {
    return static_cast<int>((static_cast<float>(i / (kRound / 4)) + 0.5F) * rows_each);
  };
  for (int first = static_cast<int>(threadIdx.x); first < all; first += kAtOnce * kThreads) {
    float v[kAtOnce][4], times[IsStepped ? kAtOnce : 1][4];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads, m = row_of(i), k = k_begin + (i - m * fours) * 4;
      if (i >= all) continue;
      const std::int64_t row = part.in_rows != nullptr ? part.in_rows[m] : m;
      const float* from = part.x + row * part.k + k;
      read_four<true>(from, k_end - k, v[j]);
      if (IsStepped && step.times_behind != 0) read_four<true>(from + step.times_behind, k_end - k, times[j]);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int i = first + j * kThreads, m = row_of(i), at = (i - m * fours) * 4;
      if (i >= all) continue;
      if constexpr (IsStepped) {  // as read_stepped does, but when all reads are under way
#pragma unroll
        for (int c = 0; c < 4; ++c)
          v[j][c] = silu(step.silu_scale * v[j][c]) * (step.times_behind != 0 ? times[j][c] : 1);
      }
      std::byte* row = tiles + (at / kRound * 8 + m) * kRound * 2;
      *reinterpret_cast<uint2*>(row + place_of(m, at % kRound / 8) * 16 + at % 8 * 2) =
          make_uint2(to_bf16_pair(v[j][0], v[j][1]), to_bf16_pair(v[j][2], v[j][3]));
    }
  }
}

template <int Tiles>
__global__ void __launch_bounds__(kThreads) multiply_few(__grid_constant__ const FewArgs<Tiles> args) {
  let_next_in();
  extern __shared__ __align__(16) unsigned shared[];
  auto* memory = reinterpret_cast<std::byte*>(shared);
  const auto cluster = cooperative_groups::this_cluster();
  const int splits = static_cast<int>(cluster.num_blocks()), rank = static_cast<int>(cluster.block_rank());
  const int tile = static_cast<int>(blockIdx.x) / splits;
  int p = 0;
  while (p + 1 < args.num_parts && tile >= args.parts[p + 1].first_tile) ++p;
  const auto& part = args.parts[p];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int n0 = (tile - part.first_tile) * kFewTile, run = run_of(part.k, splits);
  const int k_begin = min(rank * run, part.k), k_end = min(k_begin + run, part.k), stages = stages_of(k_end - k_begin);
  // Two warps a half of the rows; each has half of the inputs, if there are any.
  constexpr int kEach = Tiles == 1 ? 1 : Tiles / 2;
  const int half = warp % 2, first_input = warp / 2 * 8 * kEach;
  const bool has_inputs = first_input < 8 * Tiles;

  using Weights = TileCopies<kFewTile, kRound>;
  using Inputs = TileCopies<8 * Tiles, kRound>;
  std::byte* x_memory = memory + min(stages_of(run), kFewDepth) * Weights::kBytes;
  Weights weights(plain_weights(part.weight), n0, part.n, part.k, k_begin, k_end);
  // A group a stage. Weights depend on nothing: those of the first ones are under way before their inputs are there.
  for (int i = 0; i < kFewDepth; ++i) {
    if (i < stages) weights.copy(memory + i * Weights::kBytes);
    if constexpr (Tiles == 1) commit_copies();
  }
  wait_for_before();
  const std::uint16_t* rounded = nullptr;
  if constexpr (Tiles > 1) rounded = part.x;
  Inputs inputs(rounded, 0, part.rows, part.k, k_begin, k_end);
  if constexpr (Tiles == 1) {
    if (args.step.silu_scale == 0) {
      round_into_tiles<false>(part, {}, k_begin, k_end, stages, x_memory);
    } else {
      round_into_tiles<true>(part, args.step, k_begin, k_end, stages, x_memory);
    }
  } else {
    for (int i = 0; i < kFewDepth; ++i) {
      if (i < stages) inputs.copy(x_memory + i * Inputs::kBytes);
      commit_copies();
    }
  }
  float sums[kEach][4] = {};
  for (int stage = 0; stage < stages; ++stage) {
    wait_for_copies<kFewDepth - 1>();
    __syncthreads();  // this stage has arrived for all
    const int slot = stage % kFewDepth;
    const std::byte* w_tile = memory + slot * Weights::kBytes;
    const std::byte* x_tile = x_memory + (Tiles == 1 ? stage : slot) * Inputs::kBytes;
    if (has_inputs) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const uint4 low = from_tile<kRound>(w_tile, half * 16 + g, u, g, t);
        const uint4 high = from_tile<kRound>(w_tile, half * 16 + kRowsEach + g, u, g, t);
        Fragment fragment;
        fragment.set(low, high, threadIdx.y);
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          fragment.multiply(from_tile<kRound>(x_tile, first_input + i * 8 + g, u, g, t), sums[i]);
        }
      }
    }
    if (stage + kFewDepth < stages) {
      __syncthreads();  // all have read the slot
      weights.copy(memory + slot * Weights::kBytes);
      if constexpr (Tiles > 1) inputs.copy(x_memory + slot * Inputs::kBytes);
    }
    commit_copies();
  }
  wait_for_copies<0>();
  __syncthreads();
  auto* partial = reinterpret_cast<float*>(shared);  // [8 Tiles, kFewTile + pad]
  if (has_inputs) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) put_sums<kFewTile>(sums[i], partial, first_input + i * 8, half * 16, g, t);
  }
  add_up<kFewTile>(partial, splits,
                   {.at = part.out + n0, .apart = part.n, .rows = part.rows, .columns = min(kFewTile, part.n - n0)}, 1);
}

// Parts of one split, of at most 8 Tiles rows.
template <int Tiles>
void launch_few(Stream& s, FewArgs<Tiles> args, int splits) {
  int tiles = 0, stages = 0;
  for (int i = 0; i < args.num_parts; ++i) {
    args.parts[i].first_tile = tiles;
    tiles += (args.parts[i].n + kFewTile - 1) / kFewTile;
    stages = std::max(stages, stages_of(run_of(args.parts[i].k, splits)));
  }
  CHECK(stages <= kMostStages);
  allow_shared<multiply_few<Tiles>, few_bytes<Tiles>(kMostStages)>();
  launch(s, "linear", {dim3(static_cast<unsigned>(tiles * splits)), kThreads, few_bytes<Tiles>(stages), splits},
         multiply_few<Tiles>, args);
}

}  // namespace rondo::cuda::product
