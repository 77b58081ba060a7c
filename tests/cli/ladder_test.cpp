#include "cli/ladder.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "cli/ladder_report.h"

namespace rondo {
namespace {

TurnMark mark_at(int ms, std::uint64_t tokens, std::uint64_t rounds) {
  TurnMark mark;
  mark.at = Clock::Time(std::chrono::milliseconds(ms));
  mark.counters.completion_tokens = tokens;
  mark.counters.rounds = rounds;
  mark.verify_passes = rounds;
  return mark;
}

TEST(DecodeWindow, RunsFromTheLastStreamsFirstTokenToTheLastRoundBeforeAnEnd) {
  DecodeWindow window;
  window.note(mark_at(10, 1, 1), false, false);  // a prompt is still being filled
  window.note(mark_at(20, 3, 2), true, false);
  EXPECT_TRUE(window.is_open());
  window.note(mark_at(30, 6, 3), true, false);
  window.note(mark_at(45, 9, 4), true, false);
  window.note(mark_at(50, 10, 5), true, true);
  window.note(mark_at(90, 11, 6), true, false);
  LadderSide side;
  side.add(window);
  EXPECT_EQ(side.tokens, 6u);
  EXPECT_EQ(side.rounds, 2u);
  EXPECT_EQ(side.tok_s, std::vector<double>{240});
}

TEST(DecodeWindow, IsEmptyWhenAStreamEndsBeforeAllHaveBegun) {
  DecodeWindow window;
  window.note(mark_at(10, 1, 1), false, false);
  window.note(mark_at(20, 3, 2), false, true);
  window.note(mark_at(30, 6, 3), true, false);
  LadderSide side;
  side.add(window);
  EXPECT_TRUE(side.tok_s.empty());
}

struct LoadedDemo {
  ThreadPool pool{1};
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Model> model;
  LoadedDemo() {
    auto opened = Checkpoint::open(RONDO_BUNDLED_MODEL);
    checkpoint = std::make_unique<Checkpoint>(std::move(*opened));
    const ModelOptions options{.context_tokens = 128, .max_streams = 3, .max_drafts = 4, .draft_extra = {}};
    model = std::move(*load_model(*checkpoint, pool, options, [](const std::string&, std::uint64_t, std::uint64_t) {}));
  }
};

// The head's own drafts, and scripted ones, on the real model: no reply may differ from what it is alone.
TEST(Ladder, EveryReplyIsTheLoneUndraftedOne) {
  LoadedDemo demo;
  const PromptKind kind = seeded_prompts(demo.model->facts().vocab_size);
  CountingModel counting(*demo.model);
  ScriptedModel scripted(*demo.model, {0.9, 0.8, 0.7});
  for (ScriptedModel* script : {static_cast<ScriptedModel*>(nullptr), &scripted}) {
    Ladder ladder(script == nullptr ? counting : *script, script, CostTables{},
                  {.reply_tokens = 24, .pairs = 2, .end_ids = {}});
    const auto row = ladder.run_cell(kind, 3, 0.7, [](int) {});
    ASSERT_TRUE(row.has_value());
    EXPECT_EQ(num_different(*row), 0);
    EXPECT_EQ(row->plain.num_replies, 6);
    EXPECT_EQ(row->drafted.num_replies, 6);
    EXPECT_EQ(row->drafted.verify_passes, row->drafted.rounds);
    EXPECT_EQ(row->drafted.head_passes, row->drafted.levels);
    EXPECT_EQ(row->plain.head_passes, 0u);
    EXPECT_EQ(row->ratios.size(), 2u);
    if (script != nullptr) {
      EXPECT_GT(row->drafted.tokens, row->drafted.rounds * 3);
    }
  }
}

// Planted control: the comparison sees a reply that is not the lone one. One model says what the other does not.
class SwappedModel final : public CountingModel {
 public:
  using CountingModel::CountingModel;
  Verified verify(std::span<const Window> windows) override {
    const Verified verified = CountingModel::verify(windows);
    if (windows.size() < 2) return verified;
    tokens_.assign(verified.tokens.begin(), verified.tokens.end());
    std::swap(tokens_.front(), tokens_.back());
    return {tokens_, verified.logprobs};
  }

 private:
  std::vector<std::int32_t> tokens_;
};

TEST(Ladder, ANeighboursTokenIsSeen) {
  LoadedDemo demo;
  SwappedModel swapped(*demo.model);
  Ladder ladder(swapped, nullptr, CostTables{}, {.reply_tokens = 16, .pairs = 1, .end_ids = {}});
  const auto row = ladder.run_cell(seeded_prompts(demo.model->facts().vocab_size), 2, 0, [](int) {});
  ASSERT_TRUE(row.has_value());
  EXPECT_GT(num_different(*row), 0);
}

TEST(LadderReport, ARowHasTheKeysThatReadersOfTheJsonKnow) {
  LadderRow row{.prompts = "code", .streams = 2, .temperature = 0.7, .plain = {}, .drafted = {}, .ratios = {1.5, 2, 1}};
  row.drafted.tok_s = {300, 100, 200};
  row.drafted.rounds = row.drafted.verify_passes = 10;
  row.drafted.tokens = 30;
  row.drafted.drafted[0] = 4;
  row.drafted.accepted[0] = 3;
  row.drafted.num_equal = row.drafted.num_replies = 6;
  const std::string text = to_json(to_json_object(row));
  EXPECT_TRUE(text.starts_with(
      R"({"prompts":"code","streams":2,"temperature":0.7,"plain_tok_s":null,"draft_tok_s":200.0,"ratio":1.5,)"
      R"("tokens_per_round":1.5,"accept_by_depth":[0.75],"rounds":10,"verify_passes":10,"level_passes":0,)"
      R"("planned_ms":null,"real_ms":null,"equal_alone":"0/0","equal_undrafted":"6/6")"))
      << text;
}

TEST(LadderReport, TheHostsShareIsWhatNobodyWaitsForADevice) {
  LadderRow row{.prompts = "code", .streams = 1, .temperature = 0, .plain = {}, .drafted = {}, .ratios = {}};
  row.plain.ms = 200;
  row.plain.waited_ms = 150;
  row.drafted.ms = 100;  // where no device is waited for, no share is told
  const json::Object told = to_json_object(row);
  EXPECT_EQ(told.at("plain_host_share"), json::Value(0.25));
  EXPECT_TRUE(told.at("host_share").is_null());
  EXPECT_NE(to_text_line(row).find(" 25 - "), std::string::npos) << to_text_line(row);
}

}  // namespace
}  // namespace rondo
