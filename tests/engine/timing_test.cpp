// Costs timed at load: what is too small to be timed says so and serves unpriced; what can be timed is timed whole and
// leaves no trace.

#include <gtest/gtest.h>

#include "ckpt/checkpoint.h"
#include "tests/engine/real_model.h"
#include "tests/engine/schedules.h"

namespace rondo::test {
namespace {

constexpr const char* kFolder = RONDO_FIXTURES "/qwen4_exp";

std::vector<std::int32_t> text_of(int rows) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < rows; ++i) ids.push_back(i * 7 % 300);
  return ids;
}

class Timing : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(kFolder);
    ASSERT_TRUE(opened);
    checkpoint_.emplace(std::move(*opened));
  }
  std::unique_ptr<Model> load(int streams, int rows, int drafts, int context, bool head = true) {
    ModelOptions options{.context_tokens = context,
                         .max_streams = streams,
                         .max_rows = rows,
                         .max_drafts = drafts,
                         .has_head = head,
                         .draft_extra = {}};
    auto model = load_model(*checkpoint_, pool_, options, {});
    CHECK(model.has_value());
    return std::move(*model);
  }
  // It serves, whatever the timing said, and the timing left nothing behind.
  void expect_serves(Model& model, CostTables costs, Model& fresh) {
    FakeClock clock;
    Engine engine(model, nullptr, std::move(costs), clock, {}), other(fresh, nullptr, {}, clock, {});
    Visit visit{[&] {
      Request request;
      request.prompt_ids = {5, 9, 2, 7};
      request.max_tokens = std::min(9, model.facts().context_tokens - 4);
      request.draw.temperature = 0.9F;
      return request;
    }};
    EXPECT_EQ(difference(*drive(engine, {visit})[0], *drive(other, {visit})[0]), "");
  }

  ThreadPool pool_{2};
  std::optional<Checkpoint> checkpoint_;
};

void expect_whole(const CostTables& costs, const ModelFacts& facts, int rows, int absorbed) {
  ASSERT_TRUE(costs.priced());
  for (const auto& table : costs.verify_ms) {
    EXPECT_EQ(static_cast<int>(table.size()), rows + 1);
    EXPECT_TRUE(std::is_sorted(table.begin(), table.end()));
    EXPECT_GT(table[1], 0);
  }
  EXPECT_EQ(costs.absorb_ms.empty(), !facts.has_head);
  if (!facts.has_head) return;
  EXPECT_EQ(static_cast<int>(costs.absorb_ms.size()), absorbed + 1);
  EXPECT_EQ(static_cast<int>(costs.level_ms.size()), facts.max_drafts > 1 ? facts.max_streams + 1 : 0);
  EXPECT_TRUE(std::is_sorted(costs.absorb_ms.begin(), costs.absorb_ms.end()));
  EXPECT_TRUE(std::is_sorted(costs.level_ms.begin(), costs.level_ms.end()));
}

// One row a forward: nothing can be drafted, and nothing timed.
TEST_F(Timing, AReservationOneRowTooSmallSaysWhyAndServesUnpriced) {
  const auto small = load(1, 1, 1, 64), fresh = load(1, 1, 1, 64);
  const CostTables costs = small->time_costs(text_of(300), 500);
  EXPECT_FALSE(costs.priced());
  EXPECT_NE(costs.why.find("too few"), std::string::npos) << costs.why;
  expect_serves(*small, costs, *fresh);
}

TEST_F(Timing, AReservationOfJustEnoughRowsIsTimed) {
  for (const int rows : {2, 3}) {
    const auto model = load(1, rows, 1, 64), fresh = load(1, rows, 1, 64);
    const CostTables costs = model->time_costs(text_of(300), 2000);
    expect_whole(costs, model->facts(), 2, rows);
    expect_serves(*model, costs, *fresh);
  }
}

TEST_F(Timing, AContextOneTokenTooShortSaysWhyAndOneTokenLongerIsTimed) {
  const auto small = load(1, 16, 3, 8), enough = load(1, 16, 3, 9), fresh = load(1, 16, 3, 8);
  const CostTables none = small->time_costs(text_of(300), 500);
  EXPECT_FALSE(none.priced());
  EXPECT_NE(none.why.find("context of 8"), std::string::npos) << none.why;
  expect_serves(*small, none, *fresh);
  EXPECT_TRUE(enough->time_costs(text_of(300), 2000).priced());
}

// The narrow model absorbs more rows than it verifies: the text must reach for both.
TEST_F(Timing, ATextTooShortToTimeWithSaysSoAndNothingIsReadPastIt) {
  const auto model = load(1, 40, 1, 64), again = load(1, 40, 1, 64);
  for (int ids = 0; ids < 100; ids += 3) {
    const auto each = load(1, 40, 1, 64);
    const CostTables costs = each->time_costs(text_of(ids), 100);
    EXPECT_TRUE(costs.priced() || costs.why.find("too short") != std::string::npos) << ids << ": " << costs.why;
  }
  EXPECT_TRUE(model->time_costs(text_of(200), 1000).priced());
}

TEST_F(Timing, ManyStreamsAreTimedAsWideAsTheReservationGoesAndNothingIsLeftBehind) {
  const auto model = load(6, 20, 8, 96), fresh = load(6, 20, 8, 96);
  const CostTables costs = model->time_costs(text_of(300), 2000);
  expect_whole(costs, model->facts(), 20, 20);
  expect_serves(*model, costs, *fresh);
}

TEST_F(Timing, WithoutAHeadThereIsNoHeadToTime) {
  const auto model = load(3, 20, 8, 96, false), fresh = load(3, 20, 8, 96, false);
  const CostTables costs = model->time_costs(text_of(300), 1000);
  expect_whole(costs, model->facts(), 20, 0);
  expect_serves(*model, costs, *fresh);
}

TEST_F(Timing, ATimeTooShortForAllOfItIsKeptToAndSaidSo) {
  const auto model = load(6, 48, 8, 96);
  const CostTables costs = model->time_costs(text_of(300), 0);
  EXPECT_TRUE(costs.priced());
  EXPECT_NE(costs.why, "");
  expect_whole(costs, model->facts(), 48, 48);
}

}  // namespace
}  // namespace rondo::test
