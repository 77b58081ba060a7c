// out[m, n] = sum_k weight[n, k] x[m, k] on the tensor cores: the weight's rows are the rows of mma.m16n8k16, eight
// inputs its columns. A lane reads 16 bytes of a weight row, k = 8 t .. 8 t + 7, and hands them to two mma as if they
// were the columns those ask of it; the inputs are handed over the same way, so the sum is the same. A launch of any
// number of rows runs the same instructions for a row, eight columns or sixty-four beside it.
#include <cooperative_groups.h>

#include <algorithm>

#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/linear/linear_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kTile = 16 * kWarps;  // weight rows a block
constexpr int kStep = 32;           // columns a lane quad reads at a time
constexpr int kUnroll = 4;          // steps whose loads are under way
constexpr int kMaxParts = 8;
constexpr int kOutPad = 4;

struct Part {
  const std::uint16_t* weight;
  const float* x;
  const std::int32_t* in_rows;
  float* out;
  const std::int32_t* begin;  // experts; else null
  std::int64_t stride;        // elements between experts' weights
  int n, k, rows, first_tile;
};

struct Args {
  Part parts[kMaxParts];
  int num_parts;
  const std::int32_t* active;  // experts; else null
  const std::int32_t* num_active;
};

__device__ uint4 read_weight(const std::uint16_t* at) {
  uint4 w;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(at));
  return w;
}

__device__ void mma(float* sum, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Eight weights from column k on, zeros past the end. Vectors: rows are 16-byte aligned.
template <bool Vectors>
__device__ uint4 weights_at(const std::uint16_t* row, int k, int k_end) {
  if (k >= k_end) return make_uint4(0, 0, 0, 0);
  if constexpr (Vectors) {
    return read_weight(row + k);
  } else {
    unsigned w[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) w[i] = k + i < k_end ? row[k + i] : 0u;
    return make_uint4(w[0] | w[1] << 16, w[2] | w[3] << 16, w[4] | w[5] << 16, w[6] | w[7] << 16);
  }
}

// Columns of x that a block keeps at hand, as bf16. Rows lie 64 bytes off a multiple of 128, so that a quarter warp's
// reads fall into different banks.
template <int Tiles>
constexpr int kStage = Tiles == 1 ? 1024 : 512;
template <int Tiles>
constexpr int kRowWords = (kStage<Tiles> * 2 + 64) / 4;
template <int Tiles>
constexpr int kSharedBytes = std::max(8 * Tiles * kRowWords<Tiles> * 4, 8 * Tiles * (kTile + kOutPad) * 4);

// x[m0 .. m0 + 8 Tiles, k0 .. k0 + kStage) to shared memory; zeros where there is none.
template <int Tiles, bool Vectors>
__device__ void stage_inputs(const Part& part, const float* x_rows, const std::int32_t* in_rows, int m0, int rows,
                             int k0, int k_end, unsigned* to) {
  constexpr int kRound = kStep * kUnroll;
  const int width = min(kStage<Tiles>, (k_end - k0 + kRound - 1) / kRound * kRound);
  for (int i = threadIdx.x; i < 8 * Tiles * (width / 4); i += kThreads) {
    const int m = i / (width / 4), at = i % (width / 4) * 4, k = k0 + at;
    float v[4] = {0, 0, 0, 0};
    if (m0 + m < rows) {
      const std::int64_t from = in_rows != nullptr ? in_rows[m0 + m] : m0 + m;
      const float* row = x_rows + from * part.k;
      if (Vectors && k < k_end) {
        const float4 four = *reinterpret_cast<const float4*>(row + k);
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) v[j] = k + j < k_end ? row[k + j] : 0.0F;
      }
    }
    unsigned* word = to + m * kRowWords<Tiles> + at / 2;
    word[0] = to_bf16_pair(v[0], v[1]);
    word[1] = to_bf16_pair(v[2], v[3]);
  }
}

// What a lane has of two weight rows, kUnroll steps of them.
template <int Tiles>
struct Ahead {
  uint4 upper[kUnroll], lower[kUnroll];
};
template <int Tiles, bool Vectors>
__device__ void read_ahead(const std::uint16_t* upper, const std::uint16_t* lower, int k, int k_end, int t,
                           Ahead<Tiles>& to) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    to.upper[u] = weights_at<Vectors>(upper, k + u * kStep + 8 * t, k_end);
    to.lower[u] = weights_at<Vectors>(lower, k + u * kStep + 8 * t, k_end);
  }
}

