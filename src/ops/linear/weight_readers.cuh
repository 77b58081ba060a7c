// How the matrix products of linear_cuda.h get their weights: a reader of each kind gives a lane its columns of Rows
// rows, kStep columns of a warp at a time, as bf16.
//
//   PlainReader   bf16: 16-byte loads into registers, some steps ahead
//   CodedReader   quantised: stages of kUnroll steps by asynchronous copies into a ring of the warp's own in shared
//                 memory, as they lie in the file, decoded (ops/weight/bf16_lanes.h) on the way to the instruction
//   PlainRing     bf16, as a CodedReader (multiply_stream.cuh)
//   AnyReader     every format and shape, weight by weight: right, and slow
//
// All give an instruction the same columns of a row, so whatever the format a sum is that of the bfloat16 weights
// it stands for. The columns' places in it are the same too, but for a reader that is kCrossed: of each four columns
// the second and the third are exchanged, as those of its inputs must be. A Hopper's instruction adds its sixteen
// products at once, whatever their order (weight_test.cpp compares the bits).
//
// A lane is (g, t) = (lane / 4, lane % 4): rows g, g + 8, .. of the warp's, columns 8 t .. 8 t + 7 of a step.
#pragma once

#include <cstddef>

#include "ops/common/copies.cuh"
#include "ops/common/warp.cuh"
#include "ops/weight/bf16_lanes.h"
#include "tensor/coded_view.h"

namespace rondo::cuda::product {

constexpr int kStep = 32;                // columns a lane quad reads at a time
constexpr int kUnroll = 4;               // steps of a round
constexpr int kRound = kStep * kUnroll;  // columns of one, and of a stage of codes
constexpr int kRowsEach = 8;             // rows of the warp that a lane has one of

struct PartWeight {
  CodedView view;                  // of the first expert, where there are experts
  std::int64_t codes_stride = 0;   // bytes from an expert's codes to the next one's
  std::int64_t scales_stride = 0;  // likewise of scales, and of biases
  const float* factors = nullptr;  // [experts] their tensor scales, on the device; null: all have the view's
};

__device__ inline float tensor_scale_of(const PartWeight& weight, int expert) {
  return weight.factors != nullptr ? weight.factors[expert] : weight.view.tensor_scale;
}

// Keeps what a loop needs in a register: the compiler would otherwise make it anew, from the thread's number, each
// time.
__device__ inline void keep(int& x) { asm volatile("" : "+r"(x)); }

// Rows of 16-byte vectors. Ahead: steps whose loads are under way.
template <int Rows, int Ahead>
class PlainReader {
 public:
  static constexpr bool kIsCoded = false;
  static constexpr bool kCrossed = false;
  static constexpr int kRingBytes = 0;
  static constexpr int kBlocks = 6;  // a multiprocessor, of the narrow kernel

  __device__ PlainReader(std::byte* /*ring*/, int lane) : g_(lane / 4), t_(lane % 4) {}
  // At rows n_first .. of so many, of that expert's weight. A row past the end repeats the last.
  __device__ void aim(const PartWeight& weight, int expert, int n_first, int n) {
    const auto* codes = reinterpret_cast<const std::uint16_t*>(weight.view.codes + expert * weight.codes_stride);
    const auto k = static_cast<int>(weight.view.columns);
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      row_[i] = codes + static_cast<std::int64_t>(min(n_first + i * kRowsEach + g_, n - 1)) * k + 8 * t_;
    }
  }
  __device__ void start(int k, int k_end) {
    k_end_ = k_end;
#pragma unroll
    for (int u = 0; u < Ahead; ++u) read(k + u * kStep, ahead_[u]);
  }
  // Step u of a round, whose columns begin at k; then next() for the same one.
  __device__ void take(int u, int /*k*/, uint4 (&to)[Rows]) const {
#pragma unroll
    for (int i = 0; i < Rows; ++i) to[i] = ahead_[u % Ahead][i];
  }
  __device__ void next(int u, int k) { read(k + Ahead * kStep, ahead_[u % Ahead]); }

 private:
  __device__ void read(int k, uint4 (&to)[Rows]) const {
#pragma unroll
    for (int i = 0; i < Rows; ++i) to[i] = k + 8 * t_ < k_end_ ? read_weight(row_[i] + k) : make_uint4(0, 0, 0, 0);
  }
  int g_, t_, k_end_ = 0;
  const std::uint16_t* row_[Rows];
  uint4 ahead_[Ahead][Rows];
};

template <int Rows>
class AnyReader {
 public:
  static constexpr bool kIsCoded = false;
  static constexpr bool kCrossed = false;
  static constexpr int kRingBytes = 0;
  static constexpr int kBlocks = 2;
  static constexpr float kFactor = 1;  // of a sum, besides the tensor scale

