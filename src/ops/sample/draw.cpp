#include "ops/sample/draw.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace rondo {

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

bool likelier(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

// The candidates of a row before any is left out: every logit, shaped by bias, penalties and mask.
class Candidates {
 public:
  Candidates(std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row, DrawRoom room)
      : all_(room.candidates.first(logits.size())), ids_(ids), seen_(room.seen) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i] = {logits[i], ids.empty() ? static_cast<std::int32_t>(i) : ids[i]};
    }
    for (const LogitBias& each : row.settings->bias) shift(find(each.id), each.bias);
    if (row.settings->has_penalties()) {
      for (const std::int32_t id : row.generated) penalise(id, *row.settings);
      for (const std::int32_t id : row.drafted) penalise(id, *row.settings);
      for (const std::int32_t id : row.generated) forget(id);
      for (const std::int32_t id : row.drafted) forget(id);
    }
    if (!row.mask.empty()) {
      for (Candidate& each : all_) each.logit = allows(row.mask, each.id) ? each.logit : kForbidden;
    }
  }
  std::span<Candidate> all() const { return all_; }

 private:
  // Where a token stands; all_.size() when it has no logit here.
  std::size_t find(std::int32_t id) const {
    if (ids_.empty()) return id >= 0 ? std::min(static_cast<std::size_t>(id), all_.size()) : all_.size();
    const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
    return at != ids_.end() && *at == id ? static_cast<std::size_t>(at - ids_.begin()) : all_.size();
  }
  void shift(std::size_t at, float by) {
    if (at < all_.size()) all_[at].logit += by;
  }
  void penalise(std::int32_t id, const DrawSettings& settings) {
    const std::size_t at = find(id);
    if (at == all_.size()) return;
    std::uint32_t& word = seen_[at / 32];
    const std::uint32_t bit = 1u << (at % 32);
    shift(at, -settings.frequency_penalty - ((word & bit) == 0 ? settings.presence_penalty : 0));
    word |= bit;
  }
  void forget(std::int32_t id) {
    if (const std::size_t at = find(id); at < all_.size()) seen_[at / 32] &= ~(1u << (at % 32));
  }

  std::span<Candidate> all_;
  std::span<const std::int32_t> ids_;
  std::span<std::uint32_t> seen_;
};

bool shapes_logits(const DrawRow& row) {
  return !row.settings->bias.empty() || row.settings->has_penalties() || !row.mask.empty();
}

double chance(const Candidate& c, float most, double temperature) {
  return std::exp((static_cast<double>(c.logit) - most) / temperature);
}

// The shortest run of the likeliest whose chances reach top_p of the whole; at least one. Sorts what it needs, in steps.
std::span<Candidate> keep_top_p(std::span<Candidate> left, double temperature, double top_p, float most) {
  double total = 0;
  for (const Candidate& c : left) total += chance(c, most, temperature);
  double reached = 0;
  std::size_t sorted = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (i == sorted) {
      sorted = std::min(left.size(), std::max<std::size_t>(64, sorted * 4));
      std::partial_sort(left.begin() + static_cast<std::ptrdiff_t>(i), left.begin() + static_cast<std::ptrdiff_t>(sorted),
                        left.end(), likelier);
    }
    reached += chance(left[i], most, temperature);
    if (reached >= top_p * total) return left.first(i + 1);
  }
  return left;
}

std::span<Candidate> keep_min_p(std::span<Candidate> left, double temperature, double min_p, float most) {
  const auto end = std::remove_if(left.begin(), left.end(),
                                  [&](const Candidate& c) { return chance(c, most, temperature) < min_p; });
  return left.first(static_cast<std::size_t>(end - left.begin()));
}

// What top_k, top_p and min_p leave.
std::span<Candidate> keep_likely(std::span<Candidate> left, const DrawSettings& settings, float most) {
  if (settings.top_k > 0 && static_cast<std::size_t>(settings.top_k) < left.size()) {
    std::nth_element(left.begin(), left.begin() + settings.top_k, left.end(), likelier);
    left = left.first(static_cast<std::size_t>(settings.top_k));
  }
  if (settings.top_p < 1) left = keep_top_p(left, settings.temperature, settings.top_p, most);
  if (settings.min_p > 0) left = keep_min_p(left, settings.temperature, settings.min_p, most);
  return left;
}

float share_of(std::span<const Candidate> left, const Candidate& chosen, float most, double temperature) {
  double total = 0;
  for (const Candidate& c : left) total += chance(c, most, temperature);
  return static_cast<float>(chance(chosen, most, temperature) / total);
}

// Greedy on logits as they are: the common case of a lone reader, without a copy of the row.
Drawn highest(std::span<const float> logits, std::span<const std::int32_t> ids) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[best]) best = i;
  }
  float total = 0;
  for (const float logit : logits) total += std::exp(logit - logits[best]);
  return {ids.empty() ? static_cast<std::int32_t>(best) : ids[best], 1.0F / total};
}

}  // namespace

double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t id) {
  const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(id));
  return -std::log(-std::log(unit_interval(bits)));
}

Drawn draw(std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row, DrawRoom room) {
  CHECK(room.candidates.size() >= logits.size() && !logits.empty());
  const DrawSettings& settings = *row.settings;
  if (settings.temperature <= 0 && !shapes_logits(row)) return highest(logits, ids);
  std::span<Candidate> left = Candidates(logits, ids, row, room).all();
  const Candidate best = *std::min_element(left.begin(), left.end(), likelier);
  const float most = best.logit;
  if (settings.temperature <= 0) return {best.id, share_of(left, best, most, 1)};
  left = keep_likely(left, settings, most);
  const Candidate* chosen = nullptr;
  double highest_score = 0;
  for (const Candidate& c : left) {
    if (c.logit == kForbidden) continue;
    const double score = static_cast<double>(c.logit) / settings.temperature + gumbel_noise(settings.seed, row.position, c.id);
    if (chosen == nullptr || score > highest_score || (score == highest_score && c.id < chosen->id)) {
      chosen = &c;
      highest_score = score;
    }
  }
  if (chosen == nullptr) return {best.id, 1};  // nothing is allowed: the grammar's owner sees that this is not
  return {chosen->id, share_of(left, *chosen, most, settings.temperature)};
}

void logprobs(std::span<const float> logits, std::int32_t chosen, int num_top, RowLogprobs& out) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - most);
  const double log_total = most + std::log(total);
  out.chosen = static_cast<float>(logits[static_cast<std::size_t>(chosen)] - log_total);
  out.num_top = std::min({num_top, kMaxTopLogprobs, static_cast<int>(logits.size())});
  // The best so far in order; ties to the lower id, as they come first.
  int found = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (found == out.num_top && (found == 0 || logits[i] <= out.top[found - 1])) continue;
    int at = found < out.num_top ? found++ : found - 1;
    for (; at > 0 && out.top[at - 1] < logits[i]; --at) {
      out.top[at] = out.top[at - 1];
      out.top_ids[at] = out.top_ids[at - 1];
    }
    out.top[at] = logits[i];
    out.top_ids[at] = static_cast<std::int32_t>(i);
  }
  for (int i = 0; i < found; ++i) out.top[i] = static_cast<float>(out.top[i] - log_total);
}

}  // namespace rondo
