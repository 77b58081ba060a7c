// The sums of multiply.cuh for more than eight rows: a warp has 32 weight rows, so that inputs read from shared
// memory serve several instructions, and the inputs come as bf16 already. Both come in stages, some ahead, by
// asynchronous copies.
#pragma once

#include "ops/linear/tiles.cuh"

namespace rondo::cuda::product {

struct WidePart {
  PartWeight weight;
  const std::uint16_t* x;  // [rows, k]
  float* out;
  int n, k, rows, first_tile;
};
struct WideArgs {
  WidePart parts[kMaxParts];
  int num_parts;
};

constexpr int kWideRows = 4;                               // groups of eight weight rows a warp has
constexpr int kWideTile = kWideRows * kRowsEach * kWarps;  // weight rows a block
constexpr int kWideStages = 3;

// Plain weights through shared memory, as a CodedReader's codes come, but for a whole block: all its threads copy, and
// a warp takes its share of the rows. Stages are short, so that three blocks fit on a multiprocessor: what they have
// under way hides the memory's latency also where few blocks are left.
template <int Stages>
class PlainTiles {
 public:
  static constexpr bool kIsCoded = false;
  static constexpr int kStages = Stages, kColumns = kRound / 2;

 private:
  using Copies = TileCopies<kWideTile, kColumns>;

 public:
  static constexpr int kRingBytes = Stages * Copies::kBytes / kWarps;

  // first_row: of the warp's, in the block's tile.
  __device__ PlainTiles(std::byte* ring, const WidePart& part, int n0, int k_begin, int k_end, int first_row, int lane)
      : copies_(plain_weights(part.weight), n0, part.n, part.k, k_begin, k_end),
        ring_(ring),
        g_(lane / 4),
        t_(lane % 4),
        row_(first_row + g_) {}
  __device__ void copy(int /*k*/) {
    copies_.copy(ring_ + written_ * Copies::kBytes);
    written_ = written_ + 1 == Stages ? 0 : written_ + 1;
  }
  __device__ void open(int /*k*/) {
    at_ = ring_ + read_ * Copies::kBytes;
    read_ = read_ + 1 == Stages ? 0 : read_ + 1;
  }
  __device__ void take(int u, int /*k*/, uint4 (&to)[kWideRows]) const {
#pragma unroll
    for (int i = 0; i < kWideRows; ++i) to[i] = from_tile<kColumns>(at_, row_ + i * kRowsEach, u, g_, t_);
  }

