#include "engine/speculator.h"

#include <algorithm>
#include <numeric>

namespace rondo {

namespace {

constexpr double kTrialShare = 0.01;  // of a parked stream's time may go into trying its head again

constexpr int kKeptRows = 4;        // about what a drafting stream's round leaves for the head to read
constexpr int kBacklogRounds = 32;  // what waits beyond that, a prompt or a pause, is paid once and charged over these

// Rows that a plan charges a stream for its absorb pass. Charged in full, a prompt's rows would keep every short reply
// from its first draft, and the longer it waited the more rows there would be.
int charged_rows(int waiting, int draft_limit, int max_drafts) {
  const int backlog = std::max(0, waiting - kKeptRows);
  const int rounds = draft_limit < max_drafts ? draft_limit : kBacklogRounds;  // near its end there are no more
  return std::min(waiting, kKeptRows) + (backlog + rounds - 1) / std::max(1, rounds);
}

int certain_rows_of(const RoundRecord& record) {
  return std::accumulate(record.certain_rows.begin(), record.certain_rows.end(), 0);
}

}  // namespace

Speculator::Speculator(Model& model, CostTables tables)
    : model_(model), facts_(model.facts()), costs_(facts_, std::move(tables)) {
  const auto streams = static_cast<std::size_t>(facts_.max_streams);
  odds_.reserve(streams);
  survival_.resize(streams * static_cast<std::size_t>(facts_.max_drafts));
  drafts_.reserve(streams);
  drafting_.reserve(streams);
  still_drafting_.reserve(streams);
  streams_.reserve(streams);
  budget_.reserve(facts_.max_streams, facts_.max_drafts);
}

double Speculator::mean_context(std::span<Sequence* const> sequences) {
  double total = 0;
  for (const Sequence* sequence : sequences) total += sequence->next_pos();
  return sequences.empty() ? 0 : total / static_cast<double>(sequences.size());
}

void Speculator::trim(RoundPlan& plan, RoundRecord& record) {
  odds_.clear();
  record.mean_context = 0;
  for (const RoundPlan::Rows& rows : plan.windows) {
    const std::vector<float>& survival = rows.sequence->held.survival;
    const auto n =
        static_cast<std::size_t>(std::clamp(rows.sequence->draft_limit(), 0, static_cast<int>(survival.size())));
    odds_.push_back({.certain_rows = rows.count, .absorb_rows = 0, .survival = std::span(survival).first(n)});
    record.mean_context += rows.sequence->next_pos() / static_cast<double>(plan.windows.size());
    record.certain_rows.push_back(rows.count);
    record.num_survival.push_back(static_cast<int>(n));
    record.survival.insert(record.survival.end(), survival.begin(), survival.begin() + static_cast<std::ptrdiff_t>(n));
  }
  const auto streams = static_cast<int>(odds_.size());
  record.draft_price = costs_.draft_price(streams);
  DraftCosts costs = costs_.at(record.mean_context, streams, certain_rows_of(record), record.draft_price);
  costs.overhead_ms += record.draft_price * charged_ms_;
  costs.levels_done = kMaxDepth;
  record.overhead_ms = costs.overhead_ms;
  record.drafts.resize(odds_.size());
  budget_.plan(costs, odds_, record.drafts);
  for (std::size_t i = 0; i < plan.windows.size(); ++i) plan.windows[i].drafts = record.drafts[i];
  pass_ms_ = charged_ms_ = 0;
}

void Speculator::observe(Sequence& sequence, int verified, int kept) {
  for (int depth = 1; depth <= std::min(verified, kept + 1); ++depth) {
    sequence.history.see(depth, depth <= kept);
    calibration_.see(depth, sequence.held.probabilities[static_cast<std::size_t>(depth) - 1], depth <= kept);
  }
}

std::span<float> Speculator::survival_of(std::size_t stream) {
  const auto most = static_cast<std::size_t>(facts_.max_drafts);
  return std::span(survival_).subspan(stream * most, most);
}

// What each sequence's past says of drafts it has not made yet.
void Speculator::predict(std::span<Sequence* const> sequences, double round_ms) {
  const auto n = static_cast<int>(sequences.size());
  const double row_ms = costs_.verify_ms(mean_context(sequences), n + 1) - costs_.verify_ms(mean_context(sequences), n);
  odds_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = *sequences[i];
    const int limit = std::max(0, sequence.draft_limit());
    const std::span<float> survival = survival_of(i).first(static_cast<std::size_t>(limit));
    float chance = 1;
    for (int depth = 1; depth <= limit; ++depth) {
      chance *= sequence.history.share(depth, calibration_.prior(depth));
      survival[static_cast<std::size_t>(depth) - 1] = chance;
    }
    const int waiting = limit > 0 ? model_.waiting_rows(sequence.slot()) : 0;
    odds_.push_back(
        {.certain_rows = 1, .absorb_rows = charged_rows(waiting, limit, facts_.max_drafts), .survival = survival});
    if (limit == 0) continue;
    sequence.parked_ms += round_ms / n;
    // Parked long enough that one more try is at most a hundredth of its time: take the first draft for sure.
    const double trial_ms = costs_.draft_price(n) * (row_ms + costs_.absorb_ms(waiting));
    if (sequence.parked_ms * kTrialShare >= trial_ms && trial_ms > 0) survival[0] = 1;
  }
}

