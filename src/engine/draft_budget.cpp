#include "engine/draft_budget.h"

#include <algorithm>

#include "base/check.h"

namespace rondo {

double ms_at(std::span<const double> ms, int index) {
  if (ms.empty()) return 0;
  const auto last = static_cast<int>(ms.size()) - 1;
  if (index <= last) return ms[static_cast<std::size_t>(index)];
  const double slope = last >= 2 ? ms[static_cast<std::size_t>(last)] - ms[static_cast<std::size_t>(last - 1)] : 0;
  return ms[static_cast<std::size_t>(last)] + slope * (index - last);
}

void DraftBudget::reserve(int max_streams, int max_depth) {
  const auto streams = static_cast<std::size_t>(max_streams), depth = static_cast<std::size_t>(max_depth);
  by_depth_.resize(depth);
  for (auto& slots : by_depth_) slots.reserve(streams);
  for (auto& order : orders_) order.reserve(streams * depth);
  merged_.reserve(streams * depth);
  least_worth_.reserve(streams);
  level_streams_.reserve(depth + 1);
}

void DraftBudget::gather_slots(std::span<const StreamOdds> streams) {
  std::size_t depths = 0;
  for (const StreamOdds& stream : streams) depths = std::max(depths, stream.survival.size());
  if (by_depth_.size() < depths) by_depth_.resize(depths);
  for (auto& slots : by_depth_) slots.clear();
  for (std::size_t r = 0; r < streams.size(); ++r) {
    for (std::size_t d = 0; d < streams[r].survival.size(); ++d) {
      const float chance = streams[r].survival[d];
      by_depth_[d].push_back({chance, static_cast<std::int32_t>(r), static_cast<std::int32_t>(d) + 1, chance});
    }
  }
}

// order = order with the slots of depth `cap` put in by worth; among equals the shallower first, so that a stream's
// slots always come in the order of their depth.
void DraftBudget::merge_up_to(int cap, const Prices& prices, std::span<const StreamOdds> streams,
                              std::vector<Slot>& order) {
  auto& fresh = by_depth_[static_cast<std::size_t>(cap) - 1];
  if (cap == 1) {
    order.clear();
    least_worth_.assign(streams.size(), 1.0F);
  }
  for (Slot& slot : fresh) {
    const auto stream = static_cast<std::size_t>(slot.stream);
    float price = 0;
    if (cap > prices.levels_done)
      price = cap > 1 ? prices.level : prices.absorbed_row * static_cast<float>(streams[stream].absorb_rows);
    slot.worth = least_worth_[stream] = std::min(least_worth_[stream], slot.survival - price);
  }
  const auto better = [](const Slot& a, const Slot& b) {
    return a.worth != b.worth ? a.worth > b.worth : a.stream < b.stream;
  };
  // Lowered, they mostly keep the order of the pass before.
  if (!std::is_sorted(fresh.begin(), fresh.end(), better)) std::sort(fresh.begin(), fresh.end(), better);
  merged_.resize(order.size() + fresh.size());
  std::merge(order.begin(), order.end(), fresh.begin(), fresh.end(), merged_.begin(),
             [](const Slot& a, const Slot& b) { return a.worth > b.worth; });
  order.swap(merged_);
}

void DraftBudget::walk(const DraftCosts& costs, std::span<const StreamOdds> streams, int pass, int cap, Best& best) {
  int rows = 0, absorbed = 0;
  for (const StreamOdds& stream : streams) rows += stream.certain_rows;
  double tokens = rows, head_ms = costs.overhead_ms + ms_at(costs.absorb_ms, 0);  // absorbing and levels
  level_streams_.assign(static_cast<std::size_t>(cap) + 1, 0);
  std::size_t taken = 0;
  for (const Slot& slot : orders_[pass]) {
    if (++rows > costs.max_rows) break;
    tokens += static_cast<double>(slot.survival);
    int& on_level = level_streams_[static_cast<std::size_t>(slot.depth)];
    ++on_level;
    if (slot.depth > costs.levels_done) {
      if (slot.depth == 1) {
        const int more = absorbed + streams[static_cast<std::size_t>(slot.stream)].absorb_rows;
        head_ms += ms_at(costs.absorb_ms, more) - ms_at(costs.absorb_ms, absorbed);
        absorbed = more;
      } else {
        head_ms += ms_at(costs.level_ms, on_level) - (on_level > 1 ? ms_at(costs.level_ms, on_level - 1) : 0);
      }
    }
    ++taken;
    const double cost = ms_at(costs.verify_ms, rows) + head_ms;
    if (tokens * best.cost > best.tokens * cost) best = {tokens, cost, pass, cap, taken};
  }
}

// One more stream in a level, and one more row to absorb, in tokens at this rate.
DraftBudget::Prices DraftBudget::prices_at(double rate, const DraftCosts& costs, std::span<const StreamOdds> streams) {
  const auto slope = [](std::span<const double> ms, int last) {
    return last > 1 ? (ms_at(ms, last) - ms_at(ms, 1)) / (last - 1) : 0;
  };
  int absorbed = 0;
  for (const StreamOdds& stream : streams) absorbed += stream.survival.empty() ? 0 : stream.absorb_rows;
  return {.absorbed_row = costs.levels_done > 0 ? 0 : static_cast<float>(rate * slope(costs.absorb_ms, absorbed)),
          .level = static_cast<float>(rate * slope(costs.level_ms, static_cast<int>(streams.size()))),
          .levels_done = costs.levels_done};
}

double DraftBudget::plan(const DraftCosts& costs, std::span<const StreamOdds> streams, std::span<int> drafts) {
  CHECK(drafts.size() == streams.size());
  std::fill(drafts.begin(), drafts.end(), 0);
  if (streams.empty()) return 0;
  int certain = 0;
  for (const StreamOdds& stream : streams) certain += stream.certain_rows;
  Best best{static_cast<double>(certain), ms_at(costs.verify_ms, certain) + costs.overhead_ms, 0, 0, 0};
  gather_slots(streams);
  Prices prices[2];
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) prices[1] = prices_at(best.tokens / best.cost, costs, streams);
    if (pass == 1 && prices[1].level <= 0 && prices[1].absorbed_row <= 0) break;
    for (int cap = 1;
         cap <= static_cast<int>(by_depth_.size()) && !by_depth_[static_cast<std::size_t>(cap) - 1].empty(); ++cap) {
      merge_up_to(cap, prices[pass], streams, orders_[pass]);
      walk(costs, streams, pass, cap, best);
    }
  }
  std::size_t left = best.taken;  // of that pass's slots up to the cap, which stand in the order they were walked in
  for (auto slot = orders_[best.pass].begin(); left > 0; ++slot) {
    if (slot->depth > best.cap) continue;
    ++drafts[static_cast<std::size_t>(slot->stream)];
    --left;
  }
  return best.tokens / best.cost;
}

}  // namespace rondo
