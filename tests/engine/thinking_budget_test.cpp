// ThinkingBudget: a thought ends where its budget does, wherever drafts stand, and nothing is forced outside it.
#include "engine/thinking_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/fake_model.h"
#include "tests/engine/schedules.h"

namespace rondo::test {
namespace {

constexpr std::int32_t kEnd = 40, kNewline = 7;
using Ids = std::vector<std::int32_t>;

// The only id a rule allows after `drafts`, or -1 when it allows several.
std::int32_t forced_after(TokenRule& rule, const Ids& drafts) {
  std::vector<std::uint32_t> mask(4);
  rule.allow_after(drafts, mask);
  std::int32_t only = -1;
  for (std::int32_t id = 0; id < 128; ++id) {
    if (!allows(mask, id)) continue;
    if (only >= 0) return -1;
    only = id;
  }
  return only;
}

TEST(ThinkingBudget, ForcesTheClosingTokensOneAfterAnotherWhenItIsSpent) {
  ThinkingBudget rule(2, {kNewline, kEnd}, kEnd, nullptr);
  EXPECT_EQ(forced_after(rule, {}), -1);
  EXPECT_EQ(forced_after(rule, {1}), -1);
  EXPECT_EQ(forced_after(rule, {1, 2}), kNewline);
  EXPECT_EQ(forced_after(rule, {1, 2, kNewline}), kEnd);
  EXPECT_EQ(forced_after(rule, {1, 2, kNewline, kEnd}), -1);
  rule.accept(1);
  rule.accept(2);
  EXPECT_EQ(forced_after(rule, {}), kNewline);
  rule.accept(kNewline);
  rule.accept(kEnd);
  EXPECT_EQ(forced_after(rule, {}), -1);
}

TEST(ThinkingBudget, LeavesAThoughtAloneThatEndsByItself) {
  ThinkingBudget rule(2, {kNewline, kEnd}, kEnd, nullptr);
  EXPECT_EQ(forced_after(rule, {1, kEnd, 2, 3, 4}), -1);
  rule.accept(kEnd);
  for (int i = 0; i < 5; ++i) rule.accept(1);
  EXPECT_EQ(forced_after(rule, {}), -1);
}

TEST(ThinkingBudget, OfNothingForcesAtOnce) {
  ThinkingBudget rule(0, {kEnd}, kEnd, nullptr);
  EXPECT_EQ(forced_after(rule, {}), kEnd);
  EXPECT_EQ(forced_after(rule, {kEnd}), -1);
}

class Recorder final : public TokenRule {
 public:
  void reserve(int most_drafts) override { reserved = most_drafts; }
  void allow_after(std::span<const std::int32_t>, std::span<std::uint32_t> mask) override { mask[0] = 1u << 5; }
  void accept(std::int32_t token) override { accepted.push_back(token); }
  Ids accepted;
  int reserved = -1;
};

TEST(ThinkingBudget, LeavesTheRestToTheOtherRuleAndTellsItEverything) {
  const auto other = std::make_shared<Recorder>();
  ThinkingBudget rule(1, {kEnd}, kEnd, other);
  rule.reserve(7);
  EXPECT_EQ(other->reserved, 7);
  EXPECT_EQ(forced_after(rule, {}), 5);
  EXPECT_EQ(forced_after(rule, {9}), kEnd);
  EXPECT_EQ(forced_after(rule, {9, kEnd}), 5);
  for (const std::int32_t id : {9, kEnd, 3}) rule.accept(id);
  EXPECT_EQ(other->accepted, (Ids{9, kEnd, 3}));
}

TEST(ThinkingBudget, HoldsInTheEngineAtEveryBudgetDraftedAndNot) {
  for (const int drafts : {0, 8}) {
    for (int budget = 0; budget < 12; ++budget) {
      FakeOptions options;
      FakeClock clock;
      FakeModel model(options, clock);
      Engine engine(model, nullptr, options.costs, clock, {});
      const Visit visit{[&] {
        Request request;
        request.prompt_ids = {1, 2, 3};
        request.max_tokens = 20;
        request.max_draft_depth = drafts;
        request.rule = std::make_shared<ThinkingBudget>(budget, Ids{kNewline, 300}, 300, nullptr);
        return request;
      }};
      const Ids ids = drive(engine, {visit})[0]->ids;
      const auto closed = std::find(ids.begin(), ids.end(), 300) - ids.begin();
      EXPECT_LE(closed, budget + 1) << "drafts " << drafts;
      EXPECT_TRUE(closed <= budget || ids[static_cast<std::size_t>(budget)] == kNewline);
    }
  }
}

}  // namespace
}  // namespace rondo::test
