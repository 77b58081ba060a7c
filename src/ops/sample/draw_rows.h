// Drawing for whole rows of logits where they lie, on a GPU, target and head alike. Bias, penalties and mask shape a
// row as draw.h says, to the bit. Rows from which nothing is left out are drawn; for rows with a top_k the likeliest
// tokens are found, among which the host draws (draw_among); and what logprobs need is told. Small downloads bring the
// results.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "ops/sample/candidate.h"
#include "tensor/tensor.h"

namespace rondo {

// What bias and penalties add to one token's logit in the rows of a window (shifts.h lists them).
struct Shift {
  std::int32_t at;        // the logit's index
  std::int32_t times;     // the token was generated before the window's drafts
  float bias;             // -0 for none: a sum with it is the other number, to the bit
  std::uint32_t drafted;  // bit d: draft d of the window is the token
};
constexpr int kMostDrafted = 32;

// A row's settings and key, on the device. by_host: the host draws this row, and what is drawn here means nothing.
struct DrawKey {
  float temperature;
  std::int64_t position;
  std::uint64_t seed;
  int likely;                           // so many of the likeliest are wanted, at most kMostLikely
  int told = -1;                        // for logprobs: so many of the likeliest of the raw row; -1: it does not tell
  int mask = -1;                        // which of RowShaping's; -1: all tokens are allowed
  int first_shift = 0, num_shifts = 0;  // of RowShaping's; none for a row that tells
  int num_drafts = 0;                   // of the window, before the row
  float first_penalty = 0;              // added for the first time that a token was generated or drafted,
  float next_penalty = 0;               // and for each time after it
  bool by_host = false;
};
// On the device.
struct RowShaping {
  const Shift* shifts = nullptr;
  const std::uint32_t* masks = nullptr;  // [masks, mask_words(vocab)] a bit a token, lowest first
};
constexpr std::int64_t mask_words(std::int64_t vocab) { return (vocab + 31) / 32; }

constexpr int kMostLikely = 128, kMostFound = 2 * kMostLikely;
// At least the `likely` highest logits of a row, ties included, in no order; ids: indices into it; -infinity is none of
// them, so there may be fewer. None when that would be more than kMostFound.
struct LikelyRow {
  std::int32_t num_found;
  Candidate found[kMostFound];
};
struct DrawnRow {
  std::int32_t token;
  float probability;  // among all, at the temperature (at 1 where that is 0)
};
// Of the raw logits.
struct ToldRow {
  double log_total;   // logarithm of the sum of all exponentials
  float drawn_logit;  // of DrawnRow::token
  LikelyRow likeliest;
};

std::size_t draw_room_bytes(int rows);

// Adds each row's shifts to its logits: once for all that follows. ids: the token each logit stands for, i32 on the
// device; null = its index, as it must be for a row with a mask. keys, drawn: [rows] on the device, the latter's tensor
// U8. room: draw_room_bytes(rows).
void draw_rows(Stream& s, Tensor logits, const DrawKey* keys, const std::int32_t* ids, RowShaping shaping, Tensor room,
               Tensor drawn);

// After draw_rows, of the rows whose key wants any. likely: [rows] LikelyRow on the device, U8.
void find_likely_rows(Stream& s, Tensor logits, const DrawKey* keys, RowShaping shaping, Tensor likely);

// After draw_rows with ids null, of the rows whose key tells. drawn: what it drew. told: [rows] ToldRow on the device,
// U8.
void tell_rows(Stream& s, Tensor logits, const DrawKey* keys, Tensor drawn, Tensor told);

}  // namespace rondo
