// out[m, n] = sum_k weight[n, k] x[m, k] on the tensor cores: the weight's rows are the rows of mma.m16n8k16, eight
// inputs its columns. A lane has columns k = 8 t .. 8 t + 7 of a weight row (weight_readers.cuh) and hands them to two
// mma as if they were the columns those ask of it; the inputs are handed over the same way, so the sum is the same. A
// launch of any number of rows runs the same instructions for a row, eight columns or sixty-four beside it.
//
// The kernels, over a reader of the weights; instantiated by linear_cuda.cu and, for the quantised formats, by
// linear_fp8_cuda.cu, linear_nvfp4_cuda.cu and linear_affine_cuda.cu.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>

#include "ops/common/launch.cuh"
#include "ops/common/mma.cuh"
#include "ops/linear/inputs.cuh"
#include "ops/linear/weight_readers.cuh"

namespace rondo::cuda::product {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kTile = 16 * kWarps;  // weight rows a block
constexpr int kMaxParts = 8;
constexpr int kOutPad = 4;

// Columns of a weight's runs, but for the last ones.
__host__ __device__ constexpr int run_of(int k, int splits) {
  return ((k + splits - 1) / splits + kRound - 1) / kRound * kRound;
}

struct Part {
  PartWeight weight;
  const float* x;
  const std::int32_t* in_rows;
  float* out;
  const std::int32_t* begin;  // experts; else null
  int n, k, rows, first_tile;
};

struct Args {
  Part parts[kMaxParts];
  int num_parts;
  InputStep step;
  const std::int32_t* active;  // experts; else null
  const std::int32_t* num_active;
};

// Columns of x that a block keeps at hand, as bf16, of 8 Tiles rows; of fewer rows more of them (stage_for). Rows lie
// 64 bytes off a multiple of 128, so that a quarter warp's reads fall into different banks.
template <int Tiles>
constexpr int kStage = Tiles == 1 ? 1024 : 512;
template <int Tiles>
constexpr int kRowWords = (kStage<Tiles> * 2 + 64) / 4;
template <int Tiles>
constexpr int kInputBytes = std::max(8 * Tiles * kRowWords<Tiles> * 4, 8 * Tiles * (kTile + kOutPad) * 4);
template <class Reader, int Tiles>
constexpr int kSharedBytes = kInputBytes<Tiles> + kWarps* Reader::kRingBytes;

struct Stage {
  int columns, row_words;
};
// Each stage begins with a wait for inputs, while hardly any weights are under way: as few of them as the room allows.
template <int Tiles>
__device__ Stage stage_for(int rows, int run) {
  int columns = kStage<Tiles>;
  for (int room = 8 * Tiles; room / 2 >= rows && columns < run; room /= 2) columns *= 2;
  return {columns, (columns * 2 + 64) / 4};
}

// x[m0 .. m0 + rows, k0 .. k0 + stage.columns) to shared memory; zeros past the columns there are. A thread's reads are
// under way some at once, whichever rows they are of. A kCrossed reader has them in its weights' order.
template <class Reader, int Tiles, bool Vectors, bool IsStepped>
__device__ void stage_inputs(const float* x, int columns, const std::int32_t* in_rows, int m0, int rows, int k0,
                             int k_end, InputStep step, Stage stage, unsigned* to) {
  // As far as weights under way leave registers.
  constexpr int kAtOnce = Reader::kIsCoded ? 4 : IsStepped ? 1 : 4 / Tiles;
  constexpr int kSecond = Reader::kCrossed ? 2 : 1, kThird = 3 - kSecond;
  const int width = min(stage.columns, (k_end - k0 + kRound - 1) / kRound * kRound);
  struct {
    int m, at;
  } read = {0, static_cast<int>(threadIdx.x) * 4}, written = read;
  const auto advance = [rows](auto& place) {
    if (++place.m == rows) place.m = 0, place.at += 4 * kThreads;
  };
  while (read.at < width) {
    float v[kAtOnce][4], times[IsStepped ? kAtOnce : 1][4];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, advance(read)) {
      if (read.at >= width) continue;
      const std::int64_t row = in_rows != nullptr ? in_rows[m0 + read.m] : m0 + read.m;
      const float* from = x + row * columns + k0 + read.at;
      read_four<Vectors>(from, k_end - k0 - read.at, v[i]);
      if constexpr (IsStepped) read_times<Vectors>(from, k_end - k0 - read.at, step, times[i]);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, advance(written)) {
      if (written.at >= width) continue;
      if constexpr (IsStepped) take_step(times[i], step, v[i]);
      *reinterpret_cast<uint2*>(to + written.m * stage.row_words + written.at / 2) =
          make_uint2(to_bf16_pair(v[i][0], v[i][kSecond]), to_bf16_pair(v[i][kThird], v[i][3]));
    }
  }
}

