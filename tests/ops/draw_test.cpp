#include "ops/sample/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/random.h"
#include "tests/ops/arrays.h"
#include "tests/ops/machine.h"

namespace rondo {
namespace {

// Scratch that a draw may use, as the model has it for each thread.
struct Room {
  explicit Room(std::size_t n) : candidates(n), shaped(n), seen((n + 31) / 32) {}
  DrawRoom view() { return {candidates, shaped, seen}; }
  std::vector<Candidate> candidates;
  std::vector<float> shaped;
  std::vector<std::uint32_t> seen;
};

std::int32_t drawn(const std::vector<float>& logits, const DrawSettings& settings, std::int64_t position,
                   std::span<const std::int32_t> generated = {}, std::span<const std::int32_t> drafted = {},
                   TokenMask mask = {}, Isa isa = best_isa()) {
  Room room(logits.size());
  const DrawRow row{
      .settings = &settings, .position = position, .generated = generated, .drafted = drafted, .mask = mask};
  const std::int32_t token = draw(isa, logits, row, room.view());
  for (const std::uint32_t word : room.seen) EXPECT_EQ(word, 0u);  // clear again for the next draw
  return token;
}

std::vector<float> random_logits(int vocab, std::uint64_t seed, float scale = 3) {
  std::vector<float> out = random_f32({vocab}, seed).to_vector();
  for (float& each : out) each *= scale;
  return out;
}

// The header's words, step by step over a fully sorted list: which tokens are left.
std::vector<std::int32_t> left_by(const std::vector<float>& logits, const DrawSettings& settings) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logit(a) > logit(b); });
  const float most = logit(order[0]);
  const auto chance = [&](std::int32_t id) {
    return std::exp((static_cast<double>(logit(id)) - most) / settings.temperature);
  };
  if (settings.top_k > 0 && order.size() > static_cast<std::size_t>(settings.top_k))
    order.resize(static_cast<std::size_t>(settings.top_k));
  if (settings.top_p < 1) {
    double total = 0, reached = 0;
    for (const auto id : order) total += chance(id);
    std::size_t keep = 0;
    while (keep < order.size() && (keep == 0 || reached < settings.top_p * total)) reached += chance(order[keep++]);
    order.resize(keep);
  }
  if (settings.min_p > 0) std::erase_if(order, [&](auto id) { return chance(id) < settings.min_p; });
  return order;
}

std::int32_t naive_draw(const std::vector<float>& logits, const DrawSettings& settings, std::int64_t position) {
  auto left = left_by(logits, settings);
  std::sort(left.begin(), left.end());
  double best_score = -std::numeric_limits<double>::infinity();
  std::int32_t best = left[0];
  for (const auto id : left) {
    const double score = static_cast<double>(logits[static_cast<std::size_t>(id)]) / settings.temperature +
                         gumbel_noise(settings.seed, position, id);
    if (score > best_score) {
      best_score = score;
      best = id;
    }
  }
  return best;
}

TEST(Draw, AtTemperatureZeroIsTheHighestLogitTiesToTheLowerId) {
  EXPECT_EQ(drawn({1, 5, 2, 5, 5}, {.temperature = 0}, 3), 1);
  EXPECT_EQ(drawn({0.0F, -0.0F}, {.temperature = 0}, 3), 0);
  EXPECT_EQ(drawn({-0.0F, 0.0F}, {.temperature = 0}, 3), 0);
  EXPECT_EQ(drawn({-std::numeric_limits<float>::infinity(), -3}, {.temperature = 0}, 3), 1);
}

const std::vector<DrawSettings> kSettings = {
    {.temperature = 1},
    {.temperature = 0.3F},
    {.temperature = 2.5F},
    {.temperature = 1, .top_k = 1},
    {.temperature = 1, .top_k = 20},
    {.temperature = 1, .top_k = 5000},
    {.temperature = 0.7F, .top_p = 0.9F},
    {.temperature = 1, .top_p = 0.05F},
    {.temperature = 1, .top_p = 0},
    {.temperature = 5, .top_p = 0.999F},
    {.temperature = 1, .min_p = 0.1F},
    {.temperature = 1, .min_p = 1},
    {.temperature = 0.8F, .top_k = 40, .top_p = 0.95F, .min_p = 0.05F},
};