 private:
  Copies copies_;
  std::byte* ring_;
  const std::byte* at_ = nullptr;
  int g_, t_, row_, written_ = 0, read_ = 0;
};

template <class Reader, int Tiles>
constexpr int kWideInputBytes = Reader::kStages * 8 * Tiles* Reader::kColumns * 2;
template <class Reader, int Tiles>
constexpr int kWideBytes = std::max(kWideInputBytes<Reader, Tiles> + kWarps * Reader::kRingBytes,
                                    8 * Tiles * (kWideTile + kOutPad) * 4);  // and, behind them, the sums
// Blocks a multiprocessor: as its shared memory has room for, and its registers for their sums.
template <class Reader, int Tiles>
constexpr int kWideBlocks = std::min(233472 / (kWideBytes<Reader, Tiles> + 1024), Tiles == 8 ? 3 : 4);

template <class Reader>
__device__ Reader wide_reader(std::byte* ring, const WidePart& part, int n0, int k_begin, int k_end, int first_row,
                              int warp, int lane) {
  if constexpr (Reader::kIsCoded) {
    Reader reader(ring + warp * Reader::kRingBytes, lane);
    reader.aim(part.weight, 0, n0 + first_row, part.n);
    reader.begin(k_begin, k_end);
    return reader;
  } else {
    return Reader(ring, part, n0, k_begin, k_end, first_row, lane);
  }
}

// Blocks along x: a cluster's, then the next 8 Tiles rows'; along y: the weights' tiles. Blocks that read the same
// weights so run side by side, and all but the first find them in the second cache.
template <class Reader, int Tiles, bool HasFactor>
__global__ void __launch_bounds__(kThreads, kWideBlocks<Reader, Tiles>)
    multiply_wide(__grid_constant__ const WideArgs args) {
  let_next_in();
  extern __shared__ __align__(16) unsigned shared[];
  auto* memory = reinterpret_cast<std::byte*>(shared);
  const auto cluster = cooperative_groups::this_cluster();
  const int splits = static_cast<int>(cluster.num_blocks()), rank = static_cast<int>(cluster.block_rank());
  const int tile = static_cast<int>(blockIdx.y);
  int p = 0;
  while (p + 1 < args.num_parts && tile >= args.parts[p + 1].first_tile) ++p;
  const WidePart& part = args.parts[p];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int n0 = (tile - part.first_tile) * kWideTile, m0 = static_cast<int>(blockIdx.x) / splits * 8 * Tiles;
  if (m0 >= part.rows) return;  // as high as the highest part; a cluster's blocks leave together
  const int run = run_of(part.k, splits);
  const int k_begin = min(rank * run, part.k), k_end = min(k_begin + run, part.k);
  constexpr int kColumns = Reader::kColumns, kStages = Reader::kStages;
  const int stages = (k_end - k_begin + kColumns - 1) / kColumns;
  const int first_row = warp * kWideRows * kRowsEach;  // and all inputs

  using Inputs = TileCopies<8 * Tiles, kColumns>;
  Inputs inputs(part.x, m0, part.rows, part.k, k_begin, k_end);
  // Weights depend on nothing. They come in the groups of the inputs' stages, the first ones all in the first.
  Reader reader =
      wide_reader<Reader>(memory + kWideInputBytes<Reader, Tiles>, part, n0, k_begin, k_end, first_row, warp, lane);
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) reader.copy(k_begin + i * kColumns);
  wait_for_before();
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    inputs.copy(memory + i * Inputs::kBytes);
    commit_copies();
  }
  float sums[kWideRows / 2][Tiles][4] = {};
  int slot = 0, next_slot = kStages - 1;
  for (int stage = 0; stage < stages; ++stage) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // this stage has arrived for all, and all have read the one before it
    const int k0 = k_begin + stage * kColumns;
    inputs.copy(memory + next_slot * Inputs::kBytes);
    reader.copy(k0 + (kStages - 1) * kColumns);
    commit_copies();
    reader.open(k0);
    const std::byte* x_tile = memory + slot * Inputs::kBytes;
    slot = slot + 1 == kStages ? 0 : slot + 1;
    next_slot = next_slot + 1 == kStages ? 0 : next_slot + 1;
#pragma unroll
    for (int u = 0; u < kColumns / kStep; ++u) {
      uint4 w[kWideRows];
      reader.take(u, k0 + u * kStep, w);
      Fragment fragments[kWideRows / 2];
#pragma unroll
      for (int r = 0; r < kWideRows / 2; ++r)
        fragments[r].set(w[2 * r], w[2 * r + 1], Reader::kIsCoded ? 0 : threadIdx.y);
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
        const uint4 x = from_tile<kColumns>(x_tile, i * 8 + g, u, g, t);
#pragma unroll
        for (int r = 0; r < kWideRows / 2; ++r) fragments[r].multiply(x, sums[r][i]);
      }
    }
  }
  wait_for_copies<0>();
  __syncthreads();
  float factor = 1;
  if constexpr (HasFactor) factor = Reader::kFactor * tensor_scale_of(part.weight, 0);
  auto* partial = reinterpret_cast<float*>(shared);  // [8 Tiles, kWideTile + pad]
#pragma unroll
  for (int r = 0; r < kWideRows / 2; ++r) {
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      put_sums<kWideTile>(sums[r][i], partial, i * 8, first_row + r * 16, g, t);
    }
  }
  add_up<kWideTile>(partial, splits,
                    {.at = part.out + static_cast<std::int64_t>(m0) * part.n + n0,
                     .apart = part.n,
                     .rows = min(8 * Tiles, part.rows - m0),
                     .columns = min(kWideTile, part.n - n0)},
                    factor);
}

template <class Reader, int Tiles, bool HasFactor>
void launch_wide_tiles(Stream& s, const WideArgs& args, const Launch& l) {
  const int heights = (l.rows + 8 * Tiles - 1) / (8 * Tiles);
  launch_clusters<multiply_wide<Reader, Tiles, HasFactor>, kWideBytes<Reader, Tiles>>(s, args, heights, l.splits,
                                                                                      l.tiles);
}

}  // namespace rondo::cuda::product
