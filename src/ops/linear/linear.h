// Linear layers: several weights in one fork-join.
//
//   out[i, n] = sum_k weight[n, k] * x[in_rows ? in_rows[i] : i, k]        for i < rows
//
// weight: bf16 [n, k], read where it lies. x: f32 [any, k]. out: f32 [>= rows, n]. Sums are f32, lane by lane along k
// and then over the lanes by one tree: an output's bits depend on its weight row and its input row alone, not on how
// many rows or parts share the call. Outputs must not overlap inputs. No allocation.
#pragma once

#include <span>

#include "device/stream.h"
#include "tensor/tensor.h"

namespace rondo {

struct LinearPart {
  Tensor weight;                          // [n, k] bf16
  Tensor x;                               // [any, k] f32
  Tensor out;                             // [>= rows, n] f32
  const std::int32_t* in_rows = nullptr;  // [rows] rows of x; null = 0 .. rows - 1
  int rows = 0;
};

void linear(Stream& s, std::span<const LinearPart> parts);
void linear(Stream& s, Tensor weight, Tensor x, Tensor out);  // one part, all rows of x

}  // namespace rondo