// ahead: the weights from k0 on; afterwards those behind the stage.
template <int Tiles, bool Vectors>
__device__ void stream_weights(const std::uint16_t* upper, const std::uint16_t* lower, int k0, int k_end, int lane,
                               const unsigned* inputs, Ahead<Tiles>& ahead, float (&sums)[Tiles][4]) {
  const int g = lane / 4, t = lane % 4;
  const int stop = min(k0 + kStage<Tiles>, k_end);
  for (int k = k0; k < stop; k += kStep * kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const uint4 a = ahead.upper[u], b = ahead.lower[u];
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        const uint4 x = *reinterpret_cast<const uint4*>(inputs + (tile * 8 + g) * kRowWords<Tiles> +
                                                        (k - k0 + u * kStep + 8 * t) / 2);
        mma(sums[tile], a.x, b.x, a.y, b.y, x.x, x.y);
        mma(sums[tile], a.z, b.z, a.w, b.w, x.z, x.w);
      }
      const int next = k + (kUnroll + u) * kStep + 8 * t;
      ahead.upper[u] = weights_at<Vectors>(upper, next, k_end);
      ahead.lower[u] = weights_at<Vectors>(lower, next, k_end);
    }
  }
}

// A cluster's blocks have a run of columns each; then each adds up its share of the outputs over all of them, in order.
template <int Tiles, bool Vectors>
__global__ void __launch_bounds__(kThreads, Vectors ? 6 : 2) multiply(__grid_constant__ const Args args) {
  let_next_in();
  namespace cg = cooperative_groups;
  extern __shared__ __align__(16) unsigned shared[];
  const cg::cluster_group cluster = cg::this_cluster();
  const int splits = static_cast<int>(cluster.num_blocks()), rank = static_cast<int>(cluster.block_rank());
  const int tile = static_cast<int>(blockIdx.x) / splits;
  int p = 0;
  while (p + 1 < args.num_parts && tile >= args.parts[p + 1].first_tile) ++p;
  const Part& part = args.parts[p];
  const std::uint16_t* weight = part.weight;
  const std::int32_t* in_rows = part.in_rows;
  const float* x = part.x;
  float* out = part.out;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int n0 = (tile - part.first_tile) * kTile;
  const int run = ((part.k + splits - 1) / splits + kStep - 1) / kStep * kStep;
  const int k_begin = min(rank * run, part.k), k_end = min(k_begin + run, part.k);
  const std::int64_t upper_at = static_cast<std::int64_t>(min(n0 + warp * 16 + g, part.n - 1)) * part.k;
  const std::int64_t lower_at = static_cast<std::int64_t>(min(n0 + warp * 16 + g + 8, part.n - 1)) * part.k;
  Ahead<Tiles> ahead;
  // Weights depend on nothing: an ordinary part's are under way before what it multiplies them with is there.
  if (part.begin == nullptr) {
    read_ahead<Tiles, Vectors>(weight + upper_at, weight + lower_at, k_begin, k_end, t, ahead);
  }
  wait_for_before();
  int rows = part.rows, m_begin = static_cast<int>(blockIdx.y) * 8 * Tiles, m_end = min(rows, m_begin + 8 * Tiles);
  if (part.begin != nullptr) {
    if (static_cast<int>(blockIdx.y) >= *args.num_active) return;
    const std::int32_t expert = args.active[blockIdx.y], first = part.begin[expert];
    rows = part.begin[expert + 1] - first;
    m_begin = 0, m_end = rows;
    weight += expert * part.stride;
    out += static_cast<std::int64_t>(first) * part.n;
    if (in_rows != nullptr) {
      in_rows += first;
    } else {
      x += static_cast<std::int64_t>(first) * part.k;
    }
  }
  const std::uint16_t *upper = weight + upper_at, *lower = weight + lower_at;

  for (int m0 = m_begin; m0 < m_end; m0 += 8 * Tiles) {
    float sums[Tiles][4] = {};
    if (part.begin != nullptr) read_ahead<Tiles, Vectors>(upper, lower, k_begin, k_end, t, ahead);
    for (int k0 = k_begin; k0 < k_end; k0 += kStage<Tiles>) {
      __syncthreads();  // the last stage's inputs are read
      stage_inputs<Tiles, Vectors>(part, x, in_rows, m0, rows, k0, k_end, shared);
      __syncthreads();
      stream_weights<Tiles, Vectors>(upper, lower, k0, k_end, lane, shared, ahead, sums);
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
      out[static_cast<std::int64_t>(m0 + m) * part.n + n0 + n] = total;
    }
    if (splits > 1) cluster.sync();  // nobody leaves, or stages anew, while others read
  }
}

