#include "ops/sample/shifts.h"

#include "base/check.h"

namespace rondo {

Shifts::Shifts(const DrawSettings& settings, std::span<const std::int32_t> generated, std::span<const std::int32_t> ids,
               std::span<Shift> room, std::span<std::int32_t> places)
    : settings_(settings), ids_(ids), room_(room), places_(places) {
  for (const LogitBias& each : settings.bias) {
    const int before = size_;
    Shift* shift = find_or_add(each.id);
    if (shift == nullptr) continue;
    fits_ = fits_ && size_ > before;  // two sums would be rounded twice
    shift->bias = each.bias;
  }
  if (!settings.has_penalties()) return;
  for (const std::int32_t id : generated) {
    if (Shift* shift = find_or_add(id)) ++shift->times;
  }
}

Shifts::~Shifts() {
  for (const Shift& each : room_.first(static_cast<std::size_t>(size_))) places_[static_cast<std::size_t>(each.at)] = 0;
}

void Shifts::add_draft(std::int32_t id) {
  const int draft = num_drafts_++;
  if (!settings_.has_penalties()) return;
  if (draft >= kMostDrafted) {
    fits_ = false;
  } else if (Shift* shift = find_or_add(id)) {
    shift->drafted |= 1u << draft;
  }
}

void Shifts::tell(DrawKey& key, int first) const {
  CHECK(fits_);
  key.first_shift = first;
  key.num_shifts = size_;
  key.num_drafts = num_drafts_;
  key.first_penalty = -settings_.frequency_penalty - settings_.presence_penalty;
  key.next_penalty = -settings_.frequency_penalty;
}

// Null where the token has no logit, or the list no room.
Shift* Shifts::find_or_add(std::int32_t id) {
  const std::size_t at = place_of(id, ids_, places_.size());
  if (at == places_.size()) return nullptr;
  std::int32_t& place = places_[at];
  if (place == 0) {
    if (static_cast<std::size_t>(size_) == room_.size()) {
      fits_ = false;
      return nullptr;
    }
    room_[static_cast<std::size_t>(size_)] = {
        .at = static_cast<std::int32_t>(at), .times = 0, .bias = -0.0F, .drafted = 0};
    place = ++size_;
  }
  return &room_[static_cast<std::size_t>(place - 1)];
}

}  // namespace rondo