TEST(Draw, IsTheNaiveDrawUnderEverySetting) {
  for (const int vocab : {1, 2, 63, 64, 65, 1000}) {
    for (DrawSettings settings : kSettings) {
      for (std::uint64_t seed = 0; seed < 30; ++seed) {
        settings.seed = seed;
        const auto logits = random_logits(vocab, seed, 1 + static_cast<float>(seed % 5) * 3);
        ASSERT_EQ(drawn(logits, settings, 17), naive_draw(logits, settings, 17))
            << vocab << " tokens, temperature " << settings.temperature << ", top_k " << settings.top_k << ", top_p "
            << settings.top_p << ", min_p " << settings.min_p;
      }
    }
  }
}

// So many tokens that the likeliest are found in several passes, on every instruction set; and masked ones among them.
TEST(Draw, IsTheNaiveDrawOfALargeVocabulary) {
  std::vector<std::uint32_t> mask(9007 / 32 + 1);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::uint32_t>(random_bits(1, i));
  for (DrawSettings settings : kSettings) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      settings.seed = seed;
      const auto logits = random_logits(9007, seed, 1 + static_cast<float>(seed) * 3);
      auto allowed = logits;
      for (std::size_t i = 0; i < allowed.size(); ++i) {
        if (!allows(mask, static_cast<std::int32_t>(i))) allowed[i] = -std::numeric_limits<float>::infinity();
      }
      const std::int32_t want = naive_draw(logits, settings, 17), want_allowed = naive_draw(allowed, settings, 17);
      for (const Isa isa : all_isas()) {
        if (isa == Isa::Sm90) continue;  // draw_rows_test.cpp has that
        ASSERT_EQ(drawn(logits, settings, 17, {}, {}, {}, isa), want) << isa_name(isa) << ", top_k " << settings.top_k;
        ASSERT_EQ(drawn(logits, settings, 17, {}, {}, mask, isa), want_allowed) << isa_name(isa) << ", masked";
      }
    }
  }
}

// As a GPU's rows are drawn: the likeliest and some more, in another order.
TEST(Draw, IsTheSameFromTheLikeliestAlone) {
  for (DrawSettings settings : kSettings) {
    for (settings.seed = 0; settings.seed < 30; ++settings.seed) {
      const auto logits = random_logits(1000, settings.seed, 2);
      const DrawRow row{.settings = &settings, .position = 5, .generated = {}, .drafted = {}, .mask = {}};
      if (num_likely(settings) == 0) continue;
      std::vector<Candidate> found;
      for (std::int32_t id = 999; id >= 0; --id) found.push_back({logits[static_cast<std::size_t>(id)], id});
      std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.logit > b.logit; });
      found.resize(std::min<std::size_t>(found.size(), static_cast<std::size_t>(settings.top_k) + 9));
      std::reverse(found.begin(), found.end());
      EXPECT_EQ(draw_among(found, row).token, drawn(logits, settings, 5)) << "top_k " << settings.top_k;
    }
  }
}

