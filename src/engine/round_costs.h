// What a round costs on this machine: the tables timed at load, read at the round's context length, put right by what
// the rounds themselves show. Unpriced (nothing was timed), every row and every level costs the same.
//
// Two things are learned, by number of streams. Overhead: what a round without drafts takes beyond its forward; below
// zero where the table has it too dear. The price of drafts: what drafted rows and head passes really added to such a
// round, over what the tables say they add; 1 until it is known. It holds what tables cannot: sampled draws, rows of
// one long window instead of many short ones, a machine that was busy while it was timed.
#pragma once

#include <array>
#include <vector>

#include "engine/draft_budget.h"
#include "model/model.h"

namespace rondo {

class RoundCosts {
 public:
  RoundCosts(const ModelFacts& facts, CostTables tables);

  // Costs of a round of `streams` sequences with `mean_context` positions behind them and this many certain rows; good
  // until the next call.
  DraftCosts at(double mean_context, int streams, int certain_rows);
  DraftCosts at(double mean_context, int streams, int certain_rows, double draft_price);  // at a price once learned
  bool priced() const { return priced_; }

  // A round without drafts took real_ms where its forward was to take forward_ms.
  void see_round(int streams, double forward_ms, double real_ms);
  // Drafted rows and head passes that the tables have at table_ms brought a round from base_ms, its certain rows and
  // overhead, to real_ms.
  void see_drafts(int streams, double base_ms, double table_ms, double real_ms);
  double overhead_ms(int streams) const { return overhead_[bucket(streams)].value; }
  double draft_price(int streams) const;
  double verify_ms(double mean_context, int rows) const;
  double absorb_ms(int rows) const;
  double level_ms(int streams) const;

 private:
  struct Average {
    double value = 0;
    bool seen = false;
  };
  struct Price {
    double real_ms = 0, table_ms = 0;  // moving averages
  };
  static std::size_t bucket(int streams) {
    return static_cast<std::size_t>(streams < kBuckets ? streams : kBuckets - 1);
  }
  static constexpr int kBuckets = 65;

  CostTables tables_;
  bool priced_;
  int max_rows_;
  std::vector<double> verify_, absorb_, level_;  // of the last at()
  std::array<Average, kBuckets> overhead_;
  std::array<Price, kBuckets> price_;
};

}  // namespace rondo
