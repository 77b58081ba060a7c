// Hyper-connections (spec 2.7): the elementwise parts of reading a block's input from S residual streams and putting
// its output back. N is the grouped norm of the streams; omega and inject come from linears between the two.
//
//   hyper_read:    x[d] = (1/S) sum_s sigmoid(omega[s, d]) N[s, d]
//   hyper_inject:  R[s, d] += 2 sigmoid(inject[s] / S) y[d]
//
// All f32. N, omega, R: [rows, S * hidden]; x, y: [rows, hidden]; inject: [rows, S].
#pragma once

#include "device/stream.h"
#include "ops/moe/moe.h"
#include "tensor/arena.h"
#include "tensor/weight.h"

namespace rondo {

void hyper_read(Stream& s, Tensor normed, Tensor omega, Tensor x);
// hyper_read with omega = up silu(mix / S), to the bit what silu_scaled (ops/pointwise), linear and it give. mix:
// [rows, rank], which may be overwritten; up: [S * hidden, rank].
void hyper_mix(Stream& s, Tensor normed, Tensor mix, const Weight& up, Scratch scratch, Tensor x);
void hyper_inject(Stream& s, Tensor y, Tensor inject, Tensor streams);

// hyper_inject, then normed = rms_norm(streams) with each stream a group of its own: to the bit those two, one after
// the other. gain, normed: as streams, one row and all of them.
void hyper_inject_norm(Stream& s, Tensor y, Tensor inject, Tensor streams, Tensor gain, float eps, Tensor normed);
// The same of a mixture's sum (ops/moe): to the bit add_up to y and then that, but y may be left as it was.
void hyper_inject_norm(Stream& s, const MixtureSum& sum, Tensor y, Tensor inject, Tensor streams, Tensor gain,
                       float eps, Tensor normed);

}  // namespace rondo
