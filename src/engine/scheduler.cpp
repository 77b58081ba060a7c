#include "engine/scheduler.h"

#include <algorithm>
#include <functional>

namespace rondo {

Scheduler::Scheduler(const ModelFacts& facts, const Tokenizer* tokenizer)
    : facts_(facts), tokenizer_(tokenizer), blocks_(facts.num_blocks) {
  for (int slot = facts.max_streams - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  plan_.slices.reserve(static_cast<std::size_t>(facts.max_streams));
  plan_.windows.reserve(static_cast<std::size_t>(facts.max_streams));
}

int Scheduler::blocks_for(const Request& request) const {
  const int window = static_cast<int>(request.prompt_ids.size()) + request.max_tokens;
  return (window + facts_.block_tokens - 1) / facts_.block_tokens;
}

int Scheduler::num_filling() const {
  return static_cast<int>(
      std::ranges::count_if(running_, [](const auto& sequence) { return sequence->generated().empty(); }));
}

void Scheduler::admit(Clock::Time now) {
  while (!waiting_.empty() && !free_slots_.empty()) {
    std::vector<std::int32_t> blocks;
    const int needed = blocks_for(waiting_.front().request);
    blocks.reserve(static_cast<std::size_t>(needed));
    if (!blocks_.acquire(needed, blocks)) return;
    const int slot = free_slots_.back();
    free_slots_.pop_back();
    running_.push_back(std::make_unique<Sequence>(std::move(waiting_.front()), tokenizer_, slot, std::move(blocks),
                                                  facts_.has_head ? facts_.max_drafts : 0, facts_.vocab_size, now));
    waiting_.pop_front();
  }
}

RoundPlan& Scheduler::plan_round() {
  plan_.clear();
  int window_rows = facts_.max_rows, slice_rows = facts_.max_rows;
  auto at = running_.begin();
  for (std::size_t left = running_.size(); left > 0; --left) {
    const auto served = at++;
    Sequence* sequence = served->get();
    const int pending = static_cast<int>(sequence->pending_rows().size());
    if (pending <= std::min(window_rows, facts_.head_buffer_rows)) {
      plan_.windows.push_back({sequence, pending, 0});
      window_rows -= pending;
    } else if (const int rows = std::min(pending - 1, slice_rows); rows > 0) {
      plan_.slices.push_back({sequence, rows, 0});
      slice_rows -= rows;
    } else {
      continue;  // not served: it keeps its place
    }
    running_.splice(running_.end(), running_, served);
  }
  return plan_;
}

void Scheduler::free_place(Sequence& sequence) {
  const auto at = std::ranges::lower_bound(free_slots_, sequence.slot(), std::greater());
  free_slots_.insert(at, sequence.slot());
  blocks_.release(sequence.blocks());
}

std::optional<int> Scheduler::retire(Sequence* sequence) {
  const auto at =
      std::find_if(running_.begin(), running_.end(), [&](const auto& each) { return each.get() == sequence; });
  CHECK(at != running_.end());
  const int slot = sequence->slot();
  free_place(*sequence);
  running_.erase(at);
  ++num_ended_;
  return slot;
}

std::optional<int> Scheduler::cancel(RequestId id) {
  const Error cancelled{ErrorCode::Cancelled, "the request was cancelled"};
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (!(it->id == id)) continue;
    it->sink->on_failed(cancelled);
    waiting_.erase(it);
    ++num_ended_;
    return std::nullopt;
  }
  for (const auto& sequence : running_) {
    if (!(sequence->id() == id)) continue;
    sequence->fail(cancelled);
    return retire(sequence.get());
  }
  return std::nullopt;
}

void Scheduler::fail_all(const Error& error) {
  for (const Submission& submission : waiting_) submission.sink->on_failed(error);
  for (const auto& sequence : running_) {
    sequence->fail(error);
    free_place(*sequence);
  }
  num_ended_ += waiting_.size() + running_.size();
  waiting_.clear();
  running_.clear();
}

}  // namespace rondo