// The reader has the weights from k0 on; afterwards those behind `stop`. The stage has inputs of so many rows from k0
// on: what stands in a column of an instruction past them reaches no other column's sum, so it may be the last again.
template <int Tiles, class Reader>
__device__ void stream_weights(Reader& reader, int k0, int stop, int lane, const unsigned* inputs, int rows,
                               int row_words, float (*sums)[4]) {
  const int g = lane / 4, t = lane % 4;
  // More than eight rows lie kRowWords apart (stage_for), and there is room for all of them.
  const unsigned* row = inputs + 4 * t + (Tiles == 1 ? min(g, rows - 1) * row_words : g * kRowWords<Tiles>);
  for (int k = k0; k < stop; k += kRound) {
    if constexpr (Reader::kIsCoded) reader.arrive(k);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      uint4 w[2];
      reader.take(u, k + u * kStep, w);
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        const uint4 x = *reinterpret_cast<const uint4*>(row + tile * 8 * kRowWords<Tiles> + u * kStep / 2);
        mma(sums[tile], w[0].x, w[1].x, w[0].y, w[1].y, x.x, x.y);
        mma(sums[tile], w[0].z, w[1].z, w[0].w, w[1].w, x.z, x.w);
      }
      reader.next(u, k + u * kStep);
    }
    row += kRound / 2;
  }
}