TEST(Draw, BreaksTiesAtTheEdgeOfTopKAndTopPToTheLowerId) {
  const std::vector<float> level(100, 1.5F);
  std::set<std::int32_t> by_k, by_p;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    by_k.insert(drawn(level, {.temperature = 1, .top_k = 7, .seed = seed}, 0));
    by_p.insert(drawn(level, {.temperature = 1, .top_p = 0.0699F, .seed = seed}, 0));
  }
  EXPECT_EQ(by_k, (std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(by_p, (std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Draw, NeverTakesATokenThatIsMaskedAway) {
  auto logits = random_logits(50, 1);
  for (std::size_t i = 0; i < logits.size(); i += 2) logits[i] = -std::numeric_limits<float>::infinity();
  for (DrawSettings settings : kSettings) {
    for (settings.seed = 0; settings.seed < 100; ++settings.seed) ASSERT_EQ(drawn(logits, settings, 2) % 2, 1);
  }
}

// Chi-square over many seeds or positions against the chances of those left.
double chi_square(const std::vector<float>& logits, DrawSettings settings, bool by_seed, const DrawSettings& meant) {
  constexpr int kDraws = 20000;
  std::vector<double> seen(logits.size(), 0), chance(logits.size(), 0);
  for (int i = 0; i < kDraws; ++i) {
    settings.seed = by_seed ? static_cast<std::uint64_t>(i) : 77;
    ++seen[static_cast<std::size_t>(drawn(logits, settings, by_seed ? 5 : i))];
  }
  double total = 0, sum = 0;
  for (const auto id : left_by(logits, meant)) {
    const auto at = static_cast<std::size_t>(id);
    total += chance[at] = std::exp(static_cast<double>(logits[at]) / meant.temperature);
  }
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = kDraws * chance[i] / total;
    if (expected == 0 && seen[i] > 0) return std::numeric_limits<double>::infinity();
    if (expected > 0) sum += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  return sum;
}

// 11 degrees of freedom: above 45 once in 200,000 times. Seeds are fixed, so this never flickers.
constexpr double kBound = 45;

TEST(Draw, FollowsTheSoftmaxOverSeedsAndOverPositions) {
  const auto logits = random_logits(12, 4, 1.5F);
  for (const bool by_seed : {true, false}) {
    for (const DrawSettings& settings : {DrawSettings{.temperature = 1}, DrawSettings{.temperature = 0.6F},
                                         DrawSettings{.temperature = 1, .top_k = 6, .top_p = 0.9F}}) {
      EXPECT_LT(chi_square(logits, settings, by_seed, settings), kBound);
    }
  }
}

// Planted controls: the bound must see a temperature a tenth off, and a top_k one too many.
TEST(Draw, AnotherTemperatureIsSeen) {
  const auto logits = random_logits(12, 4, 1.5F);
  EXPECT_GT(chi_square(logits, {.temperature = 1.1F}, true, {.temperature = 1}), kBound);
}
TEST(Draw, OneTokenTooManyIsSeen) {
  const auto logits = random_logits(12, 4, 1.5F);
  EXPECT_GT(chi_square(logits, {.temperature = 1, .top_k = 7}, true, {.temperature = 1, .top_k = 6}), kBound);
}

TEST(Draw, TheSameKeyGivesTheSameTokenAndAnotherKeyAnother) {
  const std::vector<float> level(1000, 0.0F);
  int by_seed = 0, by_position = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const auto token = drawn(level, {.seed = i}, at);
    EXPECT_EQ(drawn(level, {.seed = i}, at), token);
    by_seed += drawn(level, {.seed = i + 1}, at) == token;
    by_position += drawn(level, {.seed = i}, at + 1) == token;
  }
  EXPECT_LE(by_seed, 3);
  EXPECT_LE(by_position, 3);
}

TEST(Draw, NoiseIsKeyedByAllOfSeedPositionAndId) {
  std::set<double> seen;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int k = 0; k < 8; ++k) seen.insert(gumbel_noise(static_cast<std::uint64_t>(i), j, k));
    }
  }
  EXPECT_EQ(seen.size(), 512U);
}

// What top_k leaves out does not move the draw among the rest: so a draft from a smaller vocabulary meets the same
// noise.
TEST(Draw, IsUnmovedByTokensThatCannotWin) {
  auto logits = random_logits(200, 8);
  auto longer = logits;
  longer.insert(longer.end(), 300, -1000.0F);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(drawn(longer, {.seed = seed}, 9), drawn(logits, {.seed = seed}, 9));
  }
}

TEST(Draw, BiasComesBeforeEverythingElse) {
  EXPECT_EQ(drawn({1, 2, 3}, {.temperature = 0, .bias = {{0, 5}}}, 0), 0);
  EXPECT_EQ(drawn({1, 2, 3}, {.temperature = 1, .top_k = 1, .bias = {{2, -100}}}, 0), 1);
  EXPECT_EQ(drawn({1, 2, 3}, {.temperature = 0, .bias = {{7, 100}, {-1, 100}}}, 0),
            2);  // ids without a logit are nothing
}

TEST(Draw, PenaltiesCountWhatWasGeneratedAndDraftedBefore) {
  const DrawSettings presence{.temperature = 0, .presence_penalty = 1.5F};
  const std::vector<float> logits{0, 1, 2};
  EXPECT_EQ(drawn(logits, presence, 0), 2);
  EXPECT_EQ(drawn(logits, presence, 0, std::vector<std::int32_t>{2}), 1);
  EXPECT_EQ(drawn(logits, presence, 0, std::vector<std::int32_t>{2, 2, 2, 2}), 1);  // once, however often
  const DrawSettings frequency{.temperature = 0, .frequency_penalty = 0.6F};
  EXPECT_EQ(drawn(logits, frequency, 0, std::vector<std::int32_t>{2}), 2);
  EXPECT_EQ(drawn(logits, frequency, 0, std::vector<std::int32_t>{2}, std::vector<std::int32_t>{2}), 1);
  // A draft counts as a generated token does: the same tokens, however they are divided.
  const std::vector<std::int32_t> all{2, 1, 2, 0};
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    EXPECT_EQ(drawn(logits, frequency, 3, std::span(all).first(cut), std::span(all).subspan(cut)),
              drawn(logits, frequency, 3, all));
  }
}

