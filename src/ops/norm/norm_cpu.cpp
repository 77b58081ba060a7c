#include "ops/common/simd.h"
#include "ops/norm/norm_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

// Four sums side by side hide the latency of the multiply-add.
float sum_of_squares(const float* x, std::int64_t n) {
  F32 sums[4] = {zeros(), zeros(), zeros(), zeros()};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const F32 v = load(x + i + j * kLanes);
      sums[j] = fma(v, v, sums[j]);
    }
  }
  for_lanes(n - i, [&](std::int64_t at, int lanes) {
    const F32 v = load_n(x + i + at, lanes);
    sums[0] = fma(v, v, sums[0]);
  });
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

float inverse_rms(const float* x, std::int64_t n, float eps) {
  return 1.0F / __builtin_sqrtf(sum_of_squares(x, n) / static_cast<float>(n) + eps);
}

}  // namespace

void rms_norm_range(const NormRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t group = 0; group < r.width; group += r.group) {
      const float* x = r.x + row * r.width + group;
      float* out = r.out + row * r.width + group;
      const F32 scale = all(inverse_rms(x, r.group, r.eps));
      for_lanes(r.group, [&](std::int64_t d, int lanes) {
        store_n(out + d, load_n(x + d, lanes) * scale * load_n(r.gain + group + d, lanes), lanes);
      });
    }
  }
}

void gated_norm_range(const NormRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t head = 0; head < r.width; head += r.group) {
      const float* x = r.x + row * r.width + head;
      const float* gate = r.gate + row * r.width + head;
      float* out = r.out + row * r.width + head;
      const F32 scale = all(inverse_rms(x, r.group, r.eps));
      for_lanes(r.group, [&](std::int64_t d, int lanes) {
        const F32 z = load_n(gate + d, lanes);
        const F32 act = r.sigmoid_gate ? sigmoid(z) : silu(z);
        store_n(out + d, load_n(r.gain + d, lanes) * (load_n(x + d, lanes) * scale) * act, lanes);
      });
    }
  }
}

}  // namespace rondo::RONDO_ISA
