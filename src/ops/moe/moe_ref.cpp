#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/moe/moe_kernel.h"

namespace rondo::reference {

void route_range(const RouteRange& r) {
  for (int row = r.begin; row < r.end; ++row) {
    const float* logits = r.logits + static_cast<std::int64_t>(row) * r.experts;
    const float most = *std::max_element(logits, logits + r.experts);
    std::vector<float> rho;
    for (int e = 0; e < r.experts; ++e) rho.push_back(std::exp(logits[e] - most));
    const float total = std::accumulate(rho.begin(), rho.end(), 0.0F);
    std::vector<int> order(static_cast<std::size_t>(r.experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    float sum = 0;
    for (int i = 0; i < r.k; ++i) sum += rho[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    for (int i = 0; i < r.k; ++i) {
      const int expert = order[static_cast<std::size_t>(i)];
      r.chosen[row * r.k + i] = expert;
      r.weight[row * r.k + i] = rho[static_cast<std::size_t>(expert)] / (r.normalise ? sum : total);
    }
  }
}

void combine_range(const CombineRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t d = 0; d < r.hidden; ++d) {
      float sum = 0;
      for (int i = 0; i < r.k; ++i)
        sum += r.weight[row * r.k + i] * r.expert_out[r.place[row * r.k + i] * r.hidden + d];
      const float open = 1.0F / (1.0F + std::exp(-r.shared_gate[row]));
      r.out[row * r.hidden + d] = sum + open * r.shared_out[row * r.hidden + d];
    }
  }
}

}  // namespace rondo::reference
