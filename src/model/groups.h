// Splitting a pass that is wider than what was reserved for it. Pure; what it decides never changes a row's bits.
#pragma once

#include <span>
#include <vector>

namespace rondo {

// Consecutive members whose rows together fit max_rows, greedily from the first: ends[i] is one past the last member of
// group i. Every member must fit by itself. `ends` is filled, and grows no further than the number of members.
void split_into_groups(std::span<const int> rows, int max_rows, std::vector<int>& ends);

}  // namespace rondo
