#include <cmath>
#include <numbers>

#include "ops/attention/attention.h"

namespace rondo {

namespace {

// Static YaRN: frequencies that turn fewer than beta_slow = 1 times over the original context are divided by the
// factor, those that turn more than beta_fast = 32 times are kept, in between a ramp.
double yarn_frequency(double frequency, int index, RopeSpec spec) {
  const auto index_of_turns = [&](double turns) {
    return spec.rotary_dim * std::log(spec.original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(spec.theta));
  };
  const double low = std::max(std::floor(index_of_turns(32)), 0.0);
  const double high = std::min(std::ceil(index_of_turns(1)), spec.rotary_dim - 1.0);
  const double ramp = std::clamp((index - low) / std::max(high - low, 0.001), 0.0, 1.0);
  return frequency / spec.yarn_factor * ramp + frequency * (1 - ramp);
}

}  // namespace

void fill_rope_table(RopeSpec spec, Tensor table) {
  const int half = spec.rotary_dim / 2;
  CHECK(table.width() == 2 * half);
  const bool yarn = spec.yarn_factor > 1;
  const auto magnitude = static_cast<float>(yarn ? 0.1 * std::log(spec.yarn_factor) + 1 : 1);
  for (int i = 0; i < half; ++i) {
    double frequency = std::pow(spec.theta, -2.0 * i / spec.rotary_dim);
    if (yarn) frequency = yarn_frequency(frequency, i, spec);
    const auto rounded = static_cast<float>(frequency);
    for (std::int64_t pos = 0; pos < table.rows(); ++pos) {
      const float angle = static_cast<float>(pos) * rounded;
      float* row = table.f32() + pos * 2 * half;
      row[i] = std::cos(angle) * magnitude;
      row[half + i] = std::sin(angle) * magnitude;
    }
  }
}

}  // namespace rondo
