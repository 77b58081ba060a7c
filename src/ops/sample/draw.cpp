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

// Logits shaped by bias, penalties and mask, in `room`.
class Shaped {
 public:
  Shaped(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row, DrawRoom room)
      : isa_(isa), all_(room.shaped.first(logits.size())), ids_(ids), seen_(room.seen) {
    std::copy(logits.begin(), logits.end(), all_.begin());
    if (!row.is_shifted) add_shifts(row);
    if (!row.mask.empty()) forbid(row.mask);
  }
  std::span<const float> all() const { return all_; }

 private:
  void add_shifts(const DrawRow& row) {
    for (const LogitBias& each : row.settings->bias) shift(find(each.id), each.bias);
    if (!row.settings->has_penalties()) return;
    for (const std::int32_t id : row.generated) penalise(id, *row.settings);
    for (const std::int32_t id : row.drafted) penalise(id, *row.settings);
    for (const std::int32_t id : row.generated) forget(id);
    for (const std::int32_t id : row.drafted) forget(id);
  }
  std::size_t find(std::int32_t id) const { return place_of(id, ids_, all_.size()); }
  void shift(std::size_t at, float by) {
    if (at < all_.size()) all_[at] += by;
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
  void forbid(TokenMask mask) {
    if (!ids_.empty()) {
      for (std::size_t i = 0; i < all_.size(); ++i) all_[i] = allows(mask, ids_[i]) ? all_[i] : kForbidden;
      return;
    }
    LogitMask all{.logits = all_.data(),
                  .n = static_cast<std::int64_t>(all_.size()),
                  .allowed = mask.data(),
                  .words = static_cast<std::int64_t>(mask.size())};
    RONDO_PICK(isa_, forbid_logits)(all);
  }

  Isa isa_;
  std::span<float> all_;
  std::span<const std::int32_t> ids_;
  std::span<std::uint32_t> seen_;
};

bool leaves_out(const DrawSettings& settings) { return settings.top_k > 0 || settings.top_p < 1 || settings.min_p > 0; }

bool shapes_logits(const DrawRow& row) { return (row.settings->shifts() && !row.is_shifted) || !row.mask.empty(); }

double chance(const Candidate& c, float most, double temperature) {
  return std::exp((static_cast<double>(c.logit) - most) / temperature);
}

double total_of(std::span<const Candidate> left, double temperature, float most) {
  double total = 0;
  for (const Candidate& c : left) total += chance(c, most, temperature);
  return total;
}

// A row of logits, and the token each stands for.
class Row {
 public:
  Row(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids)
      : isa_(isa), logits_(logits), ids_(ids), best_(at(highest())) {}
  std::size_t size() const { return logits_.size(); }
  Candidate at(std::size_t i) const { return {logits_[i], ids_.empty() ? static_cast<std::int32_t>(i) : ids_[i]}; }
  const Candidate& best() const { return best_; }  // the likeliest

  // Sum of all chances.
  double total(double temperature) const {
    LogitRow sum = pass();
    sum.most = best_.logit;
    sum.scale = static_cast<float>(1 / temperature);
    RONDO_PICK(isa_, sum_of_exps)(sum);
    return sum.total;
  }

  // The k likeliest of the logits above a floor, in no order: with what is found so far the row is passed over for
  // better ones, until it ends.
  std::span<Candidate> likeliest(std::size_t k, std::span<Candidate> room, float floor = kForbidden) const {
    LogitScan scan{.row = pass(), .above = floor, .begin = 0, .found = room.data(), .room = 0, .num_found = 0};
    const std::size_t held = std::min(size(), 4 * k + 1024);
    while (scan.begin < scan.row.n) {
      scan.room = static_cast<std::int64_t>(held);
      RONDO_PICK(isa_, find_likely)(scan);
      if (const auto found = static_cast<std::size_t>(scan.num_found); found > k) {
        const auto found_so_far = room.first(found);
        std::nth_element(found_so_far.begin(), found_so_far.begin() + static_cast<std::ptrdiff_t>(k - 1),
                         found_so_far.end(), likelier);
        scan.num_found = static_cast<std::int64_t>(k);
        scan.above = room[k - 1].logit;  // of equals the later ones have the higher ids
      }
    }
    const auto found = room.first(static_cast<std::size_t>(scan.num_found));
    for (Candidate& each : found) each = at(static_cast<std::size_t>(each.id));
    if (!found.empty()) return found;
    room[0] = best_;  // nothing is allowed
    return room.first(1);
  }

