// Batch: the rows of one forward, plain data filled by whoever owns the sequences.
#pragma once

#include <cstdint>

#include "ops/common/row_spans.h"
#include "tensor/tensor.h"

namespace rondo {

struct Batch {
  int rows = 0;
  const std::int32_t* ids = nullptr;  // [rows]
  RowSpans spans;
  Tensor ngram_vectors;  // f32 [rows, embed_dim] what the n-gram table has for each row; unused without one
};

}  // namespace rondo
