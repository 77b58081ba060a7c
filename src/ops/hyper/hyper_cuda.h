// The CUDA code of ops/hyper/hyper.h.
#pragma once

#include "ops/hyper/hyper.h"

namespace rondo::cuda {

void hyper_read(Stream& s, Tensor normed, Tensor omega, Tensor x);
void hyper_mix(Stream& s, Tensor normed, Tensor mix, const Weight& up, float share, Tensor omega, Tensor x);
void hyper_inject(Stream& s, Tensor y, Tensor inject, Tensor streams);
void hyper_inject_norm(Stream& s, Tensor y, Tensor inject, Tensor streams, Tensor gain, float eps, Tensor normed);
void hyper_inject_norm(Stream& s, const MixtureSum& sum, Tensor inject, Tensor streams, Tensor gain, float eps,
                       Tensor normed);

}  // namespace rondo::cuda