 private:
  LogitRow pass() const {
    return {.logits = logits_.data(),
            .n = static_cast<std::int64_t>(logits_.size()),
            .most = 0,
            .scale = 1,
            .best = 0,
            .total = 0};
  }
  std::size_t highest() const {
    LogitRow row = pass();
    RONDO_PICK(isa_, highest_logit)(row);
    return static_cast<std::size_t>(row.best);
  }

  Isa isa_;
  std::span<const float> logits_;
  std::span<const std::int32_t> ids_;
  Candidate best_;
};

// The shortest run of the likeliest whose chances reach `wanted`, at least one; all when they do not. Sorts them.
std::span<Candidate> shortest_run(std::span<Candidate> left, double temperature, double wanted, float most) {
  std::sort(left.begin(), left.end(), likelier);
  double reached = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    reached += chance(left[i], most, temperature);
    if (reached >= wanted) return left.first(i + 1);
  }
  return left;
}

constexpr std::size_t kFewLikely = 64;

// top_p of a whole row: a few of the likeliest will do for nearly every row, so they are looked for in steps.
std::span<Candidate> top_p_of(const Row& row, const DrawSettings& settings, std::span<Candidate> room) {
  const double wanted = settings.top_p * row.total(settings.temperature);
  for (std::size_t k = std::min(kFewLikely, row.size());; k = std::min(8 * k, row.size())) {
    const auto left = row.likeliest(k, room);
    const auto run = shortest_run(left, settings.temperature, wanted, row.best().logit);
    if (run.size() < left.size() || left.size() < k || k == row.size()) return run;
  }
}

// Under the logits that min_p leaves, by more than their rounding.
float floor_of(const DrawSettings& settings, float most) {
  if (settings.min_p <= 0) return kForbidden;
  const double floor = most + settings.temperature * std::log(static_cast<double>(settings.min_p));
  return static_cast<float>(floor - 1e-5 * (1 + std::abs(floor)));
}

std::span<Candidate> keep_min_p(std::span<Candidate> left, const DrawSettings& settings, float most) {
  if (settings.min_p <= 0) return left;
  const auto end = std::remove_if(left.begin(), left.end(), [&](const Candidate& c) {
    return chance(c, most, settings.temperature) < settings.min_p;
  });
  return left.first(static_cast<std::size_t>(end - left.begin()));
}

// What top_p and min_p leave of what top_k left.
std::span<Candidate> keep_of_top_k(std::span<Candidate> left, const DrawSettings& settings, float most) {
  if (settings.top_p < 1) {
    const double wanted = settings.top_p * total_of(left, settings.temperature, most);
    left = shortest_run(left, settings.temperature, wanted, most);
  }
  return keep_min_p(left, settings, most);
}