// The same sums for more rows: a warp has 32 weight rows, so that inputs read from shared memory serve twice as many,
// and the inputs come as bf16 already, some stages ahead, by asynchronous copies.
constexpr int kWideTile = 32 * kWarps;
constexpr int kWideStage = 128, kWideStages = 3;          // columns of a stage
constexpr int kWideRowWords = (kWideStage * 2 + 64) / 4;  // as kRowWords
constexpr int kWideAhead = 2;                             // steps of weights under way
template <int Tiles>
constexpr int kWideBytes = std::max(kWideStages * 8 * Tiles * kWideRowWords * 4, 8 * Tiles * (kWideTile + kOutPad) * 4);

struct WidePart {
  const std::uint16_t* weight;
  const std::uint16_t* x;  // [rows, k]
  float* out;
  int n, k, rows, first_tile;
};
struct WideArgs {
  WidePart parts[kMaxParts];
  int num_parts;
};

__device__ void copy_16(unsigned* to, const void* from, bool live) {
  const auto shared_at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_at), "l"(from), "r"(live ? 16 : 0));
}

// Columns k0 .. k0 + kWideStage of the inputs; zeros past the rows and the columns there are.
template <int Tiles>
__device__ void stage_wide(const WidePart& part, int m0, int k0, int k_end, unsigned* to) {
  constexpr int kPieces = kWideStage / 8;
#pragma unroll
  for (int i = threadIdx.x; i < 8 * Tiles * kPieces; i += kThreads) {
    const int m = i / kPieces, k = k0 + i % kPieces * 8;
    const bool live = m0 + m < part.rows && k < k_end;
    copy_16(to + m * kWideRowWords + i % kPieces * 4,
            live ? part.x + static_cast<std::int64_t>(m0 + m) * part.k + k : part.x, live);
  }
  asm volatile("cp.async.commit_group;");
}

template <int Tiles>
__global__ void __launch_bounds__(kThreads, Tiles == 8 ? 3 : 4) multiply_wide(__grid_constant__ const WideArgs args) {
  let_next_in();
  namespace cg = cooperative_groups;
  extern __shared__ __align__(16) unsigned shared[];
  const cg::cluster_group cluster = cg::this_cluster();
  const int splits = static_cast<int>(cluster.num_blocks()), rank = static_cast<int>(cluster.block_rank());
  const int tile = static_cast<int>(blockIdx.x) / splits;
  int p = 0;
  while (p + 1 < args.num_parts && tile >= args.parts[p + 1].first_tile) ++p;
  const WidePart& part = args.parts[p];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  const int n0 = (tile - part.first_tile) * kWideTile, m0 = static_cast<int>(blockIdx.y) * 8 * Tiles;
  const std::uint16_t* row[4];  // g, g + 8 of the warp's first sixteen, and of its second
#pragma unroll
  for (int i = 0; i < 4; ++i)
    row[i] = part.weight + static_cast<std::int64_t>(min(n0 + warp * 32 + i * 8 + g, part.n - 1)) * part.k + 8 * t;
  const int run = ((part.k + splits - 1) / splits + kStep - 1) / kStep * kStep;
  const int k_begin = min(rank * run, part.k), k_end = min(k_begin + run, part.k);
  const int stages = (k_end - k_begin + kWideStage - 1) / kWideStage;

  uint4 ahead[kWideAhead][4];
  const auto read = [&](int k, uint4(&to)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = k + 8 * t < k_end ? read_weight(row[i] + k) : make_uint4(0, 0, 0, 0);
  };
#pragma unroll
  for (int u = 0; u < kWideAhead; ++u) read(k_begin + u * kStep, ahead[u]);
  wait_for_before();  // weights depend on nothing
  constexpr int kStageWords = 8 * Tiles * kWideRowWords;
#pragma unroll
  for (int i = 0; i < kWideStages - 1; ++i) {
    stage_wide<Tiles>(part, m0, k_begin + i * kWideStage, k_end, shared + i * kStageWords);
  }
  float sums[2][Tiles][4] = {};
  for (int stage = 0; stage < stages; ++stage) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kWideStages - 2));
    __syncthreads();  // this stage has arrived for all, and all have read the one before it
    const int k0 = k_begin + stage * kWideStage;
    stage_wide<Tiles>(part, m0, k0 + (kWideStages - 1) * kWideStage, k_end,
                      shared + (stage + kWideStages - 1) % kWideStages * kStageWords);
    const unsigned* inputs = shared + stage % kWideStages * kStageWords + g * kWideRowWords + 4 * t;
