#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace rondo {

namespace {

constexpr int kMostPassedBy = 32;  // requests that overtake one whose blocks are not there
constexpr int kMostDeferrals = 4;  // leaders that a request waits for, one after the other
constexpr int kOldestShare = 4;    // the sequence that has waited longest gets one row in so many, at least
constexpr int kMostSteps = 16;     // states on the way through a prompt
constexpr int kBranchTokens = 64;  // a state where prompts part is worth an extra cut when it saves this much

}  // namespace

Scheduler::Scheduler(const ModelFacts& facts, const Tokenizer* tokenizer, SchedulerOptions options)
    : facts_(facts),
      tokenizer_(tokenizer),
      options_(options),
      blocks_(facts.num_blocks),
      cache_(facts.num_states, facts.block_tokens, facts.context_tokens, blocks_) {
  for (int slot = facts.max_streams - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  const auto streams = static_cast<std::size_t>(facts.max_streams);
  plan_.slices.reserve(streams);
  plan_.windows.reserve(streams);
  filling_.reserve(streams);
}

void Scheduler::enqueue(Submission submission) {
  waiting_.push_back({.submission = std::move(submission), .leader = {}});
  reconsider_ = true;
}

int Scheduler::blocks_for(const Request& request) const {
  const int window = static_cast<int>(request.prompt_ids.size()) + request.max_tokens;
  return (window + facts_.block_tokens - 1) / facts_.block_tokens;
}

int Scheduler::most_drafts(const Request& request) const {
  return facts_.has_head ? std::clamp(request.max_draft_depth, 0, facts_.max_drafts) : 0;
}

int Scheduler::num_filling() const {
  return static_cast<int>(std::ranges::count_if(running_, [](const auto& sequence) { return sequence->is_filling(); }));
}

bool Scheduler::anyone_decodes() const {
  return std::ranges::any_of(running_, [](const auto& sequence) { return !sequence->is_filling(); });
}

double Scheduler::mean_fill_context() const {
  double total = 0;
  int count = 0;
  for (const auto& sequence : running_) {
    if (!sequence->is_filling()) continue;
    total += sequence->next_pos();
    ++count;
  }
  return count == 0 ? 0 : total / count;
}

std::optional<Scheduler::Admitted> Scheduler::admit_next(Clock::Time now) {
  if (!reconsider_) return std::nullopt;
  for (std::size_t i = 0; i < waiting_.size() && !free_slots_.empty(); ++i) {
    Admitted admitted{};
    const Verdict verdict = consider(waiting_[i], now, admitted);
    if (verdict == Verdict::Admitted) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      for (std::size_t before = 0; before < i; ++before) {
        if (waiting_[before].meet_tokens == 0) ++waiting_[before].passed_by;
      }
      return admitted;
    }
    if (verdict == Verdict::NoBlocks && waiting_[i].passed_by >= kMostPassedBy) break;
  }
  reconsider_ = false;
  return std::nullopt;
}

Scheduler::Verdict Scheduler::consider(Waiting& waiting, Clock::Time now, Admitted& admitted) {
  const Request& request = waiting.submission.request;
  std::optional<PrefixCache::Hit> hit;
  const bool caches = this->caches() && request.use_prefix_cache;
  if (caches) hit = cache_.find(request.prompt_ids, most_drafts(request) > 0);
  if (caches && waits_for_leader(waiting, hit ? hit->tokens : 0)) return Verdict::WaitsForLeader;
  std::vector<std::int32_t> blocks;
  if (!take_blocks(request, hit, blocks)) return Verdict::NoBlocks;
  const int slot = free_slots_.back();
  free_slots_.pop_back();
  running_.push_back(std::make_unique<Sequence>(std::move(waiting.submission), tokenizer_, slot, std::move(blocks),
                                                facts_.has_head ? facts_.max_drafts : 0, facts_.vocab_size, now));
  Sequence& sequence = *running_.back();
  if (hit) {
    cache_.use(hit->entry);
    sequence.resume_at(hit->tokens, hit->entry);
  }
  if (caches) plan_saves(sequence, hit ? hit->tokens : 0);
  admitted = {&sequence, hit};
  return Verdict::Admitted;
}

