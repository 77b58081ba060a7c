// The sum over a row's experts, element by element: the same wherever it is made.
#pragma once

#include "ops/moe/moe.h"
#include "ops/norm/norm.cuh"

namespace rondo::cuda {

struct SumArgs {
  const float* experts;
  const std::int32_t* place;
  const float *weight, *shared, *shared_gate;
  int k;

  // Elements [d, d + Wide) of a row of `hidden`.
  template <int Wide>
  __device__ void add_up(std::int64_t row, int d, int hidden, float (&sum)[Wide]) const {
#pragma unroll
    for (int j = 0; j < Wide; ++j) sum[j] = 0;
#pragma unroll 8
    for (int i = 0; i < k; ++i) {
      const float of = weight[row * k + i];
      float x[Wide];
      read_wide<Wide>(experts + static_cast<std::int64_t>(place[row * k + i]) * hidden, d, hidden, x);
#pragma unroll
      for (int j = 0; j < Wide; ++j) sum[j] = fmaf(of, x[j], sum[j]);
    }
    const float open = sigmoid(shared_gate[row]);
    float x[Wide];
    read_wide<Wide>(shared + row * hidden, d, hidden, x);
#pragma unroll
    for (int j = 0; j < Wide; ++j) sum[j] = fmaf(open, x[j], sum[j]);
  }
};

inline SumArgs sum_args(const MixtureSum& sum) {
  return {sum.experts.f32(), sum.place.i32(),       sum.weight.f32(),
          sum.shared.f32(),  sum.shared_gate.f32(), static_cast<int>(sum.place.width())};
}

}  // namespace rondo::cuda
