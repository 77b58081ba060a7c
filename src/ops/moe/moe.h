// Mixture of experts (spec 2.6): the router's choice, and the experts' sum.
//
//   rho = softmax(router logits); (e_1 .. e_k) = the k largest, ties to the lower expert; w_i = rho_{e_i} / sum_j
//   rho_{e_j} out = sum_i w_i down_{e_i}( silu(gate_{e_i} x) * up_{e_i} x )  +  sigmoid(shared_gate x) * shared(x)
//
// Rows are gathered by expert, so an expert's weights are read once for all rows that chose it; each row adds its own
// experts up in the order of its own choice (best first). A row's bits depend on that row alone. Activations f32,
// weights in any format.
#pragma once

#include <span>

#include "device/stream.h"
#include "ops/norm/norm.h"
#include "tensor/arena.h"
#include "tensor/weight.h"

namespace rondo {

struct GatedMlpWeights {
  Weight gate, up;  // [size, hidden]
  Weight down;      // [hidden, size]
};

// down(silu(gate x) * up x). x, out: [rows, hidden].
void gated_mlp(Stream& s, const GatedMlpWeights& w, Tensor x, Scratch scratch, Tensor out);

struct MoeWeights {
  Weight router;  // [experts, hidden]
  std::span<const GatedMlpWeights> experts;
  GatedMlpWeights shared;
  Weight shared_gate;  // [1, hidden]
  int experts_per_token;
  bool normalise_topk;
  // f32 [3, experts], of gate, up and down, where a GPU's code reads it; none where all experts have their first one's.
  // A CPU reads each weight's own.
  Tensor tensor_scales = {};
};

// All of a mixture but its sum over a row's experts, which whoever reads it makes on the way:
//   out[r] = sum_i weight[r, i] experts[place[r, i]]  +  sigmoid(shared_gate[r]) shared[r]
struct MixtureSum {
  Tensor experts;      // [rows * k, hidden] outputs in the experts' order
  Tensor place;        // i32 [rows, k] where a row's i-th expert left its output
  Tensor weight;       // [rows, k]
  Tensor shared;       // [rows, hidden]
  Tensor shared_gate;  // [rows, 1]
};
MixtureSum take_mixture_sum(Scratch& scratch, std::int64_t rows, std::int64_t hidden, std::int64_t k);
void mixture_of_experts(Stream& s, const MoeWeights& w, Tensor x, Scratch scratch, const MixtureSum& sum);
void add_up(Stream& s, const MixtureSum& sum, Tensor out);
// add_up to y, then add_norm (ops/norm): to the bit those two, but y may be left as it was.
void add_up_norm(Stream& s, const MixtureSum& sum, Tensor y, Tensor residual, Tensor gain, NormSpec spec, Tensor out);

// The router alone: logits [rows, experts] -> chosen i32 [rows, k], weight f32 [rows, k].
void route(Stream& s, Tensor logits, bool normalise_topk, Tensor chosen, Tensor weight);

}  // namespace rondo
