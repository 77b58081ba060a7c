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
  order_.reserve(streams * depth);
  merged_.reserve(streams * depth);
  level_streams_.reserve(depth + 1);
}

void DraftBudget::sort_slots(std::span<const StreamOdds> streams) {
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
  const auto better = [](const Slot& a, const Slot& b) {
    return a.survival != b.survival ? a.survival > b.survival : a.stream < b.stream;
  };
  for (auto& slots : by_depth_) std::sort(slots.begin(), slots.end(), better);
}

// order_ = order_ with the slots of depth `cap` put in by worth; among equals the shallower first, so that a stream's
// slots always come in the order of their depth.
void DraftBudget::merge_up_to(int cap, float price, int levels_done) {
  auto& fresh = by_depth_[static_cast<std::size_t>(cap) - 1];
  for (Slot& slot : fresh) slot.worth = slot.survival - (cap > std::max(1, levels_done) ? price : 0.0F);
  merged_.resize(order_.size() + fresh.size());
  std::merge(order_.begin(), order_.end(), fresh.begin(), fresh.end(), merged_.begin(),
             [](const Slot& a, const Slot& b) { return a.worth > b.worth; });
  order_.swap(merged_);
}

void DraftBudget::walk(const DraftCosts& costs, std::span<const StreamOdds> streams, int pass, int cap, Best& best) {
  double tokens = 0, levels_ms = 0;
  int rows = 0, absorbed = 0;
  for (const StreamOdds& stream : streams) rows += stream.certain_rows;
  tokens = rows;
  level_streams_.assign(static_cast<std::size_t>(cap) + 1, 0);
  std::size_t taken = 0;
  for (const Slot& slot : order_) {
    if (++rows > costs.max_rows) break;
    tokens += static_cast<double>(slot.survival);
    int& on_level = level_streams_[static_cast<std::size_t>(slot.depth)];
    ++on_level;
    if (slot.depth <= costs.levels_done) {
      // already drafted
    } else if (slot.depth == 1) {
      absorbed += streams[static_cast<std::size_t>(slot.stream)].absorb_rows;
    } else {
      levels_ms += ms_at(costs.level_ms, on_level) - (on_level > 1 ? ms_at(costs.level_ms, on_level - 1) : 0);
    }
    ++taken;
    const double cost = ms_at(costs.verify_ms, rows) + costs.overhead_ms + ms_at(costs.absorb_ms, absorbed) + levels_ms;
    if (tokens * best.cost > best.tokens * cost) best = {tokens, cost, pass, cap, taken};
  }
}

double DraftBudget::plan(const DraftCosts& costs, std::span<const StreamOdds> streams, std::span<int> drafts) {
  CHECK(drafts.size() == streams.size());
  std::fill(drafts.begin(), drafts.end(), 0);
  if (streams.empty()) return 0;
  int certain = 0;
  for (const StreamOdds& stream : streams) certain += stream.certain_rows;
  Best best{static_cast<double>(certain), ms_at(costs.verify_ms, certain) + costs.overhead_ms, 0, 0, 0};
  sort_slots(streams);
  const auto num_streams = static_cast<int>(streams.size());
  const double one_more_ms =
      num_streams > 1 ? (ms_at(costs.level_ms, num_streams) - ms_at(costs.level_ms, 1)) / (num_streams - 1) : 0;
  float prices[2] = {0, 0};
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) prices[1] = static_cast<float>(best.tokens / best.cost * one_more_ms);
    if (pass == 1 && prices[1] <= 0) break;
    order_.clear();
    for (int cap = 1;
         cap <= static_cast<int>(by_depth_.size()) && !by_depth_[static_cast<std::size_t>(cap) - 1].empty(); ++cap) {
      merge_up_to(cap, prices[pass], costs.levels_done);
      walk(costs, streams, pass, cap, best);
    }
  }
  order_.clear();
  for (int cap = 1; cap <= best.cap; ++cap) merge_up_to(cap, prices[best.pass], costs.levels_done);
  for (std::size_t i = 0; i < best.taken; ++i) ++drafts[static_cast<std::size_t>(order_[i].stream)];
  return best.tokens / best.cost;
}

}  // namespace rondo
