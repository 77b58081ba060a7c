// Spread: what several runs of one measurement showed.
#pragma once

#include <algorithm>
#include <vector>

namespace rondo {

struct Spread {
  double median, lowest, highest;
};

// Of at least one run; of an even number the higher middle.
inline Spread spread(std::vector<double> runs) {
  std::sort(runs.begin(), runs.end());
  return {runs[runs.size() / 2], runs.front(), runs.back()};
}

}  // namespace rondo
