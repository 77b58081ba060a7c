// StallBound: how many prompt rows may run between two rounds, so that whoever decodes waits no longer than the bound.
//
// The tables of RoundCosts say what rows cost; what fills really took puts them right: at once when one took longer
// than told, slowly when it was faster. Where nothing was timed, the first fill beside a decoding sequence is small and
// the next ones go by what it took.
#pragma once

#include "engine/round_costs.h"

namespace rondo {

class StallBound {
 public:
  StallBound(double stall_ms, int max_rows) : stall_ms_(stall_ms), max_rows_(max_rows) {}

  // At least 1, at most max_rows. round_ms: what the round after the fill is going to take.
  int rows(const RoundCosts& costs, double mean_context, double round_ms) const;
  void see_fill(const RoundCosts& costs, double mean_context, int rows, double real_ms);

 private:
  double stall_ms_;
  int max_rows_;
  double price_ = 0;  // real over told; 0 = no fill seen yet
};

}  // namespace rondo
