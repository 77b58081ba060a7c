#include "tests/ops/row_law.h"

#include <numeric>

#include "base/random.h"

namespace rondo {

std::vector<int> launch_widths(Isa isa) {
#ifdef RONDO_FEWER_RUNS
  const bool few = true;
#else
  const bool few = isa == Isa::Reference;
#endif
  if (few) return {1, 2, 3, 5, 6, 7, 13, isa == Isa::Reference ? 33 : kPopulation};
  std::vector<int> all(kPopulation);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

namespace {

std::vector<std::vector<int>> launches_of(int width) {
  std::vector<std::vector<int>> out(3);
  for (int i = 0; i < width; ++i) {
    out[0].push_back(i);
    out[1].push_back(kPopulation - 1 - i);
    out[2].push_back(static_cast<int>(random_bits(7, static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(i)) %
                                      kPopulation));
  }
  return out;
}

}  // namespace

testing::AssertionResult rows_keep_their_bits(Isa isa, const RunRows& run) {
  Machine lone(isa);
  std::vector<std::vector<float>> alone;
  for (int r = 0; r < kPopulation; ++r) alone.push_back(run(lone, {r}).to_vector());
  for (int threads = 1; threads <= 3; ++threads) {
    Machine machine(isa, threads);
    for (const int width : launch_widths(isa)) {
      for (const std::vector<int>& rows : launches_of(width)) {
        const Array got = run(machine, rows);
        for (int i = 0; i < width; ++i) {
          const int row = rows[static_cast<std::size_t>(i)];
          auto same = same_bits(std::span(got.row(i), static_cast<std::size_t>(got.width())),
                                alone[static_cast<std::size_t>(row)]);
          if (!same) return same << ": row " << row << " as number " << i << " of " << width << ", threads " << threads;
        }
      }
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace rondo