#pragma unroll
    for (int u = 0; u < kWideStage / kStep; ++u) {
      const uint4(&w)[4] = ahead[u % kWideAhead];
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
        const uint4 x = *reinterpret_cast<const uint4*>(inputs + i * 8 * kWideRowWords + u * kStep / 2);
        mma(sums[0][i], w[0].x, w[1].x, w[0].y, w[1].y, x.x, x.y);
        mma(sums[0][i], w[0].z, w[1].z, w[0].w, w[1].w, x.z, x.w);
        mma(sums[1][i], w[2].x, w[3].x, w[2].y, w[3].y, x.x, x.y);
        mma(sums[1][i], w[2].z, w[3].z, w[2].w, w[3].w, x.z, x.w);
      }
      read(k0 + (u + kWideAhead) * kStep, ahead[u % kWideAhead]);
    }
  }
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  auto* partial = reinterpret_cast<float*>(shared);  // [8 Tiles, kWideTile + pad]
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const int m = i * 8 + 2 * t + c % 2, n = warp * 32 + half * 16 + g + c / 2 * 8;
        partial[m * (kWideTile + kOutPad) + n] = sums[half][i][c];
      }
    }
  }
  if (splits > 1) {
    cluster.sync();
  } else {
    __syncthreads();
  }
  const int columns = min(kWideTile, part.n - n0), live = min(8 * Tiles, part.rows - m0) * kWideTile;
  for (int i = rank * kThreads + threadIdx.x; i < live; i += splits * kThreads) {
    const int m = i / kWideTile, n = i % kWideTile;
    if (n >= columns) continue;
    float total = 0;
    for (int r = 0; r < splits; ++r) {
      const float* from = splits > 1 ? cluster.map_shared_rank(partial, r) : partial;
      const float each = from[m * (kWideTile + kOutPad) + n];
      total = r == 0 ? each : total + each;
    }
    part.out[static_cast<std::int64_t>(m0 + m) * part.n + n0 + n] = total;
  }
  if (splits > 1) cluster.sync();  // nobody leaves while others read
}

// Inputs, gathered and rounded.
__global__ void round_inputs(const float* x, const std::int32_t* in_rows, std::uint16_t* to, int k) {
  after_all_before();
  const auto row = static_cast<std::int64_t>(blockIdx.y);
  const std::int64_t from = (in_rows != nullptr ? in_rows[row] : row) * k;
  const int at = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (at >= k) return;
  const float4 four = *reinterpret_cast<const float4*>(x + from + at);
  *reinterpret_cast<uint2*>(to + row * k + at) = make_uint2(to_bf16_pair(four.x, four.y), to_bf16_pair(four.z, four.w));
}

int tiles_of(std::int64_t n) { return static_cast<int>((n + kTile - 1) / kTile); }

// Blocks a tile's columns are spread over: enough that so many weights of the shape fill the GPU, but each with a run
// worth its while. A function of the shape alone.
int splits_of(std::int64_t n, std::int64_t k, int blocks_wanted, int least_run) {
  int splits = 1;
  while (splits < 8 && (n + kTile - 1) / kTile * splits < blocks_wanted && k / (2 * splits) >= least_run) splits *= 2;
  return splits;
}
int splits_of(std::int64_t n, std::int64_t k) { return splits_of(n, k, 528, 512); }  // four blocks a multiprocessor
// A row wants some eight experts at once, and a wide batch most of them: long runs pay then.
int expert_splits_of(std::int64_t n, std::int64_t k) { return splits_of(n, k, 16, 1024); }

