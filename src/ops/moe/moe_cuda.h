// The CUDA code of ops/moe/moe.h. The experts' weights lie evenly spaced, as the loader places them.
#pragma once

#include "ops/moe/moe.h"

namespace rondo::cuda {

void route(Stream& s, Tensor logits, bool normalise_topk, Tensor chosen, Tensor weight);
void mixture_of_experts(Stream& s, const MoeWeights& w, Tensor x, Scratch scratch,
                        const MixtureSum& sum);  // dry: scratch alone
void add_up(Stream& s, const MixtureSum& sum, Tensor out);
void add_up_norm(Stream& s, const MixtureSum& sum, Tensor residual, Tensor gain, NormSpec spec, Tensor out);

}  // namespace rondo::cuda