// What top_k, top_p and min_p leave.
std::span<Candidate> keep_likely(const Row& row, const DrawSettings& settings, std::span<Candidate> room) {
  const float most = row.best().logit;
  if (settings.top_k > 0 && static_cast<std::size_t>(settings.top_k) < row.size()) {
    return keep_of_top_k(row.likeliest(static_cast<std::size_t>(settings.top_k), room), settings, most);
  }
  const auto left =
      settings.top_p < 1 ? top_p_of(row, settings, room) : row.likeliest(row.size(), room, floor_of(settings, most));
  return keep_min_p(left, settings, most);
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

// Who was chosen, and its share among those left, at the temperature (at 1 where that is 0).
Candidate choose(const Row& row, const DrawRow& how, DrawRoom room, float* share) {
  const DrawSettings& settings = *how.settings;
  const double temperature = settings.temperature > 0 ? settings.temperature : 1.0;
  const float most = row.best().logit;
  if (settings.temperature > 0 && leaves_out(settings)) {
    const auto left = keep_likely(row, settings, room.candidates);
    const auto chosen = highest_score(
        left.size(), [&](std::size_t i) { return left[i]; }, row.best(), how);
    if (share != nullptr)
      *share = static_cast<float>(chance(chosen, most, temperature) / total_of(left, temperature, most));
    return chosen;
  }
  Candidate chosen = row.best();
  if (settings.temperature > 0)
    chosen = highest_score(
        row.size(), [&](std::size_t i) { return row.at(i); }, chosen, how);
  if (share != nullptr) *share = static_cast<float>(chance(chosen, most, temperature) / row.total(temperature));
  return chosen;
}

Candidate choose(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& how,
                 DrawRoom room, float* share) {
  CHECK(room.candidates.size() >= logits.size() && !logits.empty());
  if (!shapes_logits(how)) return choose(Row(isa, logits, ids), how, room, share);
  CHECK(room.shaped.size() >= logits.size());
  const Shaped shaped(isa, logits, ids, how, room);
  return choose(Row(isa, shaped.all(), ids), how, room, share);
}

}  // namespace

bool draws_from_all(const DrawSettings& settings) { return settings.temperature <= 0 || !leaves_out(settings); }

std::size_t place_of(std::int32_t id, std::span<const std::int32_t> ids, std::size_t size) {
  if (id < 0) return size;
  const auto at = static_cast<std::size_t>(id);
  if (ids.empty()) return std::min(at, size);
  if (at < ids.size() && ids[at] == id) return at;  // most of a draft vocabulary is the first of the whole one
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  return found != ids.end() && *found == id ? static_cast<std::size_t>(found - ids.begin()) : size;
}

double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t id) {
  return Noise::of(Noise(seed, position).bits(id));
}

std::int32_t draw(Isa isa, std::span<const float> logits, const DrawRow& row, DrawRoom room) {
  return choose(isa, logits, {}, row, room, nullptr).id;
}

Drawn draw_draft(Isa isa, std::span<const float> logits, std::span<const std::int32_t> ids, const DrawRow& row,
                 DrawRoom room) {
  Drawn out{};
  out.token = choose(isa, logits, ids, row, room, &out.probability).id;
  return out;
}

int num_likely(const DrawSettings& settings) { return settings.temperature <= 0 ? 0 : settings.top_k; }

Drawn draw_among(std::span<Candidate> likeliest, const DrawRow& row) {
  const DrawSettings& settings = *row.settings;
  const auto k = static_cast<std::size_t>(settings.top_k);
  CHECK(num_likely(settings) > 0 && !likeliest.empty());
  if (k < likeliest.size()) {
    std::nth_element(likeliest.begin(), likeliest.begin() + settings.top_k - 1, likeliest.end(), likelier);
    likeliest = likeliest.first(k);
  }
  std::sort(likeliest.begin(), likeliest.end(), likelier);  // they came in any order, and are added up
  const Candidate best = likeliest.front();
  const auto left = keep_of_top_k(likeliest, settings, best.logit);
  const auto chosen = highest_score(
      left.size(), [&](std::size_t i) { return left[i]; }, best, row);
  const double total = total_of(left, settings.temperature, best.logit);
  return {chosen.id, static_cast<float>(chance(chosen, best.logit, settings.temperature) / total)};
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

void logprobs_of(float chosen_logit, double log_total, std::span<Candidate> likeliest, int num_top, RowLogprobs& out) {
  CHECK(num_top <= std::min(kMaxTopLogprobs, static_cast<int>(likeliest.size())));
  out.chosen = static_cast<float>(chosen_logit - log_total);
  out.num_top = num_top;
  std::partial_sort(likeliest.begin(), likeliest.begin() + num_top, likeliest.end(), likelier);
  for (int i = 0; i < num_top; ++i) {
    out.top_ids[i] = likeliest[static_cast<std::size_t>(i)].id;
    out.top[i] = static_cast<float>(likeliest[static_cast<std::size_t>(i)].logit - log_total);
  }
}

}  // namespace rondo