// A launch in clusters of `splits` blocks.
template <auto Kernel, int SharedBytes, class Arguments>
void launch_clusters(Stream& s, const Arguments& args, int tiles, int splits, int height) {
  static const bool allowed = [] {
    RONDO_CUDA_CALL(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SharedBytes));
    return true;
  }();
  static_cast<void>(allowed);
  launch(s, "linear",
         {dim3(static_cast<unsigned>(tiles * splits), static_cast<unsigned>(height)), kThreads, SharedBytes, splits},
         Kernel, args);
}

template <int Tiles, bool Vectors>
void launch_narrow(Stream& s, const Args& args, int tiles, int splits, int height) {
  launch_clusters<multiply<Tiles, Vectors>, kSharedBytes<Tiles>>(s, args, tiles, splits, height);
}

bool has_vectors(const Part& part) {
  return part.k % 8 == 0 && reinterpret_cast<std::uintptr_t>(part.weight) % 16 == 0 && part.stride % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(part.x) % 16 == 0;
}

// rows: of the widest part (or expert), which says how many columns an instruction's block needs.
void launch_group(Stream& s, const Args& args, int tiles, int splits, bool vectors, int rows, int experts) {
  const auto height = [&](int columns) { return experts > 0 ? experts : (rows + columns - 1) / columns; };
  if (!vectors) return launch_narrow<2, false>(s, args, tiles, splits, height(16));
  if (rows <= 8) return launch_narrow<1, true>(s, args, tiles, splits, height(8));
  launch_narrow<2, true>(s, args, tiles, splits, height(16));
}

Part dense(const LinearPart& part) {
  return {.weight = bf16_of(part.weight),
          .x = part.x.f32(),
          .in_rows = part.in_rows,
          .out = part.out.f32(),
          .begin = nullptr,
          .stride = 0,
          .n = static_cast<int>(part.weight.shape[0]),
          .k = static_cast<int>(part.weight.shape[1]),
          .rows = part.rows,
          .first_tile = 0};
}

// Parts of the same split and alignment share a launch.
class Launches {
 public:
  Launches(Stream& s, const std::int32_t* active, const std::int32_t* num_active, int experts)
      : stream_(s), active_(active), num_active_(num_active), experts_(experts) {}
  void add(Part part, int splits) {
    const bool vectors = has_vectors(part);
    if (args_.num_parts == kMaxParts || (args_.num_parts > 0 && (splits != splits_ || vectors != vectors_))) flush();
    splits_ = splits, vectors_ = vectors;
    part.first_tile = tiles_;
    tiles_ += tiles_of(part.n);
    rows_ = std::max(rows_, part.rows);
    args_.parts[args_.num_parts++] = part;
  }
  void flush() {
    if (args_.num_parts == 0) return;
    args_.active = active_, args_.num_active = num_active_;
    launch_group(stream_, args_, tiles_, splits_, vectors_, rows_, experts_);
    args_.num_parts = tiles_ = rows_ = 0;
  }

 private:
  Stream& stream_;
  const std::int32_t* active_;
  const std::int32_t* num_active_;
  int experts_, tiles_ = 0, rows_ = 0, splits_ = 0;
  bool vectors_ = false;
  Args args_{};
};

constexpr int kWideRows = 64;  // of a launch

