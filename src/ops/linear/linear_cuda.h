// The CUDA code of ops/linear/linear.h: inputs are rounded to bf16, products summed in f32 by the tensor cores.
//
// A weight is a bfloat16: its own, or what ops/weight/bf16_lanes.h makes of its code and scales. The sum of those is
// what the same weights stored as bf16 give, bit for bit; a tensor_scale multiplies it once it is whole.
//
// Order of a sum: the weight's columns are cut into runs, equal but for the last ones, as many as its shape asks for,
// each summed in ascending steps of 16 columns by one warp; the runs' sums are added up in ascending order. Whatever
// else shares the launch.
#pragma once

#include "ops/linear/linear.h"

namespace rondo::cuda {

// What becomes of inputs while they are read: silu(silu_scale * x), 0: as they are; times what lies times_behind floats
// behind each, 0: by itself.
struct InputStep {
  float silu_scale = 0;
  std::int64_t times_behind = 0;
};
void linear(Stream& s, std::span<const LinearPart> parts, InputStep step = {});
// Of silu(gate) * up, all rows: to the bit what silu_product (ops/pointwise) and linear give.
void linear_of_product(Stream& s, const Weight& weight, Tensor gate, Tensor up, Tensor out);

// Rows grouped by expert (ops/moe/moe_cuda.h). Expert e's codes begin e * codes_stride bytes behind the first's, its
// scales and biases e * scales_stride; its tensor scale is tensor_scales[e] (null: all have the first's). It reads the
// rows in_rows[begin[e] ..  begin[e + 1]) of x (null: those very numbers) and writes the rows begin[e] .. of out.
// `active` names the experts that have rows, num_active how many: [1], on the device. At most max_active of them.
struct ExpertLinear {
  CodedView weight;  // the first expert's, [n, k]
  std::int64_t codes_stride, scales_stride;
  const float* tensor_scales;  // [experts], on the device
  const float* x;
  const std::int32_t* in_rows;
  float* out;
  const std::int32_t* begin;
  const std::int32_t* active;
  const std::int32_t* num_active;
};
// beside: ordinary parts of the same launch, as the shared expert's.
void expert_linear(Stream& s, std::span<const ExpertLinear> experts, std::span<const LinearPart> beside, int max_active,
                   int rows, InputStep step = {});

}  // namespace rondo::cuda
