// CodedView: a weight matrix [rows, columns] as a checkpoint stores it, in plain pointers: what a kernel reads.
//
//   format   a code                      the weight of row n, column k
//   Bf16     bfloat16                    code
//   F16      IEEE half                   code
//   F32      float32                     code
//   Fp8      E4M3                        code * scale(n, k) * tensor_scale       (one of the two scales is 1)
//   Nvfp4    E2M1, two a byte            code * scale(n, k) * tensor_scale       (the first product is exact)
//   Affine   unsigned, 4, 6 or 8 bits    code * scale(n, k) + bias(n, k)
//
// A weight is that value as a float32, rounded once. Row n's codes begin at codes + n * row_bytes. Nvfp4 has the even
// column in the low half of a byte. Affine rows are a stream of bits, lowest first: column k has bits [k * bits, k *
// bits + bits). scale(n, k) is element (n / scale_rows) * scale_stride + k / scale_columns of scales, of type
// scale_type (biases likewise, in the same places); without scales it is 1. What a format allows:
//
//   Fp8      scales of any shape (the published: 128 x 128; a row; one for all, in tensor_scale)
//   Nvfp4    scale_rows 1, scale_columns 16, E4M3; columns a multiple of 16
//   Affine   scale_rows 1, scale_columns 32, 64 or 128; columns a multiple of it
//
// Nothing but data here: files compiled for one instruction set include it, and so may CUDA's.
#pragma once

#include <cstdint>

namespace rondo {

enum class WeightFormat : std::uint8_t { Bf16, F16, F32, Fp8, Nvfp4, Affine };
enum class ScaleType : std::uint8_t { None, Bf16, F16, F32, E4m3 };

struct CodedView {
  WeightFormat format = WeightFormat::Bf16;
  ScaleType scale_type = ScaleType::None;
  std::uint8_t bits = 16;  // of a code
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_bytes = 0;            // of codes
  const std::uint8_t* codes = nullptr;   // [rows, row_bytes]
  const std::uint8_t* scales = nullptr;  // [ceil(rows / scale_rows), scale_stride]
  const std::uint8_t* biases = nullptr;  // [ceil(rows / scale_rows), scale_stride]
  std::int64_t scale_stride = 0;         // scales a row of them: ceil(columns / scale_columns)
  std::int64_t scale_rows = 1;           // rows that share a scale
  std::int64_t scale_columns = 1;        // columns that do
  float tensor_scale = 1;
};

constexpr std::int64_t kNvfp4Block = 16;  // columns that share a scale

}  // namespace rondo
