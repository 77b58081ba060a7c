#include "cli/scripted_model.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

constexpr int kVocab = 100;

// A head that drafts token 7 whatever comes, and counts its passes.
class SevenModel final : public Model {
 public:
  SevenModel() {
    facts_.vocab_size = kVocab;
    facts_.max_streams = 4;
    facts_.max_drafts = 4;
    facts_.has_head = true;
  }
  const ModelFacts& facts() const override { return facts_; }
  const MemoryPlan& plan() const override { return plan_; }
  void prefill(std::span<const Slice>) override {}
  Verified verify(std::span<const Window>) override { return {}; }
  void commit(std::span<const Kept>) override {}
  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override {
    ++passes;
    drafts_.assign(streams.size(), {7, 0.1F});
    return drafts_;
  }
  std::span<const Drawn> draft_next(std::span<const int>) override {
    ++passes;
    return drafts_;
  }
  int waiting_rows(int) const override { return 1; }
  void release(int) override {}
  SavedState save(int, int) override { return {}; }
  void restore(int, int, std::span<const std::int32_t>, std::span<const std::int32_t>) override {}
  void forget(int) override {}
  CostTables time_costs(std::span<const std::int32_t>, double) override { return {}; }

  int passes = 0;

 private:
  ModelFacts facts_;
  MemoryPlan plan_;
  std::vector<Drawn> drafts_;
};

std::vector<std::int32_t> counting_up(int n) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < n; ++i) out.push_back(i % kVocab);
  return out;
}

DraftStream stream_of(const DrawSettings& draw, std::span<const std::int32_t> generated) {
  return {.slot = 0, .draw = &draw, .generated = generated, .blocks = {}};
}

TEST(ScriptedModel, DraftsTheTrueContinuationAsFarAsTheScriptGoesAndThenAWrongToken) {
  SevenModel head;
  const std::vector<double> survival{0.8, 0.65, 0.5};
  ScriptedModel scripted(head, survival);
  const DrawSettings draw{.bias = {}, .seed = 3};
  const auto text = counting_up(50);
  scripted.set_continuation(3, text);
  for (std::size_t position = 1; position < 40; ++position) {
    const DraftStream stream = stream_of(draw, std::span(text).first(position));
    const int right = scripted_run(survival, 3, position);
    std::vector<std::int32_t> drafts{scripted.draft_first({&stream, 1})[0].token};
    const int only = 0;
    for (int depth = 2; depth <= 4; ++depth) drafts.push_back(scripted.draft_next({&only, 1})[0].token);
    for (int d = 0; d < 4; ++d) {
      const std::int32_t truth = text[position + static_cast<std::size_t>(d)];
      EXPECT_EQ(drafts[static_cast<std::size_t>(d)] == truth, d < right) << position << " depth " << d + 1;
    }
  }
  EXPECT_EQ(head.passes, 39 * 4);
  EXPECT_EQ(scripted.head_passes(), 39u * 4u);
}

TEST(ScriptedModel, ReportsTheChanceGivenThatTheDraftsBeforeWereRight) {
  SevenModel head;
  ScriptedModel scripted(head, {0.8, 0.6});
  const DrawSettings draw{.bias = {}, .seed = 0};
  const auto text = counting_up(10);
  scripted.set_continuation(0, text);
  const DraftStream stream = stream_of(draw, std::span(text).first(2));
  const int only = 0;
  EXPECT_FLOAT_EQ(scripted.draft_first({&stream, 1})[0].probability, 0.8F);
  EXPECT_FLOAT_EQ(scripted.draft_next({&only, 1})[0].probability, 0.75F);
  EXPECT_FLOAT_EQ(scripted.draft_next({&only, 1})[0].probability, 0.0F);
}

TEST(ScriptedModel, KeepsTheStatedShareAtEveryDepth) {
  const std::vector<double> survival{0.8, 0.65, 0.5};
  constexpr int kWindows = 20'000;
  int kept[3] = {};
  for (std::size_t position = 0; position < kWindows; ++position) {
    for (int d = 0; d < scripted_run(survival, 5, position); ++d) ++kept[d];
  }
  for (int d = 0; d < 3; ++d) EXPECT_NEAR(kept[d] / double{kWindows}, survival[static_cast<std::size_t>(d)], 0.015);
}

TEST(ScriptedModel, AStreamWithoutARecordedTextKeepsTheHeadsDrafts) {
  SevenModel head;
  ScriptedModel scripted(head, {0.8});
  const DrawSettings draw{.bias = {}, .seed = 9};
  const auto text = counting_up(4);
  const DraftStream stream = stream_of(draw, text);
  EXPECT_EQ(scripted.draft_first({&stream, 1})[0].token, 7);
}

}  // namespace
}  // namespace rondo
