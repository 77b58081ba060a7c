// The plan of drafts: the hand cases that simpler rules get wrong, and the rule against the true optimum of small
// cases.

#include "engine/draft_budget.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace rondo {
namespace {

using Ks = std::vector<int>;

struct Case {
  std::vector<std::vector<float>> survival;  // by stream
  std::vector<double> verify_ms, absorb_ms, level_ms;
  double overhead_ms = 0;
  int max_rows = 64;
  int levels_done = 0;
  std::vector<int> certain = {}, absorb = {};  // 1 each, 1 each

  std::vector<StreamOdds> streams() const {
    std::vector<StreamOdds> all;
    for (std::size_t r = 0; r < survival.size(); ++r) {
      all.push_back({.certain_rows = certain.empty() ? 1 : certain[r],
                     .absorb_rows = absorb.empty() ? 1 : absorb[r],
                     .survival = survival[r]});
    }
    return all;
  }
  DraftCosts costs() const { return {verify_ms, absorb_ms, level_ms, overhead_ms, max_rows, levels_done}; }
};

Ks plan(const Case& c) {
  DraftBudget budget;
  Ks drafts(c.survival.size());
  budget.plan(c.costs(), c.streams(), drafts);
  return drafts;
}

// Straight from the definition: expected tokens a millisecond.
double rate(const Case& c, const Ks& k) {
  double tokens = 0, cost = c.overhead_ms;
  int rows = 0, absorbed = 0, deepest = 0;
  for (std::size_t r = 0; r < k.size(); ++r) {
    const int certain = c.certain.empty() ? 1 : c.certain[r];
    rows += certain + k[r];
    tokens += certain;
    for (int d = 0; d < k[r]; ++d) tokens += static_cast<double>(c.survival[r][static_cast<std::size_t>(d)]);
    if (k[r] > 0 && c.levels_done == 0) absorbed += c.absorb.empty() ? 1 : c.absorb[r];
    deepest = std::max(deepest, k[r]);
  }
  cost += ms_at(c.verify_ms, rows) + (absorbed > 0 ? ms_at(c.absorb_ms, absorbed) : 0);
  for (int level = std::max(2, c.levels_done + 1); level <= deepest; ++level) {
    int streams = 0;
    for (const int each : k) streams += each >= level;
    cost += ms_at(c.level_ms, streams);
  }
  return tokens / cost;
}

// Every plan there is.
double best_rate(const Case& c) {
  double best = 0;
  Ks k(c.survival.size(), 0);
  const std::function<void(std::size_t, int)> from = [&](std::size_t r, int rows) {
    if (r == k.size()) {
      int drafted = 0;
      for (const int each : k) drafted += each;
      if (drafted == 0 || rows <= c.max_rows) best = std::max(best, rate(c, k));
      return;
    }
    for (k[r] = 0; k[r] <= static_cast<int>(c.survival[r].size()); ++k[r])
      from(r + 1, rows + (c.certain.empty() ? 1 : c.certain[r]) + k[r]);
  };
  from(0, 0);
  return best;
}

std::vector<double> line(double first, double row, int rows = 64) {
  std::vector<double> ms;
  for (int n = 0; n <= rows; ++n) ms.push_back(first + row * n);
  return ms;
}

TEST(DraftBudget, ASureStreamDraftsDeepBesideOneThatNeverDoes) {
  EXPECT_EQ(plan({.survival = {{0.95F, 0.9F, 0.86F, 0.81F}, {0.05F, 0.01F, 0, 0}},
                  .verify_ms = line(10, 1),
                  .absorb_ms = {},
                  .level_ms = line(0, 0.1)}),
            (Ks{4, 0}));
}

TEST(DraftBudget, AFirstDraftThatCostsNoHeadIsTakenWhereADeeperOneIsNot) {
  EXPECT_EQ(plan({.survival = {{0.5F, 0.4F}}, .verify_ms = line(10, 1), .absorb_ms = {}, .level_ms = {0, 20}}), Ks{1});
}

TEST(DraftBudget, DraftsThatCostNothingAreAllTaken) {
  EXPECT_EQ(plan({.survival = {{0.5F, 0.1F, 0.01F}, {0.2F, 0.1F}},
                  .verify_ms = line(10, 0),
                  .absorb_ms = {},
                  .level_ms = line(0, 0)}),
            (Ks{3, 2}));
}

// A level costs the same for one stream or two: two first drafts need none, one second draft needs one.
TEST(DraftBudget, OneDraftEachIsNotTwoOfOneStream) {
  const Case even{
      .survival = {{0.8F, 0.7F}, {0.6F, 0.1F}}, .verify_ms = line(5, 1), .absorb_ms = {}, .level_ms = {0, 4, 4}};
  EXPECT_EQ(plan(even), (Ks{1, 1}));
  Case cheap = even;
  cheap.survival[1] = {0.1F, 0.1F};
  cheap.level_ms = {0, 0.1, 0.1};
  EXPECT_EQ(plan(cheap), (Ks{2, 0}));
}

// The second row is dear, the next six cost nothing: who stops at the first descent never gets there.
TEST(DraftBudget, AStaircaseIsClimbedPastItsFirstStep) {
  EXPECT_EQ(plan({.survival = {{0.6F, 0.55F, 0.5F, 0.45F, 0.4F, 0.35F}},
                  .verify_ms = {0, 10, 17, 17, 17, 17, 17, 17, 40},
                  .absorb_ms = {},
                  .level_ms = {0, 0}}),
            Ks{6});
}

TEST(DraftBudget, NoPlanIsWiderThanAForwardWithDraftsMayBe) {
  const Case c{
      .survival = {{1, 1, 1}, {1, 1, 1}}, .verify_ms = line(10, 0), .absorb_ms = {}, .level_ms = {}, .max_rows = 5};
  const Ks k = plan(c);
  EXPECT_EQ(k[0] + k[1], 3);
  Case full = c;
  full.certain = {3, 4};
  EXPECT_EQ(plan(full), (Ks{0, 0}));
}

TEST(DraftBudget, ADearAbsorbPassKeepsAStreamFromDrafting) {
  Case c{.survival = {{0.5F, 0.3F}}, .verify_ms = line(10, 0.5), .absorb_ms = {0, 1}, .level_ms = {0, 1}};
  EXPECT_GT(plan(c)[0], 0);
  c.absorb_ms = {0, 20};
  EXPECT_EQ(plan(c), Ks{0});
  c.levels_done = 1;  // paid already
  EXPECT_EQ(plan(c), Ks{2});
}

TEST(DraftBudget, AStreamWithManyRowsToAbsorbMayStayOutWhileAnotherDrafts) {
  EXPECT_EQ(plan({.survival = {{0.6F}, {0.6F}},
                  .verify_ms = line(10, 0.1),
                  .absorb_ms = line(0, 0.5),
                  .level_ms = {0, 0},
                  .absorb = {60, 1}}),
            (Ks{0, 1}));
}

TEST(DraftBudget, WithoutStreamsOrOddsThereIsNothingToPlan) {
  EXPECT_EQ(plan({.survival = {}, .verify_ms = line(10, 1), .absorb_ms = {}, .level_ms = {}}), Ks{});
  EXPECT_EQ(plan({.survival = {{}, {}}, .verify_ms = line(10, 1), .absorb_ms = {}, .level_ms = {}}), (Ks{0, 0}));
}

Case random_case(std::mt19937& random, bool absorbs) {
  const auto unit = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  Case c{.survival = {}, .verify_ms = {}, .absorb_ms = {}, .level_ms = {}};
  const int streams = 1 + static_cast<int>(random() % 4);
  for (int r = 0; r < streams; ++r) {
    c.survival.emplace_back();
    float chance = 1;
    for (int d = static_cast<int>(random() % 5); d > 0; --d) {
      chance *= static_cast<float>(0.2 + 0.8 * unit());
      c.survival.back().push_back(chance);
    }
    c.certain.push_back(1 + static_cast<int>(random() % 10 == 0));
    c.absorb.push_back(1 + static_cast<int>(random() % 3));
  }
  double ms = 1 + 20 * unit();
  const int stair = 1 + static_cast<int>(random() % 5);
  for (int rows = 0; rows <= 24; ++rows) {
    c.verify_ms.push_back(ms);
    if (rows % stair == 0) ms += 2 * unit() * stair;
  }
  double level = 2 * unit();
  c.level_ms.push_back(0);
  for (int n = 0; n < streams; ++n, level += 0.2 * unit()) c.level_ms.push_back(level);
  if (absorbs) c.absorb_ms = line(0, 0.3 * unit());
  c.overhead_ms = unit();
  c.max_rows = random() % 4 == 0 ? 6 : 24;
  return c;
}

TEST(DraftBudget, LosesLittleAgainstTheTrueOptimum) {
  for (const bool absorbs : {false, true}) {
    std::mt19937 random(5);
    double lost = 0, worst = 0;
    constexpr int kCases = 1500;
    for (int i = 0; i < kCases; ++i) {
      const Case c = random_case(random, absorbs);
      DraftBudget budget;
      Ks k(c.survival.size());
      const double said = budget.plan(c.costs(), c.streams(), k);
      const double got = rate(c, k), best = best_rate(c);
      EXPECT_NEAR(said, got, 1e-9 * got) << "case " << i;  // what it says of its plan is what the plan is worth
      ASSERT_GE(got, rate(c, Ks(k.size(), 0)) * (1 - 1e-12)) << "case " << i;  // never worse than no drafts
      int rows = 0, drafted = 0;
      for (std::size_t r = 0; r < k.size(); ++r) {
        ASSERT_LE(k[r], static_cast<int>(c.survival[r].size()));
        rows += c.certain[r] + k[r];
        drafted += k[r];
      }
      if (drafted > 0) {
        ASSERT_LE(rows, c.max_rows);
      }
      lost += 1 - got / best;
      worst = std::max(worst, 1 - got / best);
    }
    EXPECT_LT(lost / kCases, 0.005);
    EXPECT_LT(worst, 0.03);
    printf("absorb %s: mean loss %.4f %%, worst %.2f %%\n", absorbs ? "priced" : "free", 100 * lost / kCases,
           100 * worst);
  }
}

// Planted control: the measure sees a rule that stops at the first descent.
TEST(DraftBudget, ARuleThatStopsAtTheFirstDescentIsSeen) {
  const Case c{.survival = {{0.6F, 0.55F, 0.5F, 0.45F, 0.4F, 0.35F}},
               .verify_ms = {0, 10, 17, 17, 17, 17, 17, 17, 40},
               .absorb_ms = {},
               .level_ms = {0, 0}};
  Ks k{0};
  while (k[0] < 6 && rate(c, {k[0] + 1}) > rate(c, k)) ++k[0];
  EXPECT_GT(1 - rate(c, k) / best_rate(c), 0.2);
}

TEST(DraftBudget, PlanningAgainAfterOtherCasesPlansTheSame) {
  std::mt19937 random(9);
  std::vector<Case> cases;
  for (int i = 0; i < 60; ++i) cases.push_back(random_case(random, i % 2 == 0));
  DraftBudget used;
  for (const Case& c : cases) {
    Ks k(c.survival.size());
    used.plan(c.costs(), c.streams(), k);
    EXPECT_EQ(k, plan(c));
  }
}

}  // namespace
}  // namespace rondo
