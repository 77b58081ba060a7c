#include "ops/common/simd.h"
#include "ops/sample/sample_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

constexpr std::int64_t kStretch = 1024;  // logits whose maximum is taken before any is looked at by itself

float largest_of(const float* x, std::int64_t n) {
  F32 most = all(x[0]);
  for_lanes(n, [&](std::int64_t i, int lanes) {
    // Lanes past the end would be zeros; the first element stands in for them.
    most = lanes == kLanes ? max(most, load(x + i)) : most;
  });
  float out = largest(most);
  for (std::int64_t i = n / kLanes * kLanes; i < n; ++i) out = x[i] > out ? x[i] : out;
  return out;
}

}  // namespace

void highest_logit(LogitRow& r) {
  float most = 0;
  std::int64_t where = 0;
  for (std::int64_t begin = 0; begin < r.n; begin += kStretch) {
    const std::int64_t n = r.n - begin < kStretch ? r.n - begin : kStretch;
    const float here = largest_of(r.logits + begin, n);
    if (begin == 0 || here > most) {
      most = here;
      where = begin;
    }
  }
  r.best = where;
  while (r.best + 1 < r.n && r.logits[r.best] != most) ++r.best;  // bounded, should the row hold a NaN
}

void sum_of_exps(LogitRow& r) {
  F32 total = zeros();
  for_lanes(r.n, [&](std::int64_t i, int lanes) {
    const F32 weight = exp((load_n(r.logits + i, lanes) - all(r.most)) * all(r.scale));
    if (lanes == kLanes) {
      total = total + weight;
    } else {
      float rest[kLanes] = {};
      store_first(rest, weight, lanes);
      total = total + load(rest);
    }
  });
  r.total = sum(total);
}

void find_likely(LogitScan& r) {
  while (r.begin < r.row.n) {
    const std::int64_t n = r.row.n - r.begin < kScanned ? r.row.n - r.begin : kScanned;
    if (r.room - r.num_found < n) return;
    const float* logits = r.row.logits + r.begin;
    if (largest_of(logits, n) > r.above) {
      for (std::int64_t i = 0; i < n; ++i) {
        if (logits[i] > r.above) r.found[r.num_found++] = {logits[i], static_cast<std::int32_t>(r.begin + i)};
      }
    }
    r.begin += n;
  }
}

void forbid_logits(LogitMask& m) {
  for (std::int64_t begin = 0; begin < m.n; begin += 32) {
    const std::uint32_t word = begin / 32 < m.words ? m.allowed[begin / 32] : 0;
    const int count = m.n - begin < 32 ? static_cast<int>(m.n - begin) : 32;
    float* logits = m.logits + begin;
    for (int i = 0; i < count; ++i) logits[i] = (word >> i & 1u) != 0 ? logits[i] : -__builtin_inff();
  }
}

}  // namespace rondo::RONDO_ISA
