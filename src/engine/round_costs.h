// What a round costs on this machine: the tables timed at load, read at the round's context length, and the overhead
// that the rounds themselves show. Unpriced (nothing was timed), every row and every level costs the same.
#pragma once

#include <array>
#include <vector>

#include "engine/draft_budget.h"
#include "model/model.h"

namespace rondo {

class RoundCosts {
 public:
  RoundCosts(const ModelFacts& facts, CostTables tables);

  // Costs of a round of `streams` sequences with `mean_context` positions behind them; good until the next call.
  DraftCosts at(double mean_context, int streams);
  bool priced() const { return priced_; }

  // A round took real_ms where its parts were planned at parts_ms.
  void see_round(int streams, double parts_ms, double real_ms);
  double overhead_ms(int streams) const { return overhead_[bucket(streams)].value; }
  double verify_ms(double mean_context, int rows) const;
  double absorb_ms(int rows) const;
  double level_ms(int streams) const;

 private:
  struct Average {
    double value = 0;
    bool seen = false;
  };
  static std::size_t bucket(int streams) {
    return static_cast<std::size_t>(streams < kBuckets ? streams : kBuckets - 1);
  }
  static constexpr int kBuckets = 65;

  CostTables tables_;
  bool priced_;
  int max_rows_;
  std::vector<double> verify_;  // [rows] at the context of the last at()
  std::array<Average, kBuckets> overhead_;
};

}  // namespace rondo
