// What the kernels of multiply_wide.cuh and multiply_few.cuh share: tiles of bf16 rows in shared memory, and the sum
// over the blocks of a cluster.
#pragma once

#include <cooperative_groups.h>

#include <cstddef>

#include "ops/common/copies.cuh"
#include "ops/common/mma.cuh"
#include "ops/linear/multiply.cuh"

namespace rondo::cuda::product {

__device__ inline const std::uint16_t* plain_weights(const PartWeight& weight) {
  return reinterpret_cast<const std::uint16_t*>(weight.view.codes);
}

// Sixteen bytes, or zeros.
__device__ inline void copy_16(void* to, const void* from, bool live) {
  const auto shared_at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_at), "l"(from), "r"(live ? 16 : 0)
               : "memory");
}

// Where in its row a tile has a piece of eight columns. A quarter of a warp reads four pieces of an even row and the
// same of an odd one: so these lie in different banks.
__device__ constexpr int place_of(int row, int piece) { return piece ^ (row & 1) << 2; }

// A matrix's rows first .. first + Rows, brought to shared memory tile by tile, Columns of columns k_begin .. k_end in
// each, by all threads of a block. Past the columns there are stand zeros, past the rows what stood there.
template <int Rows, int Columns>
class TileCopies {
  static constexpr int kPieces = Columns / 8, kApart = kThreads / kPieces;  // rows from one of a thread's to the next
  static_assert(Rows % kApart == 0 && kApart % 2 == 0, "all rows of a thread are even, or all odd");

 public:
  static constexpr int kBytes = Rows * Columns * 2;

  __device__ TileCopies(const std::uint16_t* matrix, int first, int rows, int k, int k_begin, int k_end) {
    const int row = static_cast<int>(threadIdx.x) / kPieces, piece = static_cast<int>(threadIdx.x) % kPieces;
    to_ = row * Columns * 2 + place_of(row, piece) * 16;
    from_ = matrix + static_cast<std::int64_t>(first + row) * k + k_begin + piece * 8;
    apart_ = static_cast<std::int64_t>(kApart) * k;
    rows_ = rows - first - row;
    columns_ = k_end - k_begin - piece * 8;
  }
  // The next columns.
  __device__ void copy(std::byte* tile) {
#pragma unroll
    for (int i = 0; i < Rows / kApart; ++i) {
      if (i * kApart < rows_) copy_16(tile + to_ + i * kApart * Columns * 2, from_ + i * apart_, columns_ > 0);
    }
    from_ += Columns;
    columns_ -= Columns;
  }

 private:
  const std::uint16_t* from_;  // the thread's piece of its first row
  std::int64_t apart_;
  int to_, rows_, columns_;  // the rows and columns that are left from there on
};

// Columns 8 t .. 8 t + 7 of step u of a tile's row, whose parity is that of g.
template <int Columns>
__device__ uint4 from_tile(const std::byte* tile, int row, int u, int g, int t) {
  return *reinterpret_cast<const uint4*>(tile + row * Columns * 2 + place_of(g, u * 4 + t) * 16);
}

// What two instructions take of 16 weight rows' 32 columns: those of rows g (low) and g + 8 (high), in turn. An
// instruction wants them in registers side by side. `zero` is that, but the assembler must not know: it would otherwise
// see copies, and make them again before every instruction.
struct Fragment {
  unsigned first[4], second[4];
  __device__ void set(const uint4& low, const uint4& high, unsigned zero) {
    first[0] = low.x ^ zero, first[1] = high.x ^ zero, first[2] = low.y ^ zero, first[3] = high.y ^ zero;
    second[0] = low.z ^ zero, second[1] = high.z ^ zero, second[2] = low.w ^ zero, second[3] = high.w ^ zero;
  }
  // Their products with eight inputs.
  __device__ void multiply(const uint4& x, float (&sum)[4]) const {
    mma(sum, first[0], first[1], first[2], first[3], x.x, x.y);
    mma(sum, second[0], second[1], second[2], second[3], x.z, x.w);
  }
};

// Its sums, to row m0 (an input) and column n0 (a weight row) of a block's.
template <int Width>
__device__ void put_sums(const float (&sum)[4], float* partial, int m0, int n0, int g, int t) {
#pragma unroll
  for (int c = 0; c < 4; ++c) partial[(m0 + 2 * t + c % 2) * (Width + kOutPad) + n0 + g + c / 2 * 8] = sum[c];
}

struct SumsOut {
  float* at;  // of the block's first input and weight row
  int apart;  // floats from an input's outputs to the next one's
  int rows, columns;
};

// Each of a cluster's blocks has sums in `partial`, [rows, Width + kOutPad]: its share of the outputs, over all of them
// in order. What is read of the others is under way at once.
template <int Width, int Splits>
__device__ void add_up_share(float* partial, const SumsOut& out, float factor) {
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = Splits > 1 ? static_cast<int>(cluster.block_rank()) : 0;
  const bool vectors = out.apart % 4 == 0 && reinterpret_cast<std::uintptr_t>(out.at) % 16 == 0;
  for (int i = rank * kThreads + static_cast<int>(threadIdx.x); i < out.rows * (Width / 4); i += Splits * kThreads) {
    const int m = i / (Width / 4), n = i % (Width / 4) * 4;
    if (n >= out.columns) continue;
    float4 each[Splits];
#pragma unroll
    for (int r = 0; r < Splits; ++r) {
      const float* from = Splits > 1 ? cluster.map_shared_rank(partial, r) : partial;
      each[r] = *reinterpret_cast<const float4*>(from + m * (Width + kOutPad) + n);
    }
    float total[4] = {each[0].x, each[0].y, each[0].z, each[0].w};
#pragma unroll
    for (int r = 1; r < Splits; ++r) {
      total[0] += each[r].x, total[1] += each[r].y, total[2] += each[r].z, total[3] += each[r].w;
    }
#pragma unroll
    for (float& of : total) of *= factor;
    float* to = out.at + static_cast<std::int64_t>(m) * out.apart + n;
    if (vectors) {
      *reinterpret_cast<float4*>(to) = make_float4(total[0], total[1], total[2], total[3]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (n + j < out.columns) to[j] = total[j];
      }
    }
  }
}

// The same for every size of a cluster, with the barriers it takes.
template <int Width>
__device__ void add_up(float* partial, int splits, const SumsOut& out, float factor) {
  const auto cluster = cooperative_groups::this_cluster();
  if (splits == 1) {
    __syncthreads();
    return add_up_share<Width, 1>(partial, out, factor);
  }
  cluster.sync();
  switch (splits) {
    case 2: add_up_share<Width, 2>(partial, out, factor); break;
    case 4: add_up_share<Width, 4>(partial, out, factor); break;
    default: add_up_share<Width, 8>(partial, out, factor); break;
  }
  cluster.sync();  // nobody leaves while others read
}

}  // namespace rondo::cuda::product