// A cluster's blocks have a run of columns each; then each adds up its share of the outputs over all of them, in order.
// Vectors: rows of x are 16-byte aligned. HasFactor: sums are multiplied by the weight's tensor scale.
template <class Reader, int Tiles, bool Vectors, bool HasFactor>
__global__ void __launch_bounds__(kThreads, Reader::kBlocks) multiply(__grid_constant__ const Args args) {
  let_next_in();
  namespace cg = cooperative_groups;
  extern __shared__ __align__(16) unsigned shared[];
  const cg::cluster_group cluster = cg::this_cluster();
  const int splits = static_cast<int>(cluster.num_blocks()), rank = static_cast<int>(cluster.block_rank());
  const int tile = static_cast<int>(blockIdx.x) / splits;
  int p = 0;
  while (p + 1 < args.num_parts && tile >= args.parts[p + 1].first_tile) ++p;
  const Part& part = args.parts[p];
  const std::int32_t* in_rows = part.in_rows;
  const float* x = part.x;
  float* out = part.out;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int n0 = (tile - part.first_tile) * kTile;
  const int run = run_of(part.k, splits);
  const int k_begin = min(rank * run, part.k), k_end = min(k_begin + run, part.k);
  int rows = part.rows, m_begin = static_cast<int>(blockIdx.y) * 8 * Tiles, m_end = min(rows, m_begin + 8 * Tiles);
  int expert = 0;
  Reader reader(reinterpret_cast<std::byte*>(shared) + kInputBytes<Tiles> + warp * Reader::kRingBytes, lane);
  // Weights depend on nothing: an ordinary part's are under way before what it multiplies them with is there.
  if (part.begin == nullptr) {
    reader.aim(part.weight, 0, n0 + warp * 16, part.n);
    // A launch is as high as its experts need; a block past this part's rows has nothing to read.
    if (!Reader::kIsCoded || m_begin < m_end) reader.start(k_begin, k_end);
  }
  wait_for_before();
  if (part.begin != nullptr) {
    if (static_cast<int>(blockIdx.y) >= *args.num_active) return;
    expert = args.active[blockIdx.y];
    // Before where its rows are is known: the weights take longest.
    reader.aim(part.weight, expert, n0 + warp * 16, part.n);
    reader.start(k_begin, k_end);
    const std::int32_t first = part.begin[expert];
    rows = part.begin[expert + 1] - first;
    m_begin = 0, m_end = rows;
    out += static_cast<std::int64_t>(first) * part.n;
    if (in_rows != nullptr) {
      in_rows += first;
    } else {
      x += static_cast<std::int64_t>(first) * part.k;
    }
  }
  float factor = 1;
  if constexpr (HasFactor) factor = Reader::kFactor * tensor_scale_of(part.weight, expert);

  for (int m0 = m_begin; m0 < m_end; m0 += 8 * Tiles) {
    float sums[Tiles][4] = {};
    if (m0 != m_begin) reader.start(k_begin, k_end);  // an expert's: the same weights for its next rows
    const int staged_rows = min(8 * Tiles, m_end - m0);
    const Stage stage = stage_for<Tiles>(staged_rows, k_end - k_begin);
    for (int k0 = k_begin; k0 < k_end; k0 += stage.columns) {
      __syncthreads();  // the last stage's inputs are read
      if (args.step.silu_scale == 0) {
        stage_inputs<Reader, Tiles, Vectors, false>(x, part.k, in_rows, m0, staged_rows, k0, k_end, {}, stage, shared);
      } else {
        stage_inputs<Reader, Tiles, Vectors, true>(x, part.k, in_rows, m0, staged_rows, k0, k_end, args.step, stage,
                                                   shared);
      }
      __syncthreads();
      const int stop = min(k0 + stage.columns, k_end);
      if (Tiles == 1 || staged_rows <= 8) {
        stream_weights<1>(reader, k0, stop, lane, shared, staged_rows, stage.row_words, sums);
      } else {
        stream_weights<Tiles>(reader, k0, stop, lane, shared, staged_rows, stage.row_words, sums);
      }
    }
    __syncthreads();
    auto* partial = reinterpret_cast<float*>(shared);  // [8 Tiles, kTile + pad]
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int m = i * 8 + 2 * t + c % 2, n = warp * 16 + g + c / 2 * 8;
        partial[m * (kTile + kOutPad) + n] = sums[i][c];
      }
    }
    if (splits > 1) {
      cluster.sync();
    } else {
      __syncthreads();
    }
    const int columns = min(kTile, part.n - n0), live = min(8 * Tiles, m_end - m0) * kTile;
    for (int i = rank * kThreads + threadIdx.x; i < live; i += splits * kThreads) {
      const int m = i / kTile, n = i % kTile;
      if (n >= columns) continue;
      float total = 0;
      for (int r = 0; r < splits; ++r) {
        const float* from = splits > 1 ? cluster.map_shared_rank(partial, r) : partial;
        const float each = from[m * (kTile + kOutPad) + n];
        total = r == 0 ? each : total + each;
      }
      if constexpr (HasFactor) total *= factor;
      out[static_cast<std::int64_t>(m0 + m) * part.n + n0 + n] = total;
    }
    if (splits > 1) cluster.sync();  // nobody leaves, or stages anew, while others read
  }
}

// Lets a kernel have so much shared memory.
template <auto Kernel, int SharedBytes>
void allow_shared() {
  static const bool allowed = [] {
    RONDO_CUDA_CALL(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SharedBytes));
    return true;
  }();
  static_cast<void>(allowed);
}

// A launch in clusters of `splits` blocks along x.
template <auto Kernel, int SharedBytes, class Arguments>
void launch_clusters(Stream& s, const Arguments& args, int clusters, int splits, int height) {
  allow_shared<Kernel, SharedBytes>();
  launch(s, "linear",
         {dim3(static_cast<unsigned>(clusters * splits), static_cast<unsigned>(height)), kThreads, SharedBytes, splits},
         Kernel, args);
}

struct Launch {
  int tiles, splits;
  int rows;     // of the widest part (or expert), which says how many columns an instruction's block needs
  int experts;  // blocks along y, where there are experts; else 0
};

template <class Reader, int Tiles, bool Vectors, bool HasFactor>
void launch_narrow(Stream& s, const Args& args, const Launch& l) {
  constexpr int kColumns = 8 * Tiles;
  launch_clusters<multiply<Reader, Tiles, Vectors, HasFactor>, kSharedBytes<Reader, Tiles>>(
      s, args, l.tiles, l.splits, l.experts > 0 ? l.experts : (l.rows + kColumns - 1) / kColumns);
}
template <class Reader, bool HasFactor>
void launch_by_rows(Stream& s, const Args& args, const Launch& l) {
  if (l.rows <= 8) return launch_narrow<Reader, 1, true, HasFactor>(s, args, l);
  launch_narrow<Reader, 2, true, HasFactor>(s, args, l);
}

}  // namespace rondo::cuda::product
