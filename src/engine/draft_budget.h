// How many drafts each stream should have verified next round: the plan k with the most expected tokens a millisecond.
//
//   tokens  T(k) = sum_r ( certain_rows[r] + survival[r][1] + .. + survival[r][k_r] )
//   rows         = sum_r ( certain_rows[r] + k_r )
//   cost    C(k) = verify(rows) + overhead + absorb(rows absorbed by the streams that draft) + sum_{l = 2 .. max k}
//   level(n_l)
//                  n_l = streams with k_r >= l; a stream's first draft rides the absorb pass; levels already run cost
//                  nothing
//
// The rule: for each depth cap, take the slots up to it in the order of their survival, walk every prefix, keep the
// best; then once more with each draft lowered, at the rate found, by what it adds to the head: a stream's first by its
// rows to absorb, a deeper one by one more stream in a level. Exact when a level costs the same for any number of
// streams and absorbing is free. The plan without drafts is always a candidate. verify is a staircase: the walk never
// stops at the first descent. Pure: no clock, no model, no allocation once the room has its size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rondo {

// ms[index]; past the end it goes on with the last slope, and an empty table is free.
double ms_at(std::span<const double> ms, int index);

// Times in milliseconds, indexed by what they are for, read by ms_at.
struct DraftCosts {
  std::span<const double> verify_ms;  // [rows]; verify_ms[0] is not used
  std::span<const double> absorb_ms;  // [rows]; empty = free
  std::span<const double> level_ms;   // [streams]; level_ms[0] is not used
  double overhead_ms = 0;
  int max_rows = 0;     // of a plan with any draft
  int levels_done = 0;  // levels that have been run: their drafts are there and cost no more head
};

struct StreamOdds {
  int certain_rows = 1;  // rows that stay whatever happens
  int absorb_rows = 0;   // rows its head still has to read before it can draft
  std::span<const float>
      survival;  // chance that drafts 1 .. d are all kept, never rising; its size is the stream's limit
};

class DraftBudget {
 public:
  void reserve(int max_streams, int max_depth);  // then plan() allocates nothing up to there

  // drafts[r] = k_r for every stream. Returns the expected tokens a millisecond.
  double plan(const DraftCosts& costs, std::span<const StreamOdds> streams, std::span<int> drafts);

 private:
  struct Slot {
    std::int32_t stream;
    std::int32_t depth;
    float survival;
  };
  // A slot's worth as a number that falls as it rises, and which slot.
  struct Key {
    std::uint32_t worth;
    std::uint32_t slot;
  };
  struct Best {
    double tokens, cost;
    int pass, cap;      // whose walk found it; cap 0 = no drafts
    std::size_t taken;  // slots of that walk
  };
  // What a slot's worth is lowered by; nothing in the first pass.
  struct Prices {
    float absorbed_row = 0, level = 0;
    int levels_done = 0;
  };
  static Prices prices_at(double rate, const DraftCosts& costs, std::span<const StreamOdds> streams);
  void gather_slots(std::span<const StreamOdds> streams);
  void sort_slots(const Prices& prices, std::span<const StreamOdds> streams, std::vector<Slot>& order);
  void sort_keys();
  void walk(const DraftCosts& costs, std::span<const StreamOdds> streams, int pass, int cap, Best& best);

  std::vector<Slot> slots_;            // by depth, then by stream
  std::vector<int> depth_counts_;      // [depth] slots of depth d + 1
  std::vector<Slot> orders_[2];        // of each pass: all slots, the best first
  std::vector<Key> keys_, moved_;      // while sorting
  std::vector<std::uint32_t> places_;  // [slots] where the last order has each
  std::vector<float> least_worth_;     // [streams] of its slots so far
  std::vector<std::uint64_t> within_;  // bit i: whether slot i of the order is within the cap
  std::vector<int> level_streams_;     // [depth] streams at that level
  std::vector<double> level_ms_;       // [streams] what the n-th stream adds to a level
};

}  // namespace rondo