// Whether a sequence that is being filled is on its way to a state that saves this one at least least_shared_tokens.
bool Scheduler::waits_for_leader(Waiting& waiting, int found_tokens) {
  const auto is_on_its_way = [&](const Sequence& leader, int meet) {
    return leader.is_filling() && !leader.is_finished() && leader.next_pos() < meet;
  };
  if (waiting.meet_tokens > 0) {
    const Sequence* leader = find(waiting.leader);
    const bool is_there = found_tokens >= waiting.meet_tokens;  // saved by another one meanwhile
    if (!is_there && leader != nullptr && is_on_its_way(*leader, waiting.meet_tokens)) return true;
    waiting.meet_tokens = 0;
  }
  if (waiting.times_deferred >= kMostDeferrals) return false;
  const Request& request = waiting.submission.request;
  Sequence* best = nullptr;
  int best_tokens = found_tokens + options_.least_shared_tokens - 1;
  for (const auto& leader : running_) {
    if (!leader->is_filling() || !leader->uses_cache() || (most_drafts(request) > 0 && !leader->drafts())) continue;
    const auto ours = std::span(request.prompt_ids).first(request.prompt_ids.size() - 1);
    const auto theirs = leader->prompt().first(leader->prompt().size() - 1);
    const auto parts = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end());
    const int meet = on_grid(static_cast<int>(parts.first - ours.begin()));
    if (meet <= best_tokens || !is_on_its_way(*leader, meet)) continue;
    best = leader.get();
    best_tokens = meet;
  }
  if (best == nullptr) return false;
  best->save_at({best_tokens, PrefixKind::Branch});
  waiting.leader = best->id();
  waiting.meet_tokens = best_tokens;
  ++waiting.times_deferred;
  return true;
}

// The blocks of its whole window, the hit's shared ones first. Without the hit when there is no room for both it and
// the state it comes from.
bool Scheduler::take_blocks(const Request& request, std::optional<PrefixCache::Hit>& hit,
                            std::vector<std::int32_t>& blocks) {
  const int needed = blocks_for(request);
  blocks.reserve(static_cast<std::size_t>(needed));
  if (hit) {
    const auto shared = hit->blocks.first(static_cast<std::size_t>(hit->shared_tokens / facts_.block_tokens));
    blocks_.share(shared);
    const int more = needed - static_cast<int>(shared.size());
    if (cache_.make_room(more, hit->entry)) {
      blocks.assign(shared.begin(), shared.end());
      CHECK(blocks_.acquire(more, blocks));
      return true;
    }
    blocks_.release(shared);
    hit.reset();
  }
  return cache_.make_room(needed, {}) && blocks_.acquire(needed, blocks);
}

// Where its fill stops for a state: where it parts from what is known, on the way, and near its end.
void Scheduler::plan_saves(Sequence& sequence, int found_tokens) {
  const int last = static_cast<int>(sequence.prompt().size()) - 1;
  const int least = found_tokens + options_.least_shared_tokens;
  const int common = std::min(last, cache_.common_tokens(sequence.prompt()));
  const int parts = on_grid(common);
  if (parts >= least && (common == last || parts >= found_tokens + kBranchTokens))
    sequence.save_at({parts, PrefixKind::Branch});
  const int near_end = on_grid(last / facts_.block_tokens * facts_.block_tokens);
  if (near_end >= least) sequence.save_at({near_end, PrefixKind::Prompt});
  const int apart = std::max(options_.step_tokens, near_end / kMostSteps);
  const int step = (apart + facts_.grid - 1) / facts_.grid * facts_.grid;
  for (int at = (found_tokens / step + 1) * step; at < near_end; at += step) sequence.save_at({at, PrefixKind::Step});
}

RoundPlan& Scheduler::plan_round(int prompt_rows) {
  plan_.clear();
  int window_rows = facts_.max_rows;
  const bool decodes = anyone_decodes();
  plan_decoding(window_rows);
  plan_filling(decodes ? prompt_rows : 2 * facts_.max_rows, window_rows);
  auto at = running_.begin();
  for (std::size_t left = running_.size(); left > 0; --left) {  // who is served goes to the end
    const auto each = at++;
    const auto is_it = [&](const RoundPlan::Rows& rows) { return rows.sequence == each->get(); };
    if (std::ranges::any_of(plan_.windows, is_it) || std::ranges::any_of(plan_.slices, is_it))
      running_.splice(running_.end(), running_, each);
  }
  return plan_;
}

void Scheduler::plan_decoding(int& window_rows) {
  for (const auto& sequence : running_) {
    const int pending = static_cast<int>(sequence->pending_rows().size());
    if (sequence->is_filling() || sequence->is_finished() || pending > window_rows) continue;
    plan_.windows.push_back({sequence.get(), pending, 0});
    window_rows -= pending;
  }
}

void Scheduler::plan_filling(int prompt_rows, int window_rows) {
  filling_.clear();
  for (const auto& sequence : running_) {
    if (sequence->is_filling() && !sequence->is_finished()) filling_.push_back(sequence.get());
  }
  if (filling_.empty()) return;
  Sequence* oldest = filling_.front();
  std::ranges::sort(filling_, {},
                    [](const Sequence* each) { return std::pair(each->pending_rows().size(), each->id().value); });
  int slice_rows = facts_.max_rows;
  int left = prompt_rows;
  if (filling_.front() != oldest) {
    int others = 0;
    for (const Sequence* each : filling_) others += each == oldest ? 0 : static_cast<int>(each->pending_rows().size());
    left -= grant(*oldest, std::max({1, left / kOldestShare, left - others}), slice_rows, window_rows);
  }
  for (Sequence* each : filling_) {
    if (left <= 0) break;
    if (each == oldest && filling_.front() != oldest) continue;
    left -= grant(*each, left, slice_rows, window_rows);
  }
}

