// Shifts: a window's bias and penalties as a list of tokens, each once, for a GPU (draw_rows.h). The list grows with
// the window's drafts, in order: a row's part of it is what was there after the drafts before it, so whether it fits is
// of the row's own tokens, however many of them are drafts.
#pragma once

#include <cstdint>
#include <span>

#include "ops/sample/draw.h"
#include "ops/sample/draw_rows.h"

namespace rondo {

class Shifts {
 public:
  // Room of one window: a list that is longer is not made.
  static constexpr int kMost = 4096;

  // ids as in draw_draft. places: a number for each logit, all 0, and again when the list is gone.
  Shifts(const DrawSettings& settings, std::span<const std::int32_t> generated, std::span<const std::int32_t> ids,
         std::span<Shift> room, std::span<std::int32_t> places);
  ~Shifts();
  Shifts(const Shifts&) = delete;
  Shifts& operator=(const Shifts&) = delete;

  void add_draft(std::int32_t id);
  int size() const { return size_; }
  // Does the list say all of it? Not when the room is full, a token has two biases, or drafts are too many to be told.
  bool fits() const { return fits_; }
  // The row after the drafts so far: its part of a list that begins at `first`.
  void tell(DrawKey& key, int first) const;

 private:
  Shift* find_or_add(std::int32_t id);

  const DrawSettings& settings_;
  std::span<const std::int32_t> ids_;
  std::span<Shift> room_;
  std::span<std::int32_t> places_;  // [logits] 1 + where in the list the token is
  int size_ = 0, num_drafts_ = 0;
  bool fits_ = true;
};

}  // namespace rondo