void Speculator::plan(std::span<Sequence* const> sequences, int levels_done) {
  const auto streams = static_cast<int>(sequences.size());
  DraftCosts costs = costs_.at(mean_context(sequences), streams, streams);
  costs.overhead_ms += costs_.draft_price(streams) * charged_ms_;
  costs.levels_done = levels_done;
  drafts_.resize(odds_.size());
  budget_.plan(costs, odds_, drafts_);
}

void Speculator::draft(std::span<Sequence* const> sequences, double round_ms, RoundRecord& record) {
  pass_ms_ = charged_ms_ = 0;
  for (Sequence* sequence : sequences) sequence->held.clear();
  if (!facts_.has_head || sequences.empty()) return;
  predict(sequences, round_ms);
  plan(sequences, 0);
  drafting_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (drafts_[i] > 0) {
      drafting_.push_back(i);
    } else {
      odds_[i].survival = {};
    }
  }
  if (drafting_.empty()) return;
  draft_first(sequences);
  ++record.head_passes;
  for (int level = 1; level < facts_.max_drafts; ++level) {
    plan(sequences, level);
    still_drafting_.clear();
    for (std::size_t j = 0; j < drafting_.size(); ++j) {
      const std::size_t stream = drafting_[j];
      if (drafts_[stream] > level && static_cast<int>(sequences[stream]->held.tokens.size()) == level)
        still_drafting_.push_back(static_cast<int>(j));
    }
    if (still_drafting_.empty()) return;
    draft_level(sequences);
    ++record.head_passes;
  }
}

void Speculator::draft_first(std::span<Sequence* const> sequences) {
  streams_.clear();
  int absorbed = 0, charged = 0;
  for (const std::size_t stream : drafting_) {
    const Sequence& sequence = *sequences[stream];
    absorbed += model_.waiting_rows(sequence.slot());
    charged += odds_[stream].absorb_rows;
    streams_.push_back({.slot = sequence.slot(),
                        .draw = &sequence.draw(),
                        .generated = sequence.generated(),
                        .blocks = sequence.blocks()});
    sequences[stream]->parked_ms = 0;
  }
  const std::span<const Drawn> drawn = model_.draft_first(streams_);
  pass_ms_ += costs_.absorb_ms(absorbed);
  charged_ms_ += costs_.absorb_ms(charged);
  for (std::size_t j = 0; j < drafting_.size(); ++j) take_draft(*sequences[drafting_[j]], drafting_[j], drawn[j]);
}

void Speculator::draft_level(std::span<Sequence* const> sequences) {
  const std::span<const Drawn> drawn = model_.draft_next(still_drafting_);
  const double level_ms = costs_.level_ms(static_cast<int>(still_drafting_.size()));
  pass_ms_ += level_ms;
  charged_ms_ += level_ms;
  std::size_t next = 0;
  for (std::size_t j = 0; j < drafting_.size(); ++j) {
    Sequence& sequence = *sequences[drafting_[j]];
    if (next < still_drafting_.size() && still_drafting_[next] == static_cast<int>(j)) {
      take_draft(sequence, drafting_[j], drawn[j]);
      ++next;
    } else {  // it stops here: no deeper draft of it may be planned
      odds_[drafting_[j]].survival = odds_[drafting_[j]].survival.first(sequence.held.tokens.size());
    }
  }
}

// One more draft, with the chance the head gives it; what may follow it is still the past's guess.
void Speculator::take_draft(Sequence& sequence, std::size_t stream, const Drawn& drawn) {
  HeldDrafts& held = sequence.held;
  const int depth = static_cast<int>(held.tokens.size()) + 1;
  const std::span<float> survival = survival_of(stream);
  const bool is_trial = depth == 1 && survival[0] == 1;
  const float before = depth == 1 ? 1.0F : held.survival.back();
  held.tokens.push_back(drawn.token);
  held.probabilities.push_back(drawn.probability);
  held.survival.push_back(is_trial ? 1.0F : before * calibration_.chance(depth, drawn.probability));
  float chance = held.survival.back();
  survival[static_cast<std::size_t>(depth) - 1] = chance;
  for (std::size_t d = static_cast<std::size_t>(depth); d < odds_[stream].survival.size(); ++d) {
    chance *= sequence.history.share(static_cast<int>(d) + 1, calibration_.prior(static_cast<int>(d) + 1));
    survival[d] = chance;
  }
}

void Speculator::end_round(RoundRecord& record, double real_ms) {
  const auto streams = static_cast<int>(record.drafts.size());
  const int certain_rows = certain_rows_of(record);
  const double certain_ms = costs_.verify_ms(record.mean_context, certain_rows);
  const double drafts_ms = costs_.verify_ms(record.mean_context, record.rows) - certain_ms + pass_ms_;
  const double base_ms = certain_ms + costs_.overhead_ms(streams);
  record.planned_ms = base_ms + costs_.draft_price(streams) * drafts_ms;
  record.real_ms = real_ms;
  if (certain_rows > streams) return;  // prompt rows: nothing is learned of rounds that decode
  if (record.rows == certain_rows && record.head_passes == 0) {
    costs_.see_round(streams, certain_ms, real_ms);
  } else {
    costs_.see_drafts(streams, base_ms, drafts_ms, real_ms);
  }
}

}  // namespace rondo
