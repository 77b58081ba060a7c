#include <cmath>

#include "ops/norm/norm_kernel.h"

namespace rondo::reference {

namespace {

float inverse_rms(const float* x, std::int64_t n, float eps) {
  float squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  return 1.0F / std::sqrt(squares / static_cast<float>(n) + eps);
}

}  // namespace

void rms_norm_range(const NormRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t at = 0; at < r.width; at += r.group) {
      const float* x = r.x + row * r.width + at;
      const float scale = inverse_rms(x, r.group, r.eps);
      for (std::int64_t d = 0; d < r.group; ++d) r.out[row * r.width + at + d] = x[d] * scale * r.gain[at + d];
    }
  }
}

void gated_norm_range(const NormRange& r) {
  for (std::int64_t row = r.begin; row < r.end; ++row) {
    for (std::int64_t at = 0; at < r.width; at += r.group) {
      const float* x = r.x + row * r.width + at;
      const float* z = r.gate + row * r.width + at;
      const float scale = inverse_rms(x, r.group, r.eps);
      for (std::int64_t d = 0; d < r.group; ++d) {
        const float sigmoid = 1.0F / (1.0F + std::exp(-z[d]));
        r.out[row * r.width + at + d] = r.gain[d] * (x[d] * scale) * (r.sigmoid_gate ? sigmoid : z[d] * sigmoid);
      }
    }
  }
}

}  // namespace rondo::reference
