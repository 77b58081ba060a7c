// Histogram: how often a duration fell into each of a fixed set of ranges. Counting takes no lock and no memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rondo {

struct Histogram {
  // Seconds, each the upper end of its range, the end included; what is longer falls into one more range.
  static constexpr std::array<double, 16> kBounds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                                     0.2,    0.5,   1,     2,     5,    10,   30,   60};
  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // of each range alone
  double sum_s = 0;

  void see(double seconds, std::uint64_t times = 1) {
    const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    counts[static_cast<std::size_t>(bound - kBounds.begin())] += times;
    sum_s += seconds * static_cast<double>(times);
  }
  Histogram since(const Histogram& earlier) const {
    Histogram out = *this;
    for (std::size_t i = 0; i < counts.size(); ++i) out.counts[i] -= earlier.counts[i];
    out.sum_s -= earlier.sum_s;
    return out;
  }
  std::uint64_t total() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : counts) all += count;
    return all;
  }
};

}  // namespace rondo