  __device__ AnyReader(std::byte* /*ring*/, int lane) : g_(lane / 4), t_(lane % 4) {}
  __device__ void aim(const PartWeight& weight, int expert, int n_first, int n) {
    view_ = weight.view;
    view_.codes += expert * weight.codes_stride;
    view_.scales += expert * weight.scales_stride;
    view_.biases += expert * weight.scales_stride;
#pragma unroll
    for (int i = 0; i < Rows; ++i) row_[i] = min(n_first + i * kRowsEach + g_, n - 1);
  }
  __device__ void start(int /*k*/, int k_end) { k_end_ = k_end; }
  __device__ void take(int /*u*/, int k, uint4 (&to)[Rows]) const {
    const int first = k + 8 * t_;
    const auto two = [&](int row, int at) {
      return bf16_lanes::bf16_pair(at < k_end_ ? bf16_lanes::untensored_value(view_, row, at) : 0.0F,
                                   at + 1 < k_end_ ? bf16_lanes::untensored_value(view_, row, at + 1) : 0.0F);
    };
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      to[i] =
          make_uint4(two(row_[i], first), two(row_[i], first + 2), two(row_[i], first + 4), two(row_[i], first + 6));
    }
  }
  __device__ void next(int /*u*/, int /*k*/) {}

 private:
  int g_, t_, k_end_ = 0, row_[Rows];
  CodedView view_;
};

// The formats with kernels of their own. What is asked of a weight: linear_cuda.cu, code_of().
enum class Code { Fp8, Fp8Blocks, Nvfp4, Affine4, Affine6, Affine8 };
template <Code C>
constexpr int kBits = C == Code::Nvfp4 || C == Code::Affine4 ? 4
                      : C == Code::Affine6                   ? 6
                                                             : 8;
template <Code C>
constexpr bool kIsAffine = C == Code::Affine4 || C == Code::Affine6 || C == Code::Affine8;

// Stages: of the ring, of which all but one are under way. A warp reads a row's stage in pieces of 16 bytes; they lie
// in the ring so that the lanes of one read (eight rows' 16 bytes, four rows' 8) find theirs in different banks.
template <Code C, int Rows, int Stages>
class CodedReader {
  static constexpr int kWarpRows = kRowsEach * Rows;
  static constexpr int kRowBytes = kRound * kBits<C> / 8, kRowPieces = kRowBytes / 16;
  static constexpr int kAllPieces = kRowPieces * kWarpRows, kPieces = (kAllPieces + kWarp - 1) / kWarp;  // a lane's
  static constexpr bool kHasGrid = C == Code::Nvfp4 || kIsAffine<C>;
  static constexpr int kGridBytes = 8;  // of a row's stage: eight scales, or two and two biases
  static constexpr int kAllGridPieces = 2 * kWarpRows, kGridPieces = (kAllGridPieces + kWarp - 1) / kWarp;

 public:
  static constexpr int kStages = Stages, kColumns = kRound;
  static constexpr int kStageBytes = kWarpRows * (kRowBytes + (kHasGrid ? kGridBytes : 0));
  static constexpr bool kIsCoded = true;
  static constexpr bool kCrossed = C == Code::Nvfp4 && Rows <= 2;  // of kernels that stage inputs for it
  static constexpr int kRingBytes = Stages * kStageBytes;          // of a warp
  static constexpr int kBlocks = kBits<C> == 4 ? 6 : 5;            // as many as their shared memory leaves
  static constexpr float kFactor = C == Code::Nvfp4 ? bf16_lanes::kNvfp4Factor : 1;

  __device__ CodedReader(std::byte* ring, int lane) : ring_(ring), lane_(lane), g_(lane / 4), t_(lane % 4) {
    const int row = lane / kRowPieces;
    copies_to_ = kBits<C> == 6 ? lane * 16 : row * kRowBytes + place(row, lane % kRowPieces) * 16;
    if constexpr (kBits<C> == 4) {
      const int matrix_row = lane / 8 % Rows * kRowsEach + lane % 8, step = lane / 8 / Rows;
      matrices_at_ = matrix_row * kRowBytes + place(matrix_row, step) * 16;
    }
    keep(copies_to_), keep(matrices_at_);
  }