TEST(Draw, OnlyAllowedTokensAreDrawn) {
  const std::vector<std::uint32_t> mask{0b01010u, 0b1u};  // 1, 3 and 32
  std::vector<float> logits = random_logits(40, 5);
  for (int position = 0; position < 200; ++position) {
    const std::int32_t token = drawn(logits, {.temperature = 1.2F, .seed = 9}, position, {}, {}, mask);
    EXPECT_TRUE(token == 1 || token == 3 || token == 32);
  }
  logits[32] = 100;
  EXPECT_EQ(drawn(logits, {.temperature = 0}, 0, {}, {}, mask), 32);
}

TEST(Draw, ADraftMeetsTheTargetsNoise) {
  const std::vector<float> logits = random_logits(500, 8);
  const DrawSettings settings{.temperature = 0.9F, .top_k = 40, .top_p = 0.95F, .seed = 77};
  for (int position = 0; position < 300; ++position) {
    Room room(logits.size());
    const DrawRow row{.settings = &settings, .position = position, .generated = {}, .drafted = {}, .mask = {}};
    const Drawn draft = draw_draft(best_isa(), logits, {}, row, room.view());
    EXPECT_EQ(draft.token, drawn(logits, settings, position));
    EXPECT_GT(draft.probability, 0);
    EXPECT_LE(draft.probability, 1);
  }
}

TEST(Draw, ADraftVocabularyNamesItsTokensByTheirIds) {
  const std::vector<std::int32_t> ids{2, 3, 5, 7, 11};
  const std::vector<float> logits{0, 1, 5, 2, 3};
  const DrawSettings greedy{.temperature = 0}, pushed{.temperature = 0, .bias = {{11, 10}, {4, 100}}};
  Room room(logits.size());
  DrawRow row{.settings = &greedy, .position = 0, .generated = {}, .drafted = {}, .mask = {}};
  const Drawn draft = draw_draft(best_isa(), logits, ids, row, room.view());
  EXPECT_EQ(draft.token, 5);
  double total = 0;
  for (const float logit : logits) total += std::exp(logit - 5.0);
  EXPECT_NEAR(draft.probability, 1 / total, 1e-5);
  row.settings = &pushed;
  EXPECT_EQ(draw_draft(best_isa(), logits, ids, row, room.view()).token, 11);
}

TEST(Draw, LogprobsAreOfTheRawLogits) {
  const std::vector<float> logits = random_logits(300, 12);
  double total = 0;
  for (const float logit : logits) total += std::exp(logit);
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  RowLogprobs found;
  logprobs(logits, 17, 20, found);
  EXPECT_NEAR(found.chosen, logits[17] - std::log(total), 1e-4);
  ASSERT_EQ(found.num_top, 20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(found.top_ids[i], order[static_cast<std::size_t>(i)]);
    EXPECT_NEAR(found.top[i], logits[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] - std::log(total),
                1e-4);
  }
  logprobs(logits, 17, 0, found);
  EXPECT_EQ(found.num_top, 0);
}

TEST(Draw, EveryInstructionSetFindsTheFirstOfTheHighest) {
  for (const Isa isa : {Isa::Reference, Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (!has_isa(isa)) continue;
    for (const int n : {1, 5, 16, 17, 1023, 1024, 1025, 5000}) {
      std::vector<float> logits(static_cast<std::size_t>(n), -1.0F);
      for (const int at : {n - 1, n / 2}) {  // the second pass leaves two equal ones
        logits[static_cast<std::size_t>(at)] = 2;
        const DrawSettings greedy{.temperature = 0};
        Room room(logits.size());
        const DrawRow row{.settings = &greedy, .position = 0, .generated = {}, .drafted = {}, .mask = {}};
        EXPECT_EQ(draw(isa, logits, row, room.view()), at) << isa_name(isa) << " " << n;
        const int equals = at == n / 2 && n / 2 != n - 1 ? 2 : 1;
        EXPECT_NEAR(draw_draft(isa, logits, {}, row, room.view()).probability,
                    1 / (equals + (n - equals) * std::exp(-3.0)), 1e-4);
      }
    }
  }
}

}  // namespace
}  // namespace rondo
