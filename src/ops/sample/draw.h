// Drawing a token from a row of logits (Gumbel-max with keyed noise).
//
//   temperature 0:  the highest logit, ties to the lower id
//   else: over the tokens left by top_k, then top_p of what top_k left (renormalised), then min_p of the most likely
//   token's
//         chance, all at logit / temperature, the highest of  logit / temperature + g(seed, position, id),
//         g = -log(-log(u)), u keyed by (seed, position, id)
//
// So a draw depends on the row's logits, its settings and its key alone: the same wherever the row stands and whoever
// draws beside it, and a draft drawn from the head's logits with the same key meets the same noise.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/tensor.h"

namespace rondo {

struct DrawSettings {
  float temperature = 1;  // 0 = the highest logit
  int top_k = 0;          // 0 = off
  float top_p = 1;        // 1 = off
  float min_p = 0;        // 0 = off
  std::uint64_t seed = 0;
};

struct Candidate {
  float logit;
  std::int32_t id;
};

// logits: [vocab]; position: absolute, of the token being drawn; room: [vocab], scratch.
std::int32_t draw(std::span<const float> logits, const DrawSettings& settings, std::int64_t position,
                  std::span<Candidate> room);

double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t id);

}  // namespace rondo
