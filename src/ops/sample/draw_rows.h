// Drawing for whole rows of logits where they lie, on a GPU: rows that draw straight from their logits (draw.h without
// bias, penalties, mask, top_k, top_p and min_p), target and head alike; and for rows with a top_k the likeliest
// tokens, among which the host draws (draw_among). One small download brings the results.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "ops/sample/candidate.h"
#include "tensor/tensor.h"

namespace rondo {

// A row's settings and key, on the device.
struct DrawKey {
  float temperature;
  std::int64_t position;
  std::uint64_t seed;
  int likely;  // so many of the likeliest are wanted, at most kMostLikely
};
constexpr int kMostLikely = 128, kMostFound = 2 * kMostLikely;
// At least the `likely` highest logits of a row, ties included, in no order; ids: indices into it. None when that would
// be more than kMostFound.
struct LikelyRow {
  std::int32_t num_found;
  Candidate found[kMostFound];
};
struct DrawnRow {
  std::int32_t token;
  float probability;  // among all, at the temperature (at 1 where that is 0)
};

std::size_t draw_room_bytes(int rows);

// ids: the token each logit stands for, i32 on the device; null = its index. keys, drawn: [rows] on the device, the
// latter's tensor U8. room: draw_room_bytes(rows).
void draw_rows(Stream& s, Tensor logits, const DrawKey* keys, const std::int32_t* ids, Tensor room, Tensor drawn);

// Of the rows whose key wants any. likely: [rows] LikelyRow on the device, U8.
void find_likely_rows(Stream& s, Tensor logits, const DrawKey* keys, Tensor likely);

}  // namespace rondo
