// Sparse attention past its budget, through the engine on real models: texts that grow out of the budget while they are
// decoded with drafts, beside others, and go on from the states this left, are what each is alone and undrafted. Token
// ids, logprobs and token_sha, bit by bit.

#include <gtest/gtest.h>

#include "ckpt/checkpoint.h"
#include "engine/round_costs.h"
#include "tests/engine/real_model.h"
#include "tests/engine/schedules.h"
#include "text/tokenizer.h"

namespace rondo::test {
namespace {

constexpr int kStreams = 6, kReply = 40, kNextReply = 10, kDepth = 8;

class LongContextOn : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(GetParam().folder);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
    const auto& indexer = checkpoint_->config().indexer;
    ASSERT_GT(indexer.num_heads, 0);
    budget_tokens_ = indexer.budget_tokens;
    first_sparse_pos_ = budget_tokens_ + indexer.block_tokens - 1;
    if (GetParam().has_tokenizer) {
#ifdef RONDO_SANITIZED
      step_ = 9;
#else
      step_ = 3;  // its budget is long
#endif
      auto tokenizer = Tokenizer::open(GetParam().folder);
      ASSERT_TRUE(tokenizer) << tokenizer.error().message;
      words_ = tokenizer->encode(
          "def add(first, second):\n    return first + second\n\nThe town lies by the river, and the river is slow.\n");
    } else {
      for (int i = 0; i < 41; ++i) words_.push_back((i * i * 17 + i * 5) % 320);
    }
  }
  std::unique_ptr<Model> load(int streams, int states) {
    ModelOptions options;
    options.isa = GetParam().isa;
    options.context_tokens = 5 * budget_tokens_ + kReply + 1 + kNextReply;
    options.max_streams = streams;
    options.max_drafts = kDepth;
    options.cache_states = states;
    options.cache_blocks = states == 0 ? 0 : 40;
    auto model = load_model(*checkpoint_, pool_, options, {});
    CHECK(model.has_value());
    return std::move(*model);
  }
  // Text of which the head foresees some and not all.
  std::vector<std::int32_t> text(int num_ids) const {
    std::vector<std::int32_t> out;
    for (int i = 0; i < num_ids; ++i) out.push_back(words_[static_cast<std::size_t>(i) % words_.size()]);
    return out;
  }
  Request request(int prompt_tokens, int key) const {
    Request made;
    made.prompt_ids = text(prompt_tokens);
    made.prompt_ids[0] = key % 300;  // nothing is shared by chance
    made.max_tokens = kReply;
    made.max_draft_depth = kDepth;
    made.num_top_logprobs = 3;
    made.draw.temperature = key % 2 == 0 ? 0.0F : 0.8F;
    made.draw.seed = static_cast<std::uint64_t>(key);
    // Random weights agree on little: a favoured token is drawn and drafted again and again.
    if (!GetParam().has_tokenizer) made.draw.bias = {{made.prompt_ids.back(), 6}, {made.prompt_ids[1], 5}};
    return made;
  }
  std::vector<Visit> visits() const {
    std::vector<int> lengths;
    for (int before = 15; before >= -3; before -= step_) lengths.push_back(first_sparse_pos_ - before);
    for (const int times : {2, 3, 5}) lengths.push_back(times * budget_tokens_);
    std::vector<Visit> out;
    for (const int length : lengths)
      out.push_back({[this, length] { return request(length, length); }, static_cast<int>(out.size()) % 7});
    return out;
  }
  // Rounds whose window began before the first position that selects, and kept a draft there or behind it.
  int rounds_across(const RecordingSink& sink, int prompt_tokens) const {
    int before = 0, across = 0;
    for (const int after : sink.ids_after_event) {
      const int first_row = prompt_tokens + before - 1, last_kept_row = first_row + after - before - 1;
      if (before > 0 && first_row < first_sparse_pos_ && last_kept_row >= first_sparse_pos_) ++across;
      before = after;
    }
    return across;
  }

  ThreadPool pool_{2};
  std::optional<Checkpoint> checkpoint_;
  int budget_tokens_ = 0, first_sparse_pos_ = 0;
  int step_ = 1;  // from one prompt's length to the next
  std::vector<std::int32_t> words_;
};

TEST_P(LongContextOn, TextsThatGrowOutOfTheBudgetAreWhatEachIsAloneAndUndrafted) {
  const auto model = load(kStreams, 20), lone_model = load(1, 0);
  FakeClock clock;
  Engine engine(*model, nullptr, costs_of(model->facts(), 0, 0), clock, {.least_shared_tokens = 1});
  Engine lone(*lone_model, nullptr, {}, clock, {});
  int accepted = 0, rejected = 0, across = 0, cached = 0;
  const auto compare = [&](const char* turn, const std::vector<Visit>& some) {
    const auto got = drive(engine, some);
    auto alone = drive_alone(lone, some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Usage& usage = got[i]->end->usage;
      EXPECT_EQ(difference(*got[i], *alone[i]), "") << turn << ", a prompt of " << usage.prompt_tokens;
      accepted += usage.accepted;
      rejected += usage.drafted - usage.accepted;
      across += rounds_across(*got[i], usage.prompt_tokens);
      cached += usage.cached_tokens >= first_sparse_pos_ ? 1 : 0;
    }
    return alone;
  };
  const std::vector<Visit> all = visits();
  for (std::size_t first = 0; first < all.size() && !HasFailure(); first += kStreams) {
    const std::vector<Visit> some(all.begin() + static_cast<std::ptrdiff_t>(first),
                                  all.begin() + static_cast<std::ptrdiff_t>(std::min(first + kStreams, all.size())));
    const auto replies = compare("first turn", some);
    std::vector<Visit> next;  // from the state that drafted rounds left, past the budget; alone its tokens are read
    for (std::size_t i = 0; i < some.size(); ++i) {
      Request turn = some[i].request();
      turn.prompt_ids.insert(turn.prompt_ids.end(), replies[i]->ids.begin(), replies[i]->ids.end());
      turn.prompt_ids.push_back(static_cast<std::int32_t>(i) + 7);
      turn.max_tokens = kNextReply;
      next.push_back({[turn] { return turn; }, static_cast<int>(i) % 4});
    }
    compare("next turn", next);
  }
  printf("%d drafts kept, %d rejected; %d windows kept across the budget's end; %d replies went on from past it\n",
         accepted, rejected, across, cached);
  EXPECT_GT(accepted, 20);
  EXPECT_GT(rejected, 20);
  EXPECT_GT(across, 0);
  EXPECT_GT(cached, 0);
}

std::vector<RealModel> sparse_models() {
  std::vector<RealModel> some;
  for (const RealModel& each : real_models()) {
    if (each.name.starts_with("qwen4_exp")) some.push_back(each);
#ifndef RONDO_FEWER_RUNS  // under a sanitizer the bundled model takes minutes, and the fixture runs the same code
    if (each.name.starts_with("bundled")) some.push_back(each);
#endif
  }
  return some;
}
INSTANTIATE_TEST_SUITE_P(Every, LongContextOn, testing::ValuesIn(sparse_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo::test
