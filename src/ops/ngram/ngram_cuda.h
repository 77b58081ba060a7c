// The CUDA code of ops/ngram/ngram.h.
#pragma once

#include "ops/ngram/ngram.h"

namespace rondo::cuda {

void ngram_gate(Stream& s, Tensor key, Tensor query, Tensor value, Tensor out);

}  // namespace rondo::cuda
