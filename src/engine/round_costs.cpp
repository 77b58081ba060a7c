#include "engine/round_costs.h"

#include <algorithm>

namespace rondo {

namespace {

constexpr double kNew = 0.1;  // weight of the newest round in the moving average

// Unpriced: in units of a one-row forward, a further row costs a tenth of it and a head pass a tenth: deep drafts for
// one stream, few for many.
constexpr double kUnpricedRow = 0.1, kUnpricedPass = 0.1;

}  // namespace

RoundCosts::RoundCosts(const ModelFacts& facts, CostTables tables)
    : tables_(std::move(tables)), priced_(tables_.priced()), max_rows_(facts.max_rows) {
  if (!priced_) {
    for (int i = 0; i < 2; ++i) {
      for (int rows = 0; rows <= facts.max_rows; ++rows)
        tables_.verify_ms[i].push_back(1 + kUnpricedRow * std::max(0, rows - 1));
    }
    tables_.absorb_ms.assign(2, kUnpricedPass);
    tables_.level_ms.assign(static_cast<std::size_t>(facts.max_streams) + 1, kUnpricedPass);
    tables_.context_tokens[1] = facts.context_tokens;
  }
  if (!tables_.absorb_ms.empty()) tables_.absorb_ms[0] = 0;  // nobody drafts
  verify_.resize(tables_.verify_ms[0].size());
}

double RoundCosts::verify_ms(double mean_context, int rows) const {
  const double span = tables_.context_tokens[1] - tables_.context_tokens[0];
  const double part = span > 0 ? std::clamp((mean_context - tables_.context_tokens[0]) / span, 0.0, 1.0) : 0.0;
  const double low = ms_at(tables_.verify_ms[0], rows), high = ms_at(tables_.verify_ms[1], rows);
  return low + (high - low) * part;
}

double RoundCosts::absorb_ms(int rows) const { return rows == 0 ? 0 : ms_at(tables_.absorb_ms, rows); }
double RoundCosts::level_ms(int streams) const { return streams == 0 ? 0 : ms_at(tables_.level_ms, streams); }

DraftCosts RoundCosts::at(double mean_context, int streams) {
  for (std::size_t rows = 0; rows < verify_.size(); ++rows)
    verify_[rows] = verify_ms(mean_context, static_cast<int>(rows));
  return {.verify_ms = verify_,
          .absorb_ms = tables_.absorb_ms,
          .level_ms = tables_.level_ms,
          .overhead_ms = std::max(0.0, overhead_ms(streams)),
          .max_rows = std::min(max_rows_, static_cast<int>(verify_.size()) - 1),
          .levels_done = 0};
}

void RoundCosts::see_round(int streams, double parts_ms, double real_ms) {
  Average& average = overhead_[bucket(streams)];
  const double beyond = real_ms - parts_ms;
  average.value = average.seen ? average.value + kNew * (beyond - average.value) : beyond;
  average.seen = true;
}

}  // namespace rondo
