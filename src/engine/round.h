// Round: one shared verify forward over every window, what each sequence keeps of it, and one batched drafting pass.
#pragma once

#include <vector>

#include "base/clock.h"
#include "engine/counters.h"
#include "engine/scheduler.h"
#include "engine/speculator.h"

namespace rondo {

class Round {
 public:
  Round(Model& model, CostTables costs, const Clock& clock, int logged_rounds);

  double fill(const RoundPlan& plan);  // the plan's slices: prompt rows, nothing drawn; milliseconds it took
  void run(RoundPlan& plan);           // the plan's windows

  const RoundCounters& counters() const { return counters_; }
  const DecisionLog& log() const { return log_; }
  RoundCounters& counters() { return counters_; }
  RoundCosts& costs() { return speculator_.costs(); }

 private:
  Verified verify(RoundPlan& plan, RoundRecord& record);
  void count(const RoundPlan& plan, const RoundRecord& record);
  void walk(const RoundPlan& plan, const Verified& verified, RoundRecord& record);
  int walk_window(const RoundPlan::Rows& rows, int num_drafts, std::size_t first_drawn, const Verified& verified);
  void count_times(Sequence& sequence, bool has_first, int num_tokens, Clock::Time now);

  Model& model_;
  const Clock& clock_;
  Speculator speculator_;
  DecisionLog log_;
  RoundCounters counters_;
  // Room for one round, [max_streams] each.
  std::vector<Slice> slices_;
  std::vector<Window> windows_;
  std::vector<Kept> kept_;
  std::vector<Sequence*> going_on_;  // sequences that a next round will serve
};

}  // namespace rondo
