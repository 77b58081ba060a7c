// How likely drafts are and what rounds cost: what is remembered, and that both err on the safe side.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "engine/draft_odds.h"
#include "engine/round_costs.h"

namespace rondo {
namespace {

TEST(StreamHistory, LeansOnThePriorUntilItHasSeenSome) {
  StreamHistory history;
  EXPECT_FLOAT_EQ(history.share(1, 0.4F), 0.4F);
  history.see(1, true);
  EXPECT_GT(history.share(1, 0.4F), 0.4F);
  EXPECT_FLOAT_EQ(history.share(2, 0.4F), 0.4F);  // each depth by itself
  for (int i = 0; i < 200; ++i) history.see(1, true);
  EXPECT_GT(history.share(1, 0.0F), 0.85F);
  for (int i = 0; i < 60; ++i) history.see(1, false);
  EXPECT_LT(history.share(1, 1.0F), 0.2F);  // it forgets
  history.see(40, true);                    // past the deepest: with the deepest
  EXPECT_GT(history.share(kMaxDepth, 0.1F), 0.1F);
}

TEST(Calibration, LearnsHowFarTheHeadsProbabilitiesCanBeBelieved) {
  Calibration calibration;
  EXPECT_LT(calibration.chance(1, 0.9F), 0.9F);  // errs low
  EXPECT_LE(calibration.chance(1, 1.0F), 1.0F);
  EXPECT_GE(calibration.chance(1, 0.0F), 0.0F);
  for (std::uint64_t i = 0; i < 2000; ++i) {  // a head that says 0.9 and is right half the time
    calibration.see(1, 0.9F, unit_interval(random_bits(3, i)) < 0.5);
    calibration.see(2, 0.9F, true);
  }
  EXPECT_NEAR(calibration.chance(1, 0.9F), 0.5F, 0.2F);
  EXPECT_GT(calibration.chance(2, 0.9F), 0.85F);  // by depth
  EXPECT_LT(calibration.chance(1, 0.1F), 0.11F);  // and by probability
  EXPECT_NEAR(calibration.prior(1), 0.5F, 0.2F);
  EXPECT_GT(calibration.prior(2), 0.9F);
}

ModelFacts facts() {
  ModelFacts f;
  f.max_rows = 16;
  f.max_streams = 4;
  f.context_tokens = 1000;
  return f;
}

CostTables tables() {
  CostTables t;
  t.context_tokens[0] = 200;
  t.context_tokens[1] = 600;
  for (int rows = 0; rows <= 16; ++rows) {
    t.verify_ms[0].push_back(10 + rows);
    t.verify_ms[1].push_back(20 + 2 * rows);
  }
  t.absorb_ms = {5, 6, 7};
  t.level_ms = {0, 1, 2, 3, 4};
  return t;
}

TEST(RoundCosts, LiesBetweenTheTwoContextLengthsTimed) {
  const RoundCosts costs(facts(), tables());
  EXPECT_TRUE(costs.priced());
  EXPECT_DOUBLE_EQ(costs.verify_ms(0, 4), 14);
  EXPECT_DOUBLE_EQ(costs.verify_ms(200, 4), 14);
  EXPECT_DOUBLE_EQ(costs.verify_ms(400, 4), 21);
  EXPECT_DOUBLE_EQ(costs.verify_ms(5000, 4), 28);
  EXPECT_DOUBLE_EQ(costs.verify_ms(0, 20), 30);  // past the table: the last slope
  EXPECT_DOUBLE_EQ(costs.absorb_ms(0), 0);       // nobody drafts
  EXPECT_DOUBLE_EQ(costs.absorb_ms(5), 10);
}

TEST(RoundCosts, GivesThePlannerTheSameNumbers) {
  RoundCosts costs(facts(), tables());
  const DraftCosts at = costs.at(400, 3, 3);
  EXPECT_DOUBLE_EQ(ms_at(at.verify_ms, 4), costs.verify_ms(400, 4));
  EXPECT_DOUBLE_EQ(ms_at(at.absorb_ms, 0), 0);
  EXPECT_EQ(at.max_rows, 16);
  EXPECT_EQ(at.levels_done, 0);
}

TEST(RoundCosts, OverheadIsAMovingAverageByStreamCountThatLeavesSomeOfTheForward) {
  RoundCosts costs(facts(), tables());
  EXPECT_DOUBLE_EQ(costs.overhead_ms(2), 0);
  costs.see_round(2, 10, 14);
  EXPECT_DOUBLE_EQ(costs.overhead_ms(2), 4);
  costs.see_round(2, 10, 24);
  EXPECT_DOUBLE_EQ(costs.overhead_ms(2), 5);
  EXPECT_DOUBLE_EQ(costs.overhead_ms(3), 0);
  costs.see_round(1, 10, 2);
  EXPECT_DOUBLE_EQ(costs.at(0, 1, 1).overhead_ms, std::max(-8.0, -0.9 * costs.verify_ms(0, 1)));
  costs.see_round(500, 1, 2);  // more streams than there are averages
  EXPECT_DOUBLE_EQ(costs.overhead_ms(64), 1);
}

TEST(RoundCosts, UnpricedRowsAndPassesAllCostTheSame) {
  RoundCosts costs(facts(), {});
  EXPECT_FALSE(costs.priced());
  EXPECT_NEAR(costs.verify_ms(0, 3) - costs.verify_ms(0, 2), costs.verify_ms(900, 12) - costs.verify_ms(900, 11), 1e-9);
  EXPECT_DOUBLE_EQ(costs.absorb_ms(1), costs.absorb_ms(60));
  EXPECT_DOUBLE_EQ(costs.level_ms(1), costs.level_ms(4));
  EXPECT_EQ(costs.at(0, 1, 1).max_rows, 16);
}

}  // namespace
}  // namespace rondo
