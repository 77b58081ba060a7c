#include "engine/draft_budget.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

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
  for (auto* each : {&slots_, &orders_[0], &orders_[1]}) each->reserve(streams * depth);
  for (auto* each : {&keys_, &moved_}) each->reserve(streams * depth);
  places_.reserve(streams * depth);
  depth_counts_.reserve(depth);
  least_worth_.reserve(streams);
  within_.reserve((streams * depth + 63) / 64);
  level_streams_.reserve(depth + 1);
  level_ms_.reserve(streams + 1);
}

void DraftBudget::gather_slots(std::span<const StreamOdds> streams) {
  slots_.clear();
  depth_counts_.clear();
  for (std::size_t d = 0;; ++d) {
    const std::size_t before = slots_.size();
    for (std::size_t r = 0; r < streams.size(); ++r) {
      if (d >= streams[r].survival.size()) continue;
      slots_.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(d) + 1, streams[r].survival[d]});
    }
    if (slots_.size() == before) return;
    depth_counts_.push_back(static_cast<int>(slots_.size() - before));
  }
}

// Bits that ascend as the number falls, whatever its sign.
std::uint32_t falling_bits(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number == 0 ? 0.0F : number);  // -0 is 0
  return (bits & 0x80000000u) != 0 ? bits : 0x7FFFFFFFu - bits;
}

// keys_ by falling worth, equal ones in the order they have: four passes over the bytes, or by comparison where there
// are few. It is half of what a plan takes.
void DraftBudget::sort_keys() {
  constexpr std::size_t kFew = 48;
  if (keys_.size() <= kFew) {
    for (std::size_t i = 1; i < keys_.size(); ++i) {
      const Key key = keys_[i];
      std::size_t at = i;
      for (; at > 0 && keys_[at - 1].worth > key.worth; --at) keys_[at] = keys_[at - 1];
      keys_[at] = key;
    }
    return;
  }
  std::uint16_t starts[4][256] = {};
  CHECK(keys_.size() <= std::numeric_limits<std::uint16_t>::max());
  for (const Key& key : keys_) {
    for (int byte = 0; byte < 4; ++byte) ++starts[byte][key.worth >> (8 * byte) & 0xFF];
  }
  moved_.resize(keys_.size());
  for (int byte = 0; byte < 4; ++byte) {
    std::uint16_t start = 0;
    for (std::uint16_t& each : starts[byte]) start = static_cast<std::uint16_t>(start + std::exchange(each, start));
    for (const Key& key : keys_) moved_[starts[byte][key.worth >> (8 * byte) & 0xFF]++] = key;
    keys_.swap(moved_);
  }
}

// order = all slots by falling worth; among equals the shallower first, so that a stream's slots always come in the
// order of their depth, then by stream. A stream's slot is worth no more than the one before it.
void DraftBudget::sort_slots(const Prices& prices, std::span<const StreamOdds> streams, std::vector<Slot>& order) {
  least_worth_.assign(streams.size(), 1.0F);
  keys_.resize(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const auto stream = static_cast<std::size_t>(slot.stream);
    float price = 0;
    if (slot.depth > prices.levels_done) {
      price = slot.depth > 1 ? prices.level : prices.absorbed_row * static_cast<float>(streams[stream].absorb_rows);
    }
    least_worth_[stream] = std::min(least_worth_[stream], slot.survival - price);
    keys_[i] = {falling_bits(least_worth_[stream]), static_cast<std::uint32_t>(i)};
  }
  sort_keys();
  order.resize(slots_.size());
  places_.resize(slots_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    order[i] = slots_[keys_[i].slot];
    places_[keys_[i].slot] = static_cast<std::uint32_t>(i);
  }
}

// Every prefix of the slots up to the cap, in the order of their worth. Which slots these are, a bit each says: as the
// cap rises, bits are added, and no slot moves. With 64 streams the step inside runs thousands of times a plan, so what
// it needs is at hand in locals.
void DraftBudget::walk(const DraftCosts& costs, std::span<const StreamOdds> streams, int pass, int cap, Best& best) {
  int rows = 0, absorbed = 0;
  for (const StreamOdds& stream : streams) rows += stream.certain_rows;
  double tokens = rows, head_ms = costs.overhead_ms + ms_at(costs.absorb_ms, 0);  // absorbing and levels
  level_streams_.assign(static_cast<std::size_t>(cap) + 1, 0);
  int* const level_streams = level_streams_.data();
  const double* const level_ms = level_ms_.data();
  const std::span<const double> verify_ms = costs.verify_ms;
  const auto table_rows = static_cast<int>(verify_ms.size());
  const int max_rows = costs.max_rows, levels_done = costs.levels_done;
  Best found = best;
  std::size_t taken = 0;
  for (std::size_t word = 0; word < within_.size(); ++word) {
    const Slot* const slots = orders_[pass].data() + word * 64;
    for (std::uint64_t bits = within_[word]; bits != 0; bits &= bits - 1) {
      if (++rows > max_rows) {
        best = found;
        return;
      }
      const Slot& slot = slots[std::countr_zero(bits)];
      tokens += static_cast<double>(slot.survival);
      if (slot.depth > levels_done) {
        if (slot.depth == 1) {
          const int more = absorbed + streams[static_cast<std::size_t>(slot.stream)].absorb_rows;
          head_ms += ms_at(costs.absorb_ms, more) - ms_at(costs.absorb_ms, absorbed);
          absorbed = more;
        } else {
          head_ms += level_ms[++level_streams[slot.depth]];
        }
      }
      ++taken;
      const double rows_ms = rows < table_rows ? verify_ms[static_cast<std::size_t>(rows)] : ms_at(verify_ms, rows);
      const double cost = rows_ms + head_ms;
      if (tokens * found.cost > found.tokens * cost) found = {tokens, cost, pass, cap, taken};
    }
  }
  best = found;
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
  level_ms_.assign(streams.size() + 1, 0);
  for (std::size_t n = 1; n < level_ms_.size(); ++n) {
    const int streams_on = static_cast<int>(n);
    level_ms_[n] = ms_at(costs.level_ms, streams_on) - (n > 1 ? ms_at(costs.level_ms, streams_on - 1) : 0);
  }
  Prices prices[2];
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) prices[1] = prices_at(best.tokens / best.cost, costs, streams);
    if (pass == 1 && prices[1].level <= 0 && prices[1].absorbed_row <= 0) break;
    sort_slots(prices[pass], streams, orders_[pass]);
    within_.assign((slots_.size() + 63) / 64, 0);
    std::uint32_t first = 0;  // slots_ of the cap's depth
    for (int cap = 1; cap <= static_cast<int>(depth_counts_.size()); ++cap) {
      const auto end = first + static_cast<std::uint32_t>(depth_counts_[static_cast<std::size_t>(cap) - 1]);
      for (; first < end; ++first) within_[places_[first] / 64] |= std::uint64_t{1} << (places_[first] % 64);
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
