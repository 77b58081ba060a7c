#include "ops/common/simd.h"
#include "ops/moe/moe_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

float largest_of(const float* x, int n) {
  float most = x[0];
  for (int i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

float sum_of_exps(const float* x, int n, float most) {
  float total = 0;
  for (int i = 0; i < n; ++i) total += __builtin_expf(x[i] - most);
  return total;
}

// k passes over the logits: k is about ten, and the order comes out best first with ties to the lower expert.
void choose(const float* logits, int experts, int k, std::int32_t* chosen) {
  for (int i = 0; i < k; ++i) {
    int best = -1;
    for (int e = 0; e < experts; ++e) {
      bool taken = false;
      for (int j = 0; j < i; ++j) taken = taken || chosen[j] == e;
      if (!taken && (best < 0 || logits[e] > logits[best])) best = e;
    }
    chosen[i] = best;
  }
}

}  // namespace

void route_range(const RouteRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    const float* logits = r.logits + row * r.experts;
    std::int32_t* chosen = r.chosen + row * r.k;
    float* weight = r.weight + row * r.k;
    const float most = largest_of(logits, r.experts);
    choose(logits, r.experts, r.k, chosen);
    float total = 0;
    for (int i = 0; i < r.k; ++i) {
      weight[i] = __builtin_expf(logits[chosen[i]] - most);
      total += weight[i];
    }
    if (!r.normalise) total = sum_of_exps(logits, r.experts, most);
    for (int i = 0; i < r.k; ++i) weight[i] /= total;
  }
}

void combine_range(const CombineRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    const F32 open = all(1.0F / (1.0F + __builtin_expf(-r.shared_gate[row])));
    for_lanes(r.hidden, [&](std::int64_t d, int lanes) {
      F32 sum = zeros();
      for (int i = 0; i < r.k; ++i) {
        const float* from = r.expert_out + r.place[row * r.k + i] * r.hidden;
        sum = fma(all(r.weight[row * r.k + i]), load_n(from + d, lanes), sum);
      }
      sum = fma(open, load_n(r.shared_out + row * r.hidden + d, lanes), sum);
      store_n(r.out + row * r.hidden + d, sum, lanes);
    });
  }
}

}  // namespace rondo::RONDO_ISA
