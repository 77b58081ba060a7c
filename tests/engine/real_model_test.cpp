// The laws on real models, bit for bit: concurrent = alone and drafted = undrafted, token ids and logprobs, for one
// stream to thirty-two, every depth, and whoever joins, leaves or stops.

#include <gtest/gtest.h>

#include "engine/decision_log.h"
#include "engine/round_costs.h"
#include "tests/engine/real_model_fixture.h"
#include "tests/engine/schedules.h"

namespace rondo::test {
namespace {

#ifdef RONDO_SANITIZED
constexpr int kSchedules = 6;
#else
constexpr int kSchedules = 60;
#endif
constexpr int kContext = 140;

class LawsOn : public RealModelTest {
 protected:
  LawsOn() : RealModelTest(kContext) {}

  RequestSpace space() const {
    RequestSpace s;
    s.context_tokens = kContext;
    s.most_prompt = 30;
    s.most_reply = 20;
    if (tokenizer() != nullptr) {
      s.alphabet = tokenizer()->encode(
          "def add(first, second):\n    return first + second\n\nThe town lies by the river, and the river is slow. "
          "The town lies by the river, and the river is slow.");
      s.stops = {"the", "\n", " is s", "re"};
    } else {
      for (int id = 0; id < 320; ++id) s.alphabet.push_back(id);
    }
    s.end_ids = s.alphabet;
    // Random weights agree on little else: a favoured token is drawn and drafted again and again.
    s.bias = GetParam().folder.ends_with("/qwen3_5") ? 30 : 6;  // its logits spread over 8, the others' over 1.5
    return s;
  }
};

struct Tally {
  int completed = 0, cancelled = 0, drafted = 0, accepted = 0, cached = 0;
};

TEST_P(LawsOn, EveryRequestSaysWhatItSaysAloneAndUndrafted) {
  struct Shape {
    int streams, rows, drafts;
    std::unique_ptr<Model> model;
  };
  std::vector<Shape> shapes;
  shapes.push_back({32, 40, 8, load(32, 40, 8, true)});
  shapes.push_back({5, 12, 8, load(5, 12, 8, true)});
  shapes.push_back({2, 64, 3, load(2, 64, 3, true)});
  shapes.push_back({1, 9, 8, load(1, 9, 8, true)});
  const auto lone_model = load(1, 64, 1, false);
  FakeClock clock;
  Tally tally;
  for (int seed = 0; seed < kSchedules; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed) + 1000);
    Shape& shape = shapes[static_cast<std::size_t>(seed % 8 == 0 ? 0 : 1 + seed % 3)];
    const ModelFacts& facts = shape.model->facts();
    CostTables costs;
    if (!dice.chance(15)) costs = dice.chance(80) ? costs_of(facts, 0, 0) : costs_of(facts, 20, 10);
    EngineOptions with_cache;
    with_cache.least_shared_tokens = dice.between(1, 16);
    with_cache.step_tokens = 32;
    Engine engine(*shape.model, tokenizer(), costs, clock, with_cache);
    Engine lone(*lone_model, tokenizer(), {}, clock, {});
    std::vector<Visit> visits;
    RequestSpace drawn = space();
    for (int n = dice.below(3); n > 0; --n) {
      drawn.stems.emplace_back();
      for (int i = dice.between(1, 110); i > 0; --i) drawn.stems.back().push_back(dice.pick(drawn.alphabet));
    }
    for (int n = shape.streams == 32 ? dice.between(24, 36) : dice.between(1, 2 * shape.streams); n > 0; --n) {
      Visit visit{random_request(dice, drawn), dice.below(shape.streams == 32 ? 4 : 12)};
      if (dice.chance(12)) visit.leaves_at = visit.joins_at + dice.below(15);
      visits.push_back(std::move(visit));
    }
    const auto got = drive(engine, visits), alone = drive_alone(lone, visits);
    for (std::size_t i = 0; i < visits.size(); ++i) {
      ASSERT_EQ(difference(*got[i], *alone[i]), "") << "schedule " << seed << " request " << i;
      ++(got[i]->end ? tally.completed : tally.cancelled);
      if (!got[i]->end) continue;
      tally.drafted += got[i]->end->usage.drafted;
      tally.accepted += got[i]->end->usage.accepted;
      tally.cached += got[i]->end->usage.cached_tokens > 0 ? 1 : 0;
    }
    for (const RoundRecord* record : engine.log().rounds())
      ASSERT_EQ(replay(*record, engine.costs()), record->drafts) << "schedule " << seed;
  }
  printf("%d completed, %d cancelled, %d of %d drafts kept, %d prefix hits\n", tally.completed, tally.cancelled,
         tally.accepted, tally.drafted, tally.cached);
  EXPECT_GT(tally.cached, kSchedules / 4);
  EXPECT_GT(tally.accepted, kSchedules);
  EXPECT_GT(tally.drafted - tally.accepted, kSchedules);
}

INSTANTIATE_TEST_SUITE_P(Every, LawsOn, testing::ValuesIn(real_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo::test
