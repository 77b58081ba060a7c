#include "engine/stall_bound.h"

#include <algorithm>

namespace rondo {

namespace {

constexpr double kUsed = 0.8;         // of what is left of the bound: a fill is not told to the millisecond
constexpr double kLeastShare = 0.25;  // of the bound a prompt gets, however long rounds are
constexpr double kEasing = 0.1;       // a cheaper fill counts this much
constexpr int kFirstRows = 16;        // when nothing is known

}  // namespace

int StallBound::rows(const RoundCosts& costs, double mean_context, double round_ms) const {
  if (price_ == 0 && !costs.priced()) return std::min(kFirstRows, max_rows_);
  const double price = price_ == 0 ? 1 : price_;
  const double ms = kUsed * std::max(kLeastShare * stall_ms_, stall_ms_ - round_ms);
  int fits = 1, too_many = max_rows_ + 1;
  while (too_many - fits > 1) {
    const int middle = (fits + too_many) / 2;
    (price * costs.verify_ms(mean_context, middle) <= ms ? fits : too_many) = middle;
  }
  return fits;
}

void StallBound::see_fill(const RoundCosts& costs, double mean_context, int rows, double real_ms) {
  const double told_ms = costs.verify_ms(mean_context, rows);
  if (told_ms <= 0) return;
  const double price = real_ms / told_ms;
  price_ = price > price_ ? price : price_ + kEasing * (price - price_);
}

}  // namespace rondo
