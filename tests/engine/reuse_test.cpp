// Cold = warm = next turn, on real models through the engine: a prompt of every length, answered with nothing in the
// prefix cache, with others of its kind beside it, once more, and as the beginning of the next turn; drafted, with few
// places so that states come and go, and with cancels in between. Token ids, logprobs and token_sha, bit by bit.

#include <gtest/gtest.h>

#include "ckpt/checkpoint.h"
#include "tests/engine/real_model.h"
#include "tests/engine/schedules.h"

namespace rondo::test {
namespace {

#ifdef RONDO_SANITIZED
constexpr int kFirst = 60, kLast = 75;
#else
constexpr int kFirst = 1, kLast = 312;
#endif
constexpr int kTogether = 8, kReply = 5, kMore = 3;

class ReuseOn : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(GetParam().folder);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
  }
  std::unique_ptr<Model> load(int streams, int states) {
    ModelOptions options;
    options.context_tokens = 400;
    options.max_streams = streams;
    options.max_rows = 256;
    options.cache_states = states;
    options.cache_blocks = states == 0 ? 0 : 12;
    auto model = load_model(*checkpoint_, pool_, options, {});
    CHECK(model.has_value());
    return std::move(*model);
  }
  Request request(std::vector<std::int32_t> prompt, int key) const {
    Request made;
    made.prompt_ids = std::move(prompt);
    made.max_tokens = kReply;
    made.draw.temperature = key % 2 == 0 ? 0.0F : 0.8F;
    made.draw.seed = static_cast<std::uint64_t>(key);
    made.max_draft_depth = key % 5 == 0 ? 0 : 6;
    made.num_top_logprobs = 3;
    return made;
  }

  ThreadPool pool_{2};
  std::optional<Checkpoint> checkpoint_;
};

TEST_P(ReuseOn, ColdIsWarmIsTheNextTurnForEveryLength) {
  const auto model = load(kTogether + 1, 7), lone_model = load(1, 0);
  FakeClock clock;
  EngineOptions options;
  options.least_shared_tokens = 1;
  options.step_tokens = 96;
  Engine engine(*model, nullptr, costs_of(model->facts(), 0, 0), clock, options);
  Engine lone(*lone_model, nullptr, {}, clock, {});
  std::vector<std::int32_t> text;
  for (int i = 0; i < kLast + 1; ++i) text.push_back((i * i * 17 + i * 5 + i / 3) % model->facts().vocab_size);
  int cached = 0, drafted = 0;
  for (int first = kFirst; first <= kLast; first += kTogether) {
    std::vector<Visit> visits, next;
    for (int length = first; length < std::min(first + kTogether, kLast + 1); ++length) {
      const std::vector<std::int32_t> prompt(text.begin(), text.begin() + length);
      visits.push_back({[=, this] { return request(prompt, length); }, length % 3});
    }
    const auto cold = drive_alone(lone, visits);
    for (std::size_t i = 0; i < visits.size(); ++i) {
      std::vector<std::int32_t> prompt = visits[i].request().prompt_ids;
      prompt.insert(prompt.end(), cold[i]->ids.begin(), cold[i]->ids.end());
      for (int more = 0; more < kMore; ++more) prompt.push_back((first * 3 + more) % model->facts().vocab_size);
      next.push_back({[=, this] { return request(prompt, first + static_cast<int>(i)); }, static_cast<int>(i) % 4});
    }
    const auto cold_next = drive_alone(lone, next);
    // Somebody who leaves, with the same beginning.
    Visit gone = visits.back();
    gone.leaves_at = 1 + first % 3;
    gone.joins_at = 0;
    const auto with_gone = [&](std::vector<Visit> some) {
      some.push_back(gone);
      return some;
    };
    const auto warm = drive(engine, with_gone(visits)), again = drive(engine, visits);
    const auto warm_next = drive(engine, with_gone(next));
    for (std::size_t i = 0; i < visits.size(); ++i) {
      ASSERT_EQ(difference(*warm[i], *cold[i]), "") << "length " << first + static_cast<int>(i);
      ASSERT_EQ(difference(*again[i], *cold[i]), "") << "again, length " << first + static_cast<int>(i);
      ASSERT_EQ(difference(*warm_next[i], *cold_next[i]), "") << "next turn, length " << first + static_cast<int>(i);
      for (const auto& each : {warm[i], again[i], warm_next[i]}) {
        cached += each->end->usage.cached_tokens > 0 ? 1 : 0;
        drafted += each->end->usage.drafted;
      }
    }
  }
  printf("%d of %d replies went on from a state; %d drafts\n", cached, 3 * (kLast - kFirst + 1), drafted);
  EXPECT_GT(cached, 2 * (kLast - kFirst));
  EXPECT_GT(drafted, kLast - kFirst);
}

std::vector<RealModel> three_models() {
  std::vector<RealModel> some;
  for (const RealModel& each : real_models()) {
    if (each.name == "qwen3_5" || each.name == "qwen4_exp" || each.name == "bundled") some.push_back(each);
  }
  return some;
}
INSTANTIATE_TEST_SUITE_P(Every, ReuseOn, testing::ValuesIn(three_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo::test
