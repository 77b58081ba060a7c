// RMSNorm over groups of the last axis (spec 2.1, norm A), and the gated norm of the Gated DeltaNet (norm B).
//
//   rms_norm:    out[r, d] = x[r, d] * rsqrt(mean over d's group of x[r, :]^2 + eps) * gain[d]
//   gated_norm:  out[r, h, d] = x[r, h, d] * rsqrt(mean_d(x[r, h, :]^2) + eps) * gain[d] * act(gate[r, h, d])
//
// All f32. gain of rms_norm holds 1 + w already (the checkpoint stores w); gated_norm's is stored plainly. group
// divides the width; group = width is the ordinary norm. x and out may be the same. A row's bits depend on that row
// alone.
#pragma once

#include "device/stream.h"
#include "tensor/tensor.h"

namespace rondo {

struct NormSpec {
  float eps;
  std::int64_t group;  // elements a mean is taken over
};
void rms_norm(Stream& s, Tensor x, Tensor gain, NormSpec spec, Tensor out);

// residual += y; out = rms_norm(residual): to the bit what add (ops/pointwise) and rms_norm give, one after the other.
// y, residual, out: [rows, width]; out may be residual, whose sum is then lost.
void add_norm(Stream& s, Tensor y, Tensor residual, Tensor gain, NormSpec spec, Tensor out);

enum class Gate { Silu, Sigmoid };
// x, gate, out: [rows, heads * head_dim]; gain: [head_dim].
void gated_norm(Stream& s, Tensor x, Tensor gate, Tensor gain, float eps, Gate act, Tensor out);

}  // namespace rondo
