#include "engine/decision_log.h"

#include <numeric>

#include "engine/draft_odds.h"
#include "engine/round_costs.h"

namespace rondo {

DecisionLog::DecisionLog(int num_rounds, int max_streams, int max_drafts)
    : records_(static_cast<std::size_t>(num_rounds)) {
  const auto streams = static_cast<std::size_t>(max_streams);
  for (RoundRecord& record : records_) {
    for (auto* each : {&record.certain_rows, &record.num_survival, &record.drafts}) each->reserve(streams);
    record.survival.reserve(streams * static_cast<std::size_t>(max_drafts));
  }
}

RoundRecord& DecisionLog::begin(std::uint64_t round) {
  at_ = (at_ + 1) % records_.size();
  RoundRecord& record = records_[at_];
  for (auto* each : {&record.certain_rows, &record.num_survival, &record.drafts}) each->clear();
  record.survival.clear();
  record.round = round;
  record.rows = record.accepted = record.head_passes = 0;
  record.planned_ms = record.real_ms = 0;
  return record;
}

std::vector<const RoundRecord*> DecisionLog::rounds() const {
  std::vector<const RoundRecord*> out;
  for (std::size_t i = 1; i <= records_.size(); ++i) {
    const RoundRecord& record = records_[(at_ + i) % records_.size()];
    if (record.round > 0) out.push_back(&record);
  }
  return out;
}

std::vector<int> replay(const RoundRecord& record, RoundCosts& costs) {
  std::vector<StreamOdds> streams;
  std::size_t at = 0;
  for (std::size_t i = 0; i < record.certain_rows.size(); ++i) {
    const auto n = static_cast<std::size_t>(record.num_survival[i]);
    streams.push_back({.certain_rows = record.certain_rows[i],
                       .absorb_rows = 0,
                       .survival = std::span(record.survival).subspan(at, n)});
    at += n;
  }
  const int certain = std::accumulate(record.certain_rows.begin(), record.certain_rows.end(), 0);
  DraftCosts given = costs.at(record.mean_context, static_cast<int>(streams.size()), certain, record.draft_price);
  given.overhead_ms = record.overhead_ms;
  given.levels_done = kMaxDepth;
  std::vector<int> drafts(streams.size());
  DraftBudget().plan(given, streams, drafts);
  return drafts;
}

}  // namespace rondo
