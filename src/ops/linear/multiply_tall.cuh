// The sums of multiply.cuh for a prompt's rows, on the tensor cores as a Hopper drives them best (wgmma): a warpgroup
// has 64 weight rows, in registers as mma() takes them, and multiplies them with 128 inputs that lie in shared memory.
// That gives the bits of mma() (linear_test.cpp compares them). A block does all runs of its weight rows one after the
// other, and adds up their sums in order.
#pragma once

#include "ops/linear/multiply_stream.cuh"
#include "ops/linear/multiply_wide.cuh"

namespace rondo::cuda::product {

constexpr int kTallGroups = 2, kTallWarps = 4 * kTallGroups, kTallThreads = kTallWarps * kWarp;
constexpr int kTallTile = kTallWarps * kGroup;  // weight rows a block
constexpr int kTallInputs = 128;                // inputs a block
constexpr int kTallSums = kTallInputs / 2;      // of a thread

// Fewer rows, and other columns, are multiply_wide's.
constexpr bool goes_tall(int rows, int k) { return rows > 64 && k % (kRound / 2) == 0; }

// Orders what a thread did with registers before what wgmma does with them, and the other way round.
__device__ inline void fence_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// All of them: the sums may be read now, and not before.
__device__ inline void wait_for_sums(float (&sums)[kTallSums]) {
  wait_for_products<0>();
#pragma unroll
  for (float& sum : sums) asm volatile("" : "+f"(sum)::"memory");
}
// Rounded inputs lie in tiles of kTallInputs rows (the last may be short of some), each with all columns: of eight
// columns after the other, in an instruction's order (round_inputs), sixteen bytes of every input. So a stage of a tile
// is contiguous.
__host__ __device__ constexpr std::int64_t tall_at(std::int64_t row, int k, int column) {
  return (row / kTallInputs * (k / 8) + column / 8) * (kTallInputs * 8) + row % kTallInputs * 8 + column % 8;
}

// Sixteen columns of a tile for one instruction: matrices of eight inputs' eight columns, 128 bytes each; those of
// further inputs behind one another, those of the next eight columns kTallInputs * 16 bytes on (PTX ISA, wgmma, matrix
// descriptor without swizzling: addresses in sixteens of bytes).
__device__ inline std::uint64_t sixteen_columns(const std::byte* tile, int which) {
  const std::byte* at = tile + which * 2 * kTallInputs * 16;
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(at)) >> 4;
  constexpr std::uint64_t kColumnsApart = kTallInputs * 16 >> 4, kInputsApart = 128 >> 4;
  return (address & 0x3FFF) | kColumnsApart << 16 | kInputsApart << 32;
}

// sums[64 rows, 128 inputs] += 16 columns of the warpgroup's weight rows times those of the inputs. A warp has sixteen
// of the rows, and of sums[4 j ..] what mma() has of inputs 8 j .. 8 j + 7.
__device__ inline void multiply_16(float (&sums)[kTallSums], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                   std::uint64_t inputs) {
#define RONDO_SUMS4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define RONDO_SUMS16(i) RONDO_SUMS4(i), RONDO_SUMS4(i + 4), RONDO_SUMS4(i + 8), RONDO_SUMS4(i + 12)
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
      : RONDO_SUMS16(0), RONDO_SUMS16(16), RONDO_SUMS16(32), RONDO_SUMS16(48)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(inputs));
#undef RONDO_SUMS16
#undef RONDO_SUMS4
}

// A tile's stages on their way through slots of shared memory, brought by one thread. A slot is refilled when all warps
// have left its stage.
template <int Columns, int Stages>
class InputTiles {
 public:
  static constexpr int kTileBytes = kTallInputs * Columns * 2;
  static constexpr int kBytes = Stages * (kTileBytes + 2 * 8);  // with two barriers each

  __device__ InputTiles(std::byte* room, const std::uint16_t* tile)
      : room_(room), from_(tile), full_(reinterpret_cast<std::uint64_t*>(room + Stages * kTileBytes)) {}
  __device__ void begin() {
    if (threadIdx.x < Stages) begin_barrier(&full_[threadIdx.x], 1), begin_barrier(&left(threadIdx.x), kTallWarps);
    show_barriers();
  }
  __device__ void bring(int stage) {
    const int slot = stage % Stages;
    if (stage >= Stages) wait_at(&left(slot), stage / Stages - 1 & 1);
    copy_in_bulk(room_ + slot * kTileBytes, from_ + static_cast<std::int64_t>(stage) * (kTileBytes / 2), kTileBytes,
                 &full_[slot]);
  }
  __device__ const std::byte* wait_for(int stage) {
    wait_at(&full_[stage % Stages], stage / Stages & 1);
    return room_ + stage % Stages * kTileBytes;
  }
  __device__ void leave(int stage) {  // a warp
    if (threadIdx.x % kWarp == 0) arrive_at(&left(stage % Stages));
  }

