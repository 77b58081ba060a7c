// Linear layers: several weights in one fork-join.
//
//   out[i, n] = sum_k weight[n, k] * x[in_rows ? in_rows[i] : i, k]        for i < rows
//
// weight: [n, k] in any format of tensor/coded_view.h, read where it lies; what is not bf16 is decoded to float32 piece
// by piece on the way. x: f32 [any, k]. out: f32 [>= rows, n]. Sums are f32, lane by lane along k and then over the
// lanes by one tree: an output's bits depend on its weight row's values and its input row alone, not on their format,
// nor on how many rows or parts share the call. Outputs must not overlap inputs. No allocation.
#pragma once

#include <span>

#include "device/stream.h"
#include "tensor/tensor.h"
#include "tensor/weight.h"

namespace rondo {

struct LinearPart {
  Weight weight;                          // [n, k]
  Tensor x;                               // [any, k] f32
  Tensor out;                             // [>= rows, n] f32
  const std::int32_t* in_rows = nullptr;  // [rows] rows of x; null = 0 .. rows - 1
  int rows = 0;
};

void linear(Stream& s, std::span<const LinearPart> parts);
void linear(Stream& s, const Weight& weight, Tensor x, Tensor out);  // one part, all rows of x

// Whether a GPU multiplies by such codes as they lie: FP8 with one scale or with scales for whole blocks of 128 columns
// (float32, bfloat16), NVFP4, affine codes in groups of 64 (bfloat16). Every other format it reads weight by weight,
// which is right and an order of magnitude slower.
bool has_gpu_kernel(const CodedView& view);

}  // namespace rondo
