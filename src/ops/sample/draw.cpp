#include "ops/sample/draw.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace rondo {

namespace {

std::int32_t highest(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  return static_cast<std::int32_t>(best);
}

bool likelier(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

// The shortest run of the likeliest whose chances reach top_p of the whole; at least one. Sorts what it needs, in
// steps.
std::span<Candidate> keep_top_p(std::span<Candidate> left, double temperature, double top_p, float most) {
  const auto chance = [&](const Candidate& c) { return std::exp((static_cast<double>(c.logit) - most) / temperature); };
  double total = 0;
  for (const Candidate& c : left) total += chance(c);
  double reached = 0;
  std::size_t sorted = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (i == sorted) {
      sorted = std::min(left.size(), std::max<std::size_t>(64, sorted * 4));
      std::partial_sort(left.begin() + static_cast<std::ptrdiff_t>(i),
                        left.begin() + static_cast<std::ptrdiff_t>(sorted), left.end(), likelier);
    }
    reached += chance(left[i]);
    if (reached >= top_p * total) return left.first(i + 1);
  }
  return left;
}

std::span<Candidate> keep_min_p(std::span<Candidate> left, double temperature, double min_p, float most) {
  const auto end = std::remove_if(left.begin(), left.end(), [&](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - most) / temperature) < min_p;
  });
  return left.first(static_cast<std::size_t>(end - left.begin()));
}

}  // namespace

double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t id) {
  const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(id));
  return -std::log(-std::log(unit_interval(bits)));
}

std::int32_t draw(std::span<const float> logits, const DrawSettings& settings, std::int64_t position,
                  std::span<Candidate> room) {
  CHECK(room.size() >= logits.size() && !logits.empty());
  const std::int32_t best = highest(logits);
  if (settings.temperature <= 0) return best;
  const float most = logits[static_cast<std::size_t>(best)];
  const double temperature = settings.temperature;
  std::span<Candidate> left = room.first(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) left[i] = {logits[i], static_cast<std::int32_t>(i)};
  if (settings.top_k > 0 && static_cast<std::size_t>(settings.top_k) < left.size()) {
    std::nth_element(left.begin(), left.begin() + settings.top_k, left.end(), likelier);
    left = left.first(static_cast<std::size_t>(settings.top_k));
  }
  if (settings.top_p < 1) left = keep_top_p(left, temperature, settings.top_p, most);
  if (settings.min_p > 0) left = keep_min_p(left, temperature, settings.min_p, most);
  const Candidate* chosen = nullptr;
  double highest_score = 0;
  for (const Candidate& c : left) {
    const double score = static_cast<double>(c.logit) / temperature + gumbel_noise(settings.seed, position, c.id);
    if (chosen == nullptr || score > highest_score || (score == highest_score && c.id < chosen->id)) {
      chosen = &c;
      highest_score = score;
    }
  }
  return chosen->id;
}

}  // namespace rondo