 private:
  __device__ std::uint64_t& left(int slot) { return full_[Stages + slot]; }
  std::byte* room_;
  const std::uint16_t* from_;
  std::uint64_t* full_;
};

// Blocks along x: the next tile of inputs; along y: the weights' tiles, as in multiply_wide.cuh.
template <class Reader, bool HasFactor>
__global__ void __launch_bounds__(kTallThreads, 1) multiply_tall(__grid_constant__ const WideArgs args, int splits) {
  let_next_in();
  extern __shared__ __align__(16) unsigned shared[];
  constexpr int kColumns = Reader::kColumns, kStages = Reader::kStages, kSteps = kColumns / kStep;
  static_assert(kSteps >= 2);
  using Inputs = InputTiles<kColumns, kStages>;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int tile = static_cast<int>(blockIdx.y), m0 = static_cast<int>(blockIdx.x) * kTallInputs;
  int p = 0;
  while (p + 1 < args.num_parts && tile >= args.parts[p + 1].first_tile) ++p;
  const WidePart& part = args.parts[p];
  if (m0 >= part.rows) return;  // as high as the highest part
  const int first_row = (tile - part.first_tile) * kTallTile + warp * kGroup, k = part.k, run = run_of(k, splits);

  auto* room = reinterpret_cast<std::byte*>(shared);
  Inputs inputs(room, part.x + tall_at(m0, k, 0));
  inputs.begin();
  Reader reader(room + Inputs::kBytes + warp * Reader::kRingBytes, lane);
  reader.begin_copies(k);
  reader.aim_copies(part.weight, 0, first_row, part.n);
  reader.turn_scales(part.weight, first_row, part.n, true, 0);
#pragma unroll 1
  for (int i = 0; i < kStages - 1; ++i) {
    reader.copy(i * kColumns);
    commit_copies();
  }
  wait_for_before();
  __syncthreads();
  const int stages = (k + kColumns - 1) / kColumns;
  if (threadIdx.x == 0) {
    for (int i = 0; i < min(kStages, stages); ++i) inputs.bring(i);
  }
  float totals[kTallSums];
  int stage = 0;
  for (int run_begin = 0; run_begin < k; run_begin += run) {
    const int run_end = min(run_begin + run, k);
    float sums[kTallSums] = {};
    for (int at = run_begin; at < run_end; at += kColumns, ++stage) {
      wait_for_copies<kStages - 2>();
      __syncwarp();
      reader.copy(at + (kStages - 1) * kColumns);
      commit_copies();
      reader.open(at);
      const std::byte* x_tile = inputs.wait_for(stage);
#pragma unroll
      for (int u = 0; u < kSteps; ++u) {
        // Of the products under way only the last step's are left, whose weights lie in other registers than this
        // one's, as the steps are unrolled. Before this no weight may be read: its register may still be multiplied.
        wait_for_products<1>();
        uint4 w[2];
        reader.take(u, at + u * kStep, w);
        fence_products();
        multiply_16(sums, w[0].x, w[1].x, w[0].y, w[1].y, sixteen_columns(x_tile, 2 * u));
        multiply_16(sums, w[0].z, w[1].z, w[0].w, w[1].w, sixteen_columns(x_tile, 2 * u + 1));
        commit_products();
      }
      // At most the last step's products are under way: none of the stage before.
      if (stage > 0) inputs.leave(stage - 1);
      // One stage later than it could be, as the other warps may be behind.
      if (threadIdx.x == 0 && stage > 1 && stage - 2 + kStages < stages) inputs.bring(stage - 2 + kStages);
      __syncwarp();
    }
    wait_for_sums(sums);
#pragma unroll
    for (int i = 0; i < kTallSums; ++i) totals[i] = run_begin == 0 ? sums[i] : totals[i] + sums[i];
  }
  float factor = 1;
  if constexpr (HasFactor) factor = Reader::kFactor * tensor_scale_of(part.weight, 0);
#pragma unroll
  for (int i = 0; i < kTallSums; ++i) {
    const int m = m0 + i / 4 * 8 + 2 * t + i % 2, n = first_row + g + i % 4 / 2 * kRowsEach;
    if (m < part.rows && n < part.n) part.out[static_cast<std::int64_t>(m) * part.n + n] = totals[i] * factor;
  }
}

template <class Reader, bool HasFactor>
void launch_tall(Stream& s, const WideArgs& args, const Launch& l) {
  constexpr int kBytes = InputTiles<Reader::kColumns, Reader::kStages>::kBytes + kTallWarps * Reader::kRingBytes;
  static_assert(kBytes <= kMostShared);
  allow_shared<multiply_tall<Reader, HasFactor>, kBytes>();
  const auto heights = static_cast<unsigned>((l.rows + kTallInputs - 1) / kTallInputs);
  launch(s, "linear", {dim3(heights, static_cast<unsigned>(l.tiles)), kTallThreads, kBytes},
         multiply_tall<Reader, HasFactor>, args, l.splits);
}

}  // namespace rondo::cuda::product
