// Drawing a token from a row of logits (Gumbel-max with keyed noise).
//
//   logits are shaped first: logit bias, then penalties (presence + frequency * count for each token generated so far),
//   then the mask of allowed tokens; temperature 0:  the highest logit, ties to the lower id else: over the tokens left
//   by top_k, then top_p of what top_k left (renormalised), then min_p of the most likely token's
//         chance, all at logit / temperature, the highest of  logit / temperature + g(seed, position, id),
//         g = -log(-log(u)), u keyed by (seed, position, id)
//
// So a draw depends on the row's logits, its settings, what its own sequence generated, and its key alone: the same
// wherever the row stands and whoever draws beside it. A draft drawn from the head's logits with the same key meets the
// same noise.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/stream.h"
#include "ops/sample/candidate.h"
#include "tensor/tensor.h"

namespace rondo {

struct LogitBias {
  std::int32_t id;
  float bias;
};

struct DrawSettings {
  float temperature = 1;        // 0 = the highest logit
  int top_k = 0;                // 0 = off
  float top_p = 1;              // 1 = off
  float min_p = 0;              // 0 = off
  float presence_penalty = 0;   // taken off a token that was generated at all
  float frequency_penalty = 0;  // taken off once for each time it was
  std::vector<LogitBias> bias = {};
  std::uint64_t seed = 0;

  bool has_penalties() const { return presence_penalty != 0 || frequency_penalty != 0; }
  bool shifts() const { return !bias.empty() || has_penalties(); }
};

// One bit a token, lowest first: the tokens that may be drawn. Empty = all.
using TokenMask = std::span<const std::uint32_t>;
inline bool allows(TokenMask mask, std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  return mask.empty() || (at / 32 < mask.size() && (mask[at / 32] >> (at % 32) & 1u) != 0);
}

// What a draw knows of its row beside the logits.
struct DrawRow {
  const DrawSettings* settings;
  std::int64_t position;                    // absolute, of the token being drawn
  std::span<const std::int32_t> generated;  // tokens generated before it that were there when the round began
  std::span<const std::int32_t> drafted;    // drafts of the same window before it
  TokenMask mask;
  bool is_shifted = false;  // bias and penalties are in the logits already
};

// A draft: the drawn token and its share among those left, at the temperature (at 1 where the temperature is 0).
struct Drawn {
  std::int32_t token;
  float probability;
};

// Scratch of one thread: room for every candidate and every logit, and a bit for each, all clear between draws.
struct DrawRoom {
  std::span<Candidate> candidates;  // [logits.size()]
  std::span<float> shaped;          // [logits.size()]
  std::span<std::uint32_t> seen;    // [logits.size() / 32, rounded up]
};

// No token is left out by top_k, top_p or min_p.
bool draws_from_all(const DrawSettings& settings);

// Where a token's logit stands among `size`; `size` where it has none. ids as in draw_draft.
std::size_t place_of(std::int32_t id, std::span<const std::int32_t> ids, std::size_t size);

std::int32_t draw(Isa isa, std::span<const float> logits, const DrawRow& row, DrawRoom room);

// The head's draw. ids: the token each logit stands for (a draft vocabulary, ascending); empty = its index.
Drawn draw_draft(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row,
                 DrawRoom room);

// How many of the likeliest tokens a draw looks at, when that is all of the shaped row it looks at: its top_k. Else 0.
int num_likely(const DrawSettings& settings);
// The draw of such a row, from at least those: found elsewhere, shaped, in any order.
Drawn draw_among(std::span<Candidate> likeliest, const DrawRow& row);

double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t id);

constexpr int kMaxTopLogprobs = 20;
// log softmax of the raw logits: of the chosen token, and of the likeliest.
struct RowLogprobs {
  float chosen = 0;
  int num_top = 0;
  std::int32_t top_ids[kMaxTopLogprobs];
  float top[kMaxTopLogprobs];
};
void logprobs(std::span<const float> logits, std::int32_t chosen, int num_top, RowLogprobs& out);
// The same from what was found elsewhere: the chosen token's logit, the logarithm of the sum of all exponentials, and
// at least the num_top likeliest tokens, in any order.
void logprobs_of(float chosen_logit, double log_total, std::span<Candidate> likeliest, int num_top, RowLogprobs& out);

}  // namespace rondo
