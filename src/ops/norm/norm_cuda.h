// The CUDA code of ops/norm/norm.h.
#pragma once

#include "ops/norm/norm.h"

namespace rondo::cuda {

void rms_norm(Stream& s, Tensor x, Tensor gain, NormSpec spec, Tensor out);
void add_norm(Stream& s, Tensor y, Tensor residual, Tensor gain, NormSpec spec, Tensor out);
void gated_norm(Stream& s, Tensor x, Tensor gate, Tensor gain, float eps, Gate act, Tensor out);

}  // namespace rondo::cuda