// Where a slice of at most `rows` rows ends: before the prompt's last row, at the next state, on the grid if there is
// one.
int Scheduler::slice_end(const Sequence& sequence, int rows) const {
  const int begin = sequence.next_pos(), last = static_cast<int>(sequence.prompt().size()) - 1;
  int end = std::min(begin + rows, last);
  if (const auto save = sequence.next_save()) end = std::min(end, save->tokens);
  if (facts_.grid == 1) return end;
  const int whole = on_grid(last);
  if (begin >= whole) return end;                                       // in the last cell, which is not whole
  return std::min(whole, std::max(on_grid(end), begin + facts_.grid));  // a cell is not cut, whatever it takes
}

// As many of the sequence's pending rows as fit: a slice, then, if that leaves few enough, a window. Returns their
// number.
int Scheduler::grant(Sequence& sequence, int rows, int& slice_rows, int& window_rows) {
  const int pending = static_cast<int>(sequence.pending_rows().size());
  const int most_certain = std::min(window_rows, facts_.head_buffer_rows);
  const auto save = sequence.next_save();
  const int last = static_cast<int>(sequence.prompt().size()) - 1;
  const bool whole_cells = facts_.grid > 1 && sequence.next_pos() < on_grid(last);
  int sliced = 0;
  if (save || whole_cells || pending > std::min(most_certain, rows)) {
    // What a window can take after it need not be in the slice, but for rows that come before a state.
    int most = std::min(rows, slice_rows);
    if (!save && !whole_cells && pending <= most) most = std::max(1, pending - std::max(1, most_certain));
    sliced = std::max(0, slice_end(sequence, most) - sequence.next_pos());
    if (sliced > slice_rows) return 0;
    if (sliced > 0) plan_.slices.push_back({&sequence, sliced, 0});
    slice_rows -= sliced;
  }
  const int left = pending - sliced;
  const int at = sequence.next_pos() + sliced;
  const bool stops_inside = save && save->tokens > at;
  const bool cells_inside = facts_.grid > 1 && at < on_grid(last);
  const bool another_save = sliced > 0 && save && save->tokens == at && sequence.saves_after(at);
  if (left > std::min(most_certain, rows - sliced) || stops_inside || cells_inside || another_save) return sliced;
  plan_.windows.push_back({&sequence, left, 0});
  window_rows -= left;
  return sliced + left;
}

Sequence* Scheduler::find(RequestId id) const {
  const auto at = std::ranges::find_if(running_, [&](const auto& each) { return each->id() == id; });
  return at == running_.end() ? nullptr : at->get();
}

void Scheduler::free_place(Sequence& sequence) {
  const auto at = std::ranges::lower_bound(free_slots_, sequence.slot(), std::greater());
  free_slots_.insert(at, sequence.slot());
  blocks_.release(sequence.blocks());
  reconsider_ = true;
}

void Scheduler::retire(Sequence* sequence) {
  const auto at =
      std::find_if(running_.begin(), running_.end(), [&](const auto& each) { return each.get() == sequence; });
  CHECK(at != running_.end());
  free_place(*sequence);
  running_.erase(at);
  ++num_ended_;
}

bool Scheduler::cancel_waiting(RequestId id) {
  const auto at = std::ranges::find_if(waiting_, [&](const Waiting& each) { return each.submission.id == id; });
  if (at == waiting_.end()) return false;
  at->submission.fail({ErrorCode::Cancelled, "the request was cancelled"});
  waiting_.erase(at);
  ++num_ended_;
  reconsider_ = true;
  return true;
}

void Scheduler::fail_expired(Clock::Time now) {
  const auto error = [](double deadline_ms, const char* where) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("its deadline of {:.0f} ms passed while the request was {}", deadline_ms, where)};
  };
  const auto has_expired = [](double waited_ms, double deadline_ms) {
    return deadline_ms > 0 && waited_ms > deadline_ms;
  };
  const std::size_t ended = std::erase_if(waiting_, [&](const Waiting& each) {
    const double deadline_ms = each.submission.request.deadline_ms;
    if (!has_expired(ms_between(each.submission.arrived, now), deadline_ms)) return false;
    each.submission.fail(error(deadline_ms, "waiting"));
    return true;
  });
  num_ended_ += ended;
  if (ended > 0) reconsider_ = true;
  for (const auto& sequence : running_) {
    if (has_expired(sequence->waited_ms(now), sequence->deadline_ms()))
      sequence->break_off(error(sequence->deadline_ms(), "running"));
  }
}

void Scheduler::fail_all(const Error& error) {
  for (const Waiting& each : waiting_) each.submission.fail(error);
  for (const auto& sequence : running_) {
    sequence->fail(error);
    free_place(*sequence);
  }
  num_ended_ += waiting_.size() + running_.size();
  waiting_.clear();
  running_.clear();
}

}  // namespace rondo
