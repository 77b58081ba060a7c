// The CUDA code of ops/sample/draw_rows.h.
#pragma once

#include "ops/sample/draw_rows.h"

namespace rondo::cuda {

constexpr int kDrawSlices = 32;  // of a row, a block each
struct SliceBest {
  double score;
  float most, total;  // highest logit, and the sum of e^((logit - most) / temperature)
  float chosen_logit;
  std::int32_t chosen;
};
void draw_rows(Stream& s, Tensor logits, const DrawKey* keys, const std::int32_t* ids, RowShaping shaping, Tensor room,
               Tensor drawn);
void find_likely_rows(Stream& s, Tensor logits, const DrawKey* keys, RowShaping shaping, Tensor likely);
void tell_rows(Stream& s, Tensor logits, const DrawKey* keys, Tensor drawn, Tensor told);

}  // namespace rondo::cuda
