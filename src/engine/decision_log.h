// DecisionLog: the last rounds, each with what was known, what was decided and what came of it; enough to decide it
// again.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/draft_budget.h"

namespace rondo {

struct RoundRecord {
  std::uint64_t round = 0;
  // What was known before verifying.
  double mean_context = 0;
  double overhead_ms = 0;                       // with the head passes already run
  double draft_price = 1;                       // RoundCosts::draft_price
  std::vector<int> certain_rows, num_survival;  // [streams]
  std::vector<float> survival;                  // num_survival of each stream, one after the other
  // What was decided: drafts verified, a stream each.
  std::vector<int> drafts;
  // What came of it.
  int rows = 0, accepted = 0, head_passes = 0;
  double planned_ms = 0, real_ms = 0;
};

class DecisionLog {
 public:
  DecisionLog(int num_rounds, int max_streams, int max_drafts);
  RoundRecord& begin(std::uint64_t round);  // the oldest record, emptied
  const RoundRecord& last() const { return records_[at_]; }
  std::vector<const RoundRecord*> rounds() const;  // oldest first

 private:
  std::vector<RoundRecord> records_;
  std::size_t at_ = 0;
};

// The drafts that `record` would be given now: equal to record.drafts, or the plan is not a function of what it was
// told.
class RoundCosts;
std::vector<int> replay(const RoundRecord& record, RoundCosts& costs);

}  // namespace rondo