  __device__ void aim(const PartWeight& weight, int expert, int n_first, int n) {
    aim_copies(weight, expert, n_first, n);
    aim_scales(weight, expert, n_first, n);
  }
  __device__ void aim_copies(const PartWeight& weight, int expert, int n_first, int n) {
    const CodedView& view = weight.view;
    const std::uint8_t* codes = view.codes + expert * weight.codes_stride;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const int piece = lane_ + j * kWarp, row = min(n_first + piece / kRowPieces, n - 1);
      from_[j] = codes + row * view.row_bytes + piece % kRowPieces * 16;
    }
    const std::int64_t scales_at = expert * weight.scales_stride;
    if constexpr (kHasGrid) {
      constexpr int kScaleBytes = C == Code::Nvfp4 ? 1 : 2;
#pragma unroll
      for (int j = 0; j < kGridPieces; ++j) {
        const int piece = lane_ + j * kWarp, row = min(n_first + piece / 2, n - 1);
        const std::uint8_t* grid = C == Code::Nvfp4 || piece % 2 == 0 ? view.scales : view.biases;
        grid_from_[j] = grid + scales_at + row * view.scale_stride * kScaleBytes;
        if (C == Code::Nvfp4) grid_from_[j] += piece % 2 * 4;
      }
    }
  }
  // So many rows on, where all of them are rows of the weight.
  __device__ void advance_copies(const PartWeight& weight, int rows) {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) from_[j] += rows * weight.view.row_bytes;
    if constexpr (kHasGrid) {
      constexpr int kScaleBytes = C == Code::Nvfp4 ? 1 : 2;
#pragma unroll
      for (int j = 0; j < kGridPieces; ++j) grid_from_[j] += rows * weight.view.scale_stride * kScaleBytes;
    }
  }
  // Where open() finds the scales that are not copied.
  __device__ void aim_scales(const PartWeight& weight, int expert, int n_first, int n) {
    if constexpr (C == Code::Fp8Blocks) {  // the warp's rows share them
      const CodedView& view = weight.view;
      const std::int64_t scales_at = expert * weight.scales_stride;
      wide_scales_ = view.scale_type == ScaleType::F32;
      const int rows = static_cast<int>(view.scale_rows), block = min(n_first, n - 1) / rows;
      block_scales_ = view.scales + scales_at + block * view.scale_stride * (wide_scales_ ? 4 : 2);
      scales_end_ = (block + 1) * rows;
    }
  }

  // The same for rows further on, or of another weight, and columns from k on.
  __device__ void turn_scales(const PartWeight& weight, int n_first, int n, bool is_other, int k) {
    if constexpr (C == Code::Fp8Blocks) {
      if (is_other || n_first >= scales_end_) aim_scales(weight, 0, n_first, n);
      next_scale_ = block_scale(k);
    }
  }

  // Columns k .. k_end, whole rounds of them: the first stages are under way, and in one group each.
  __device__ void start(int k, int k_end) {
    begin(k, k_end);
#pragma unroll
    for (int i = 0; i + 1 < Stages; ++i) {
      copy(k + i * kRound);
      commit_copies();
    }
  }
  // The next round's stage has arrived, and another is on its way.
  __device__ void arrive(int k) {
    wait_for_copies<Stages - 2>();
    __syncwarp();
    copy(k + (Stages - 1) * kRound);
    commit_copies();
    open(k);
  }

  // For who groups these copies with others: begin, then copy() for all but one of the stages; then, round by round, a
  // barrier behind the wait, copy() of the stage that comes Stages - 1 later, and open().
  __device__ void begin(int k, int k_end) {
    wait_for_copies<0>();  // of another start
    __syncwarp();
    begin_copies(k_end);
    if constexpr (C == Code::Fp8Blocks) next_scale_ = block_scale(k);
  }
  __device__ void begin_copies(int k_end) { k_end_ = k_end, written_ = 0, read_ = 0; }
  __device__ void copy(int k) {
    std::byte* slot = ring_ + written_;
    written_ = after(written_);
    if (k >= k_end_) return;
    const unsigned codes_at = static_cast<unsigned>(k) / 8 * kBits<C>;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {  // place() is the same for each of them
      if (kAllPieces % kWarp != 0 && lane_ + j * kWarp >= kAllPieces) continue;
      copy_async<16>(slot + copies_to_ + j * kWarp * 16, from_[j] + codes_at);
    }
    if constexpr (kHasGrid) {
      const unsigned grid_at = C == Code::Nvfp4 ? static_cast<unsigned>(k) / 16 : static_cast<unsigned>(k) / 64 * 2;
#pragma unroll
      for (int j = 0; j < kGridPieces; ++j) {
        if (kAllGridPieces % kWarp != 0 && lane_ + j * kWarp >= kAllGridPieces) continue;
        copy_async<4>(slot + kWarpRows * kRowBytes + (lane_ + j * kWarp) * 4, grid_from_[j] + grid_at);
      }
    }
  }
  __device__ void open(int k) {
    at_ = ring_ + read_;
    read_ = after(read_);
    if constexpr (kHasGrid) {
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        grid_[i] = *reinterpret_cast<const uint2*>(at_ + kWarpRows * kRowBytes + (i * kRowsEach + g_) * kGridBytes);
        if constexpr (C == Code::Nvfp4) {  // the lane's four of the eight, a step's each
          const std::uint32_t own = __byte_perm(grid_[i].x, grid_[i].y, t_ < 2 ? 0x6420 : 0x7531);
          grid_[i] = make_uint2(bf16_lanes::nvfp4_scales(own), bf16_lanes::nvfp4_scales(own >> 16));
        }
      }
    } else if constexpr (C == Code::Fp8Blocks) {
      scale_ = next_scale_;
      next_scale_ = block_scale(k + kRound);
    }
  }

  __device__ void take(int u, int /*k*/, uint4 (&to)[Rows]) {
    if constexpr (kBits<C> == 4) {
      if (u % kStepsRead == 0) codes_ = read_matrices(at_ + (matrices_at_ ^ u * 16));
    }
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      const bf16_lanes::Eight eight = decoded(u, i);
      to[i] = make_uint4(eight.x, eight.y, eight.z, eight.w);
    }
  }
  __device__ void next(int /*u*/, int /*k*/) {}

 private:
  static constexpr int kStepsRead = 4 / Rows;  // by four matrices: eight rows' 16 bytes, which are a step's, each

  static __device__ int after(int stage) { return stage + kStageBytes == kRingBytes ? 0 : stage + kStageBytes; }
  static __device__ int place(int row, int piece) {
    if constexpr (kBits<C> == 4) return piece ^ (row >> 1 & 3);
    if constexpr (kBits<C> == 8) return piece ^ (row & 3) << 1;
    return piece;
  }

  __device__ float block_scale(int k) const {
    if (k >= k_end_) return 0;
    const std::uint8_t* at = block_scales_ + k / kRound * (wide_scales_ ? 4 : 2);
    if (wide_scales_) return *reinterpret_cast<const float*>(at);
    return from_bf16(*reinterpret_cast<const std::uint16_t*>(at));
  }

  __device__ bf16_lanes::Eight decoded(int u, int i) const {
    const std::byte* row = at_ + (i * kRowsEach + g_) * kRowBytes;
    std::uint32_t first, second = 0;
    if constexpr (kBits<C> == 4) {
      const int matrix = u % kStepsRead * Rows + i;
      first = matrix == 0 ? codes_.x : matrix == 1 ? codes_.y : matrix == 2 ? codes_.z : codes_.w;
    } else if constexpr (kBits<C> == 8) {
      const uint2 both = *reinterpret_cast<const uint2*>(row + place(g_, 2 * u + t_ / 2) * 16 + t_ % 2 * 8);
      first = both.x, second = both.y;
    } else {  // six bytes, which begin in the middle of a word for every other lane
      const auto* words = reinterpret_cast<const std::uint32_t*>(row + u * 24) + t_ * 3 / 2;
      const std::uint32_t low = words[0], high = words[1];
      first = __funnelshift_r(low, high, t_ % 2 * 16);
      second = high >> (t_ % 2 * 16);
    }
    if constexpr (C == Code::Fp8) {
      return bf16_lanes::fp8_eight(first, second);
    } else if constexpr (C == Code::Fp8Blocks) {
      return bf16_lanes::fp8_eight(first, second, scale_);
    } else if constexpr (C == Code::Nvfp4) {
      const std::uint32_t scale = bf16_lanes::nvfp4_scale(u < 2 ? grid_[i].x : grid_[i].y, u % 2);
      return kCrossed ? bf16_lanes::nvfp4_eight_crossed(first, scale) : bf16_lanes::nvfp4_eight(first, scale);
    } else {
      const float scale = u < 2 ? __uint_as_float(grid_[i].x << 16) : __uint_as_float(grid_[i].x & 0xFFFF0000u);
      const float bias = u < 2 ? __uint_as_float(grid_[i].y << 16) : __uint_as_float(grid_[i].y & 0xFFFF0000u);
      return bf16_lanes::affine_eight<kBits<C>>(first, second, scale, bias);
    }
  }

  std::byte* ring_;
  const std::byte* at_ = nullptr;
  int lane_, g_, t_, k_end_ = 0;
  int written_ = 0, read_ = 0;           // bytes of the ring before the stage
  int copies_to_ = 0, matrices_at_ = 0;  // bytes of a stage before what the lane writes, and reads
  uint4 codes_;
  const std::uint8_t* from_[kPieces];
  const std::uint8_t* grid_from_[kHasGrid ? kGridPieces : 1];
  uint2 grid_[Rows];  // of Nvfp4: four scales as bfloat16
  const std::uint8_t* block_scales_ = nullptr;
  bool wide_scales_ = false;
  int scales_end_ = 0;  // the first row that has other scales
  float scale_ = 0, next_scale_ = 0;
};

}  // namespace rondo::cuda::product
