// How likely drafts are to be kept: what a stream's own past says before anything is drafted, and what the head's own
// probabilities say after. Both err low: a draft not made costs little, one made in vain costs a row.
#pragma once

#include <array>
#include <span>

namespace rondo {

constexpr int kMaxDepth = 16;

// A share of successes that forgets: kept of seen, both fading, leaning on a prior while little was seen.
class FadingShare {
 public:
  void see(bool success) {
    kept_ = kept_ * kFade + (success ? 1.0F : 0.0F);
    seen_ = seen_ * kFade + 1.0F;
  }
  float share(float prior) const { return (kept_ + kPriorWeight * prior) / (seen_ + kPriorWeight); }

 private:
  static constexpr float kFade = 0.95F;        // some 20 rounds back
  static constexpr float kPriorWeight = 2.0F;  // as good as two observations
  float kept_ = 0, seen_ = 0;
};

// One stream, by depth: the share of drafts at depth d kept, of those whose predecessors were.
class StreamHistory {
 public:
  void see(int depth, bool kept) { by_depth_[index(depth)].see(kept); }
  float share(int depth, float prior) const { return by_depth_[index(depth)].share(prior); }

 private:
  static std::size_t index(int depth) {
    return static_cast<std::size_t>(depth < kMaxDepth ? depth - 1 : kMaxDepth - 1);
  }
  std::array<FadingShare, kMaxDepth> by_depth_;
};

// All streams together: what a new stream starts from, and how far the head's probabilities can be believed.
class Calibration {
 public:
  void see(int depth, float probability, bool kept);
  float prior(int depth) const;                      // for a stream without a past
  float chance(int depth, float probability) const;  // that a draft the head gave this probability is kept

 private:
  static constexpr int kBins = 12;
  static constexpr int kDepths = 3;  // 1, 2, deeper
  static std::size_t depth_class(int depth) {
    return static_cast<std::size_t>(depth < kDepths ? depth - 1 : kDepths - 1);
  }
  static std::size_t bin(float probability);
  std::array<std::array<FadingShare, kBins>, kDepths> by_probability_;
  std::array<FadingShare, kMaxDepth> by_depth_;
};

}  // namespace rondo
