// Speculator: how much is drafted, and for whom. It plans twice a round: after a commit, how many levels the head runs
// and for which sequences; before the next verify, how many of the drafts they hold are worth a row. Nothing it decides
// can change what a sequence says, only how soon.
#pragma once

#include <span>
#include <vector>

#include "engine/decision_log.h"
#include "engine/draft_budget.h"
#include "engine/draft_odds.h"
#include "engine/round_costs.h"
#include "engine/scheduler.h"
#include "model/model.h"

namespace rondo {

class Speculator {
 public:
  Speculator(Model& model, CostTables tables);

  // How many held drafts each window verifies; fills the plan's `drafts` and the record's decision.
  void trim(RoundPlan& plan, RoundRecord& record);
  // Of `verified` drafts the first `kept` stood.
  void observe(Sequence& sequence, int verified, int kept);
  // Drafts for the sequences of the round just committed, into Sequence::held. round_ms: what the round took so far.
  void draft(std::span<Sequence* const> sequences, double round_ms, RoundRecord& record);
  void end_round(RoundRecord& record, double real_ms);

  RoundCosts& costs() { return costs_; }

 private:
  void predict(std::span<Sequence* const> sequences, double round_ms);
  std::span<float> survival_of(std::size_t stream);
  void plan(std::span<Sequence* const> sequences, int levels_done);
  void draft_first(std::span<Sequence* const> sequences);
  void draft_level(std::span<Sequence* const> sequences);
  void take_draft(Sequence& sequence, std::size_t stream, const Drawn& drawn);
  static double mean_context(std::span<Sequence* const> sequences);

  Model& model_;
  const ModelFacts facts_;
  RoundCosts costs_;
  Calibration calibration_;
  DraftBudget budget_;
  double pass_ms_ = 0;     // head passes of this round, by the tables
  double charged_ms_ = 0;  // the same, with an absorbed backlog charged over the rounds to come
  // Room of one pass, [max_streams] each.
  std::vector<StreamOdds> odds_;
  std::vector<float> survival_;  // [max_streams, max_drafts]
  std::vector<int> drafts_;
  std::vector<std::size_t> drafting_;  // streams of the pass, by index in the round
  std::vector<int> still_drafting_;    // by index in drafting_
  std::vector<DraftStream> streams_;
};

}  // namespace rondo
