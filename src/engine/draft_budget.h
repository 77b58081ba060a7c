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
// best; then once more with drafts past a stream's first lowered by what one more stream in a level costs, at the rate
// found. Exact when a level costs the same for any number of streams. The plan without drafts is always a candidate.
// verify is a staircase: the walk never stops at the first descent. Pure: no clock, no model, no allocation once the
// room has its size.
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
    float worth;  // survival, less what its level costs when repriced
    std::int32_t stream;
    std::int32_t depth;
    float survival;
  };
  struct Best {
    double tokens, cost;
    int pass, cap;      // whose walk found it; cap 0 = no drafts
    std::size_t taken;  // slots of that walk
  };
  void sort_slots(std::span<const StreamOdds> streams);
  void merge_up_to(int cap, float price, int levels_done);
  void walk(const DraftCosts& costs, std::span<const StreamOdds> streams, int pass, int cap, Best& best);

  std::vector<std::vector<Slot>> by_depth_;  // each by falling survival
  std::vector<Slot> order_, merged_;         // slots up to the cap, the best first
  std::vector<int> level_streams_;           // [depth] streams at that level
};

}  // namespace rondo
