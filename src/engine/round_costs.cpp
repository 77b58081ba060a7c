#include "engine/round_costs.h"

#include <algorithm>

namespace rondo {

namespace {

constexpr double kNew = 0.1;        // weight of the newest round in the moving averages
constexpr double kOutlier = 2;      // a round counts as at most this many times what was planned: others run here too
constexpr double kLeastBase = 0.1;  // of the table's time is left of a round, however far below it rounds come
constexpr double kLeastPrice = 0.5, kMostPrice = 8;
constexpr double kTrust = 0.25;  // of a one-row forward: what the tables' own word on drafts weighs in their price

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
  absorb_.resize(tables_.absorb_ms.size());
  level_.resize(tables_.level_ms.size());
}

double RoundCosts::verify_ms(double mean_context, int rows) const {
  const double span = tables_.context_tokens[1] - tables_.context_tokens[0];
  const double part = span > 0 ? std::clamp((mean_context - tables_.context_tokens[0]) / span, 0.0, 1.0) : 0.0;
  const double low = ms_at(tables_.verify_ms[0], rows), high = ms_at(tables_.verify_ms[1], rows);
  return low + (high - low) * part;
}

double RoundCosts::absorb_ms(int rows) const { return rows == 0 ? 0 : ms_at(tables_.absorb_ms, rows); }
double RoundCosts::level_ms(int streams) const { return streams == 0 ? 0 : ms_at(tables_.level_ms, streams); }

double RoundCosts::draft_price(int streams) const {
  const Price& price = price_[bucket(streams)];
  const double trust = kTrust * ms_at(tables_.verify_ms[0], 1);
  return std::clamp((price.real_ms + trust) / (price.table_ms + trust), kLeastPrice, kMostPrice);
}

DraftCosts RoundCosts::at(double mean_context, int streams, int certain_rows) {
  return at(mean_context, streams, certain_rows, draft_price(streams));
}

DraftCosts RoundCosts::at(double mean_context, int streams, int certain_rows, double draft_price) {
  const double certain_ms = verify_ms(mean_context, certain_rows);
  for (std::size_t rows = 0; rows < verify_.size(); ++rows) {
    const double ms = verify_ms(mean_context, static_cast<int>(rows));
    verify_[rows] = static_cast<int>(rows) <= certain_rows ? ms : certain_ms + draft_price * (ms - certain_ms);
  }
  const auto priced = [&](double ms) { return draft_price * ms; };
  std::ranges::transform(tables_.absorb_ms, absorb_.begin(), priced);
  std::ranges::transform(tables_.level_ms, level_.begin(), priced);
  return {.verify_ms = verify_,
          .absorb_ms = absorb_,
          .level_ms = level_,
          .overhead_ms = std::max(-(1 - kLeastBase) * certain_ms, overhead_ms(streams)),
          .max_rows = std::min(max_rows_, static_cast<int>(verify_.size()) - 1),
          .levels_done = 0};
}

void RoundCosts::see_round(int streams, double forward_ms, double real_ms) {
  if (!priced_) return;  // its units are no milliseconds
  Average& average = overhead_[bucket(streams)];
  const double planned_ms = forward_ms + average.value;
  const double beyond = (average.seen ? std::min(real_ms, kOutlier * planned_ms) : real_ms) - forward_ms;
  average.value = average.seen ? average.value + kNew * (beyond - average.value) : beyond;
  average.seen = true;
}

void RoundCosts::see_drafts(int streams, double base_ms, double table_ms, double real_ms) {
  if (!priced_) return;
  Price& price = price_[bucket(streams)];
  const double planned_ms = base_ms + draft_price(streams) * table_ms;
  const double added_ms = std::max(0.0, std::min(real_ms, kOutlier * planned_ms) - base_ms);
  price.real_ms += kNew * (added_ms - price.real_ms);
  price.table_ms += kNew * (table_ms - price.table_ms);
}

}  // namespace rondo
