// Exact states of NetworkModel, for a prefix cache: what a slot holds after its last committed row, kept and brought
// back.
//
// By copy: recurrent memories, convolution windows, the ids an n-gram can reach, and the hidden states that wait for
// the head. By reference: KV blocks whose rows are final. The head's KV ends a row earlier than the target's, as its
// last row reads a token that a state does not have: that row's hidden state is kept, so that whoever goes on from
// here, with that token or another, has the head read it again.

#include <algorithm>

#include "model/network_model.h"

namespace rondo {

// Logged rows that were kept go into the state now, by the operations the next span would have used.
void NetworkModel::settle(int slot_index) {
  Slot& of = slot(slot_index);
  if (of.fold == 0) return;
  const RowSpan span{.begin = 0,
                     .count = 0,
                     .certain = 0,
                     .start_pos = of.next_pos,
                     .slot = slot_index,
                     .fold = of.fold,
                     .first_pos = 0,
                     .blocks = nullptr};
  reservation_->begin_staging(stream_);
  const Batch batch = reservation_->stage(stream_, 0, {&span, 1});
  reservation_->network().settle(stream_, batch.spans, reservation_->scratch());
  of.fold = 0;
}

bool NetworkModel::head_follows(const Slot& of) const {
  return of.head_next + static_cast<int>(of.waiting_ids.size()) + (of.has_last ? 1 : 0) == of.next_pos;
}

// copy(slot's part, state's part) for each tensor of recurrent state.
template <class Copy>
void NetworkModel::for_saved_rows(int slot_index, int state_index, Copy copy) const {
  std::span<float> rest = reservation_->state(state_index);
  for (const Tensor& each : reservation_->past().slots) {
    const auto width = static_cast<std::size_t>(each.width());
    copy(each.f32() + static_cast<std::size_t>(slot_index) * width, rest.data(), width * sizeof(float));
    rest = rest.subspan(width);
  }
}

float* NetworkModel::head_rows_of(int state_index) const {
  const Tensor waiting = reservation_->workspace().waiting;
  return reservation_->state(state_index).last(static_cast<std::size_t>(waiting.width())).data();
}

SavedState NetworkModel::save(int slot_index, int state_index) {
  CHECK(slot_index >= 0 && slot_index < facts_.max_streams && state_index >= 0 && state_index < facts_.num_states);
  const Slot& of = slot(slot_index);
  CHECK(of.open_rows == 0 && of.next_pos > 0);  // a window that awaits its commit has no state yet
  settle(slot_index);
  for_saved_rows(slot_index, state_index,
                 [&](float* from, float* to, std::size_t bytes) { stream_.copy(to, from, bytes); });
  State& to = states_[static_cast<std::size_t>(state_index)];
  to.recent = of.recent;
  to.saved = {.tokens = of.next_pos,
              .shared_tokens = of.next_pos / kKvBlockTokens * kKvBlockTokens,
              .has_head = facts_.has_head && head_follows(of)};
  to.waiting_ids.clear();
  if (to.saved.has_head) {
    save_head(slot_index, to, head_rows_of(state_index));
    to.saved.shared_tokens = std::min(to.head_next, of.next_pos) / kKvBlockTokens * kKvBlockTokens;
  }
  return to.saved;
}

// The rows that wait, the last of them without its next token.
void NetworkModel::save_head(int slot_index, State& to, float* rows) {
  const Slot& of = slots_[static_cast<std::size_t>(slot_index)];
  const auto width = reservation_->workspace().waiting.shape[2];
  const auto known = static_cast<int>(of.waiting_ids.size());
  const bool all_absorbed = known == 0 && !of.has_last;
  const int before_last = of.has_last ? known : std::max(0, known - 1);
  to.waiting_ids.assign(of.waiting_ids.begin(), of.waiting_ids.begin() + before_last);
  to.head_first = of.head_first;
  to.head_next = all_absorbed ? of.head_next - 1 : of.head_next;
  for (int row = 0; row <= before_last; ++row)
    copy_row(waiting_row(slot_index, all_absorbed ? of.absorbed_last : row), rows + row * width);
  run_copies();
}

void NetworkModel::restore_head(int slot_index, const State& from, const float* rows) {
  Slot& to = slot(slot_index);
  const auto width = static_cast<std::size_t>(reservation_->workspace().waiting.shape[2]);
  to.waiting_ids = from.waiting_ids;
  to.has_last = true;
  to.head_first = from.head_first;
  to.head_next = from.head_next;
  for (std::size_t row = 0; row <= from.waiting_ids.size(); ++row)
    copy_row(rows + row * width, waiting_row(slot_index, static_cast<int>(row)));
  run_copies();
}

void NetworkModel::restore(int slot_index, int state_index, std::span<const std::int32_t> from,
                           std::span<const std::int32_t> to) {
  CHECK(slot_index >= 0 && slot_index < facts_.max_streams && state_index >= 0 && state_index < facts_.num_states);
  const State& state = states_[static_cast<std::size_t>(state_index)];
  Slot& into = slot(slot_index);
  CHECK(into.next_pos == 0 && into.open_rows == 0 && state.saved.tokens > 0);
  const int blocks = (state.saved.tokens + kKvBlockTokens - 1) / kKvBlockTokens;
  CHECK(static_cast<int>(std::min(from.size(), to.size())) >= blocks);
  for (int i = 0; i < blocks; ++i) {
    const std::int32_t source = from[static_cast<std::size_t>(i)], target = to[static_cast<std::size_t>(i)];
    CHECK((source == target) == (i < state.saved.shared_tokens / kKvBlockTokens));
    if (source == target) continue;
    for (const Tensor& each : reservation_->past().blocks) {
      const std::size_t bytes = static_cast<std::size_t>(each.width()) * size_bytes(each.dtype);
      auto* block = static_cast<std::byte*>(const_cast<void*>(each.data));
      stream_.copy(block + static_cast<std::size_t>(target) * bytes, block + static_cast<std::size_t>(source) * bytes,
                   bytes);
    }
  }
  for_saved_rows(slot_index, state_index,
                 [&](float* slot_part, float* kept, std::size_t bytes) { stream_.copy(slot_part, kept, bytes); });
  into.next_pos = state.saved.tokens;
  into.recent = state.recent;
  if (!state.saved.has_head) return;
  restore_head(slot_index, state, head_rows_of(state_index));
}

void NetworkModel::forget(int state_index) { states_[static_cast<std::size_t>(state_index)].saved = {}; }

}  // namespace rondo
