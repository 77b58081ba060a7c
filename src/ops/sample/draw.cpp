#include "ops/sample/draw.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "ops/sample/sample_kernel.h"

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

bool leaves_out(const DrawSettings& settings) { return settings.top_k > 0 || settings.top_p < 1 || settings.min_p > 0; }

bool shapes_logits(const DrawRow& row) {
  return !row.settings->bias.empty() || row.settings->has_penalties() || !row.mask.empty();
}

double chance(const Candidate& c, float most, double temperature) {
  return std::exp((static_cast<double>(c.logit) - most) / temperature);
}

// The shortest run of the likeliest whose chances reach top_p of the whole; at least one. Sorts what it needs, in
// steps.
std::span<Candidate> keep_top_p(std::span<Candidate> left, double temperature, double top_p, float most) {
  double total = 0;
  for (const Candidate& c : left) total += chance(c, most, temperature);
  double reached = 0;
  std::size_t sorted = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (i == sorted) {
      sorted = std::min(left.size(), std::max<std::size_t>(64, sorted * 4));
      std::partial_sort(left.begin() + static_cast<std::ptrdiff_t>(i),
                        left.begin() + static_cast<std::ptrdiff_t>(sorted), left.end(), likelier);
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

std::size_t highest(Isa isa, std::span<const float> logits) {
  LogitRow row{.logits = logits.data(),
               .n = static_cast<std::int64_t>(logits.size()),
               .most = 0,
               .scale = 1,
               .best = 0,
               .total = 0};
  RONDO_PICK(isa, highest_logit)(row);
  return static_cast<std::size_t>(row.best);
}

float share_in_row(Isa isa, std::span<const float> logits, float chosen, float most, double temperature) {
  LogitRow sum{.logits = logits.data(),
               .n = static_cast<std::int64_t>(logits.size()),
               .most = most,
               .scale = static_cast<float>(1 / temperature),
               .best = 0,
               .total = 0};
  RONDO_PICK(isa, sum_of_exps)(sum);
  return static_cast<float>(std::exp((static_cast<double>(chosen) - most) / temperature)) / sum.total;
}

// The noise of one row's tokens, and a bound on it that takes no logarithm.
class Noise {
 public:
  Noise(std::uint64_t seed, std::int64_t position)
      : key_(mix64(mix64(seed) + static_cast<std::uint64_t>(position))) {}  // what random_bits makes of its first two
  std::uint64_t bits(std::int32_t id) const { return mix64(key_ + static_cast<std::uint64_t>(id)); }
  static double of(std::uint64_t bits) { return -std::log(-std::log(unit_interval(bits))); }

  // With v = 1 - u, -log(u) >= v, so the noise is at most -log(v). The bits give v = (m + 1/2) * 2^-52 with a whole m,
  // and m has 64 - clz(m) digits: v is at least 2^-(1 + leading zeros of m among 52 digits).
  static double at_most(std::uint64_t bits) {
    const std::uint64_t m = ~bits >> 12;
    constexpr double kLog2 = 0.693147180559945310;
    return kLog2 * (std::countl_zero(m) - 11) + kRounding;
  }
  static constexpr double kMost = 37;  // 53 log 2 and more

 private:
  static constexpr double kRounding = 1e-6;  // of the two logarithms and the sum: far above it
  std::uint64_t key_;
};

// The token with the highest score of `n`, ties to the lower id. Most tokens are out of reach of the best so far
// whatever their noise, and most of the rest by the bound on it: few logarithms are taken, and the choice is the same.
template <class CandidateAt>
Candidate highest_score(std::size_t n, CandidateAt candidate_at, const Candidate& likeliest, const DrawRow& row) {
  const double temperature = row.settings->temperature;
  const Noise noise(row.settings->seed, row.position);
  Candidate chosen = likeliest;
  double highest = static_cast<double>(likeliest.logit) / temperature + Noise::of(noise.bits(likeliest.id));
  for (std::size_t i = 0; i < n; ++i) {
    const Candidate c = candidate_at(i);
    const double weight = static_cast<double>(c.logit) / temperature;
    if (weight + Noise::kMost < highest) continue;
    const std::uint64_t bits = noise.bits(c.id);
    if (weight + Noise::at_most(bits) < highest) continue;
    const double score = weight + Noise::of(bits);
    if (score > highest || (score == highest && c.id < chosen.id)) {
      chosen = c;
      highest = score;
    }
  }
  return chosen;
}

// Who was chosen, and among whom: what a draft's probability is taken from.
struct Choice {
  Candidate chosen;
  std::span<const Candidate> left;  // empty: the whole row
  float most;
};

Choice choose(std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row, DrawRoom room) {
  const DrawSettings& settings = *row.settings;
  std::span<Candidate> left = Candidates(logits, ids, row, room).all();
  const Candidate best = *std::min_element(left.begin(), left.end(), likelier);
  if (settings.temperature <= 0) return {best, left, best.logit};
  left = keep_likely(left, settings, best.logit);
  const auto candidate_at = [&](std::size_t i) { return left[i]; };
  return {highest_score(left.size(), candidate_at, best, row), left, best.logit};
}

// Drawn straight from the logits: nothing is shaped and nothing left out.
Choice choose_unshaped(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row) {
  const auto candidate_at = [&](std::size_t i) {
    return Candidate{logits[i], ids.empty() ? static_cast<std::int32_t>(i) : ids[i]};
  };
  const Candidate best = candidate_at(highest(isa, logits));
  if (row.settings->temperature <= 0) return {best, {}, best.logit};
  return {highest_score(logits.size(), candidate_at, best, row), {}, best.logit};
}

}  // namespace

bool draws_unshaped(const DrawRow& row) {
  return !shapes_logits(row) && (row.settings->temperature <= 0 || !leaves_out(*row.settings));
}

double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t id) {
  return Noise::of(Noise(seed, position).bits(id));
}

std::int32_t draw(Isa isa, std::span<const float> logits, const DrawRow& row, DrawRoom room) {
  CHECK(room.candidates.size() >= logits.size() && !logits.empty());
  if (draws_unshaped(row)) return choose_unshaped(isa, logits, {}, row).chosen.id;
  return choose(logits, {}, row, room).chosen.id;
}

Drawn draw_draft(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row,
                 DrawRoom room) {
  CHECK(room.candidates.size() >= logits.size() && !logits.empty());
  const double temperature = row.settings->temperature > 0 ? row.settings->temperature : 1.0;
  if (draws_unshaped(row)) {
    const Choice choice = choose_unshaped(isa, logits, ids, row);
    return {choice.chosen.id, share_in_row(isa, logits, choice.chosen.logit, choice.most, temperature)};
  }
  const Choice choice = choose(logits, ids, row, room);
  return {choice.chosen.id, share_of(choice.left, choice.chosen, choice.most, temperature)};
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
