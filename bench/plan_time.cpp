// plan_time: how long one draft budget takes, by streams and depth; what a round pays for it twice, and once a level.

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/random.h"
#include "engine/draft_budget.h"

namespace rondo {
namespace {

struct Times {
  double median_us, p99_us;
};

Times time_plans(int num_streams, int depth) {
  constexpr int kPlans = 2001;
  std::vector<double> verify{0}, absorb{0}, level{0};
  for (int rows = 1; rows <= num_streams * (depth + 1); ++rows) verify.push_back(10 + rows / 8 * 0.9);
  for (int rows = 1; rows <= num_streams * 3; ++rows) absorb.push_back(1 + 0.05 * rows);
  for (int n = 1; n <= num_streams; ++n) level.push_back(0.8 + 0.02 * n);
  std::vector<float> survival(static_cast<std::size_t>(num_streams * depth));
  std::vector<StreamOdds> streams(static_cast<std::size_t>(num_streams));
  std::vector<int> drafts(streams.size());
  DraftBudget budget;
  budget.reserve(num_streams, depth);
  std::vector<double> us;
  for (std::uint64_t plan = 0; plan < kPlans; ++plan) {
    for (std::size_t r = 0; r < streams.size(); ++r) {
      const auto own =
          std::span(survival).subspan(r * static_cast<std::size_t>(depth), static_cast<std::size_t>(depth));
      double chance = 1;
      for (std::size_t d = 0; d < own.size(); ++d)
        own[d] = static_cast<float>(chance *= 0.3 + 0.7 * unit_interval(random_bits(plan, r, d)));
      streams[r] = {.certain_rows = 1, .absorb_rows = 1 + static_cast<int>(random_bits(plan, r) % 4), .survival = own};
    }
    const auto begin = std::chrono::steady_clock::now();
    budget.plan({.verify_ms = verify,
                 .absorb_ms = absorb,
                 .level_ms = level,
                 .overhead_ms = 0.3,
                 .max_rows = num_streams * (depth + 1)},
                streams, drafts);
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(us.begin(), us.end());
  return {us[us.size() / 2], us[us.size() * 99 / 100]};
}

}  // namespace
}  // namespace rondo

int main() {
  std::printf("streams depth  median us  99th us\n");
  for (const int streams : {1, 4, 16, 64}) {
    for (const int depth : {1, 3, 8}) {
      const rondo::Times times = rondo::time_plans(streams, depth);
      std::printf("%7d %5d %10.1f %8.1f\n", streams, depth, times.median_us, times.p99_us);
    }
  }
}