// Those of the parts that are split so, their rows from m_begin on; rounded: their inputs from there on.
void launch_wide(Stream& s, std::span<const LinearPart> parts, int splits, int m_begin, const std::uint16_t* rounded) {
  WideArgs args{};
  int tiles = 0, most_rows = 0;
  const auto k = static_cast<int>(parts[0].weight.shape[1]);
  for (const LinearPart& part : parts) {
    const auto n = static_cast<int>(part.weight.shape[0]);
    if (part.rows <= m_begin || splits_of(n, k) != splits) continue;
    const int rows = std::min(part.rows - m_begin, kWideRows);
    args.parts[args.num_parts++] = {
        bf16_of(part.weight), rounded, part.out.f32() + static_cast<std::int64_t>(m_begin) * n, n, k, rows, tiles};
    tiles += (n + kWideTile - 1) / kWideTile;
    most_rows = std::max(most_rows, rows);
  }
  if (args.num_parts == 0) return;
  if (most_rows <= 16) {
    launch_clusters<multiply_wide<2>, kWideBytes<2>>(s, args, tiles, splits, 1);
  } else if (most_rows <= 32) {
    launch_clusters<multiply_wide<4>, kWideBytes<4>>(s, args, tiles, splits, 1);
  } else {
    launch_clusters<multiply_wide<8>, kWideBytes<8>>(s, args, tiles, splits, 1);
  }
}

// The wide kernel's conditions: rows that fill its instructions, rows of 16-byte vectors, one input for all parts.
bool goes_wide(std::span<const LinearPart> parts) {
  if (parts.size() > kMaxParts) return false;
  for (const LinearPart& part : parts) {
    if (part.rows <= 8 || part.weight.shape[1] % 8 != 0 || part.x.data != parts[0].x.data ||
        part.in_rows != parts[0].in_rows)
      return false;
    if (reinterpret_cast<std::uintptr_t>(part.weight.view.codes) % 16 != 0 ||
        reinterpret_cast<std::uintptr_t>(part.x.data) % 16 != 0)
      return false;
  }
  return true;
}

// Rows by the wide kernel, kWideRows at a time: the inputs are rounded once, the products follow.
void linear_wide(Stream& s, std::span<const LinearPart> parts) {
  const LinearPart& first = parts[0];
  const auto k = static_cast<int>(first.weight.shape[1]);
  const std::span<std::byte> room = s.cuda().room();
  CHECK(static_cast<std::size_t>(kWideRows) * static_cast<std::size_t>(k) * 2 <= room.size());
  auto* rounded = reinterpret_cast<std::uint16_t*>(room.data());
  int rows = 0;
  for (const LinearPart& part : parts) rows = std::max(rows, part.rows);
  for (int m = 0; m < rows; m += kWideRows) {
    const auto height = static_cast<unsigned>(std::min(kWideRows, rows - m));
    const std::int32_t* in_rows = first.in_rows != nullptr ? first.in_rows + m : nullptr;
    const float* x = first.x.f32() + (in_rows != nullptr ? 0 : static_cast<std::int64_t>(m) * k);
    launch(s, "linear, rounding inputs", {dim3(static_cast<unsigned>((k / 4 + 255) / 256), height), 256, 0},
           round_inputs, x, in_rows, rounded, k);
    for (const int splits : {1, 2, 4, 8}) launch_wide(s, parts, splits, m, rounded);
  }
}

}  // namespace

void linear(Stream& s, std::span<const LinearPart> parts) {
  if (goes_wide(parts)) return linear_wide(s, parts);
  Launches launches(s, nullptr, nullptr, 0);
  for (const LinearPart& part : parts) {
    if (part.rows > 0) launches.add(dense(part), splits_of(part.weight.shape[0], part.weight.shape[1]));
  }
  launches.flush();
}

void expert_linear(Stream& s, std::span<const ExpertLinear> experts, std::span<const LinearPart> beside, int max_active,
                   int rows) {
  // An expert of a wide batch has few of its rows: sixteen columns at a time are enough.
  const int columns = rows <= 8 ? 8 : 16;
  Launches launches(s, experts[0].active, experts[0].num_active, std::max(max_active, (rows + columns - 1) / columns));
  for (const ExpertLinear& part : experts) {
    launches.add({.weight = part.weight,
                  .x = part.x,
                  .in_rows = part.in_rows,
                  .out = part.out,
                  .begin = part.begin,
                  .stride = part.stride,
                  .n = static_cast<int>(part.n),
                  .k = static_cast<int>(part.k),
                  .rows = rows,
                  .first_tile = 0},
                 expert_splits_of(part.n, part.k));
  }
  for (const LinearPart& part : beside)
    launches.add(dense(part), expert_splits_of(part.weight.shape[0], part.weight.shape[1]));
  launches.flush();
}

}  // namespace rondo::cuda
