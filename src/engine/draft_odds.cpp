#include "engine/draft_odds.h"

#include <algorithm>

namespace rondo {

namespace {

constexpr float kFirstPrior = 0.6F;  // depth by depth, before anything was seen: worth a try where a row is cheap
constexpr float kLow = 0.97F;        // err low

}  // namespace

std::size_t Calibration::bin(float probability) {
  return static_cast<std::size_t>(std::clamp(static_cast<int>(probability * kBins), 0, kBins - 1));
}

void Calibration::see(int depth, float probability, bool kept) {
  by_probability_[depth_class(depth)][bin(probability)].see(kept);
  by_depth_[static_cast<std::size_t>(std::min(depth, kMaxDepth)) - 1].see(kept);
}

float Calibration::prior(int depth) const {
  return by_depth_[static_cast<std::size_t>(std::min(depth, kMaxDepth)) - 1].share(kFirstPrior);
}

float Calibration::chance(int depth, float probability) const {
  return kLow * by_probability_[depth_class(depth)][bin(probability)].share(probability);
}

}  // namespace rondo
