// Exact states on real models, on the contract of model/model.h: a sequence that goes on from a saved state has the
// rows, drafts and probabilities of one that ran from its first token, bit by bit, wherever it was saved and whatever
// the others that share its blocks have done since.

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "ckpt/checkpoint.h"
#include "tests/engine/real_model.h"

namespace rondo::test {
namespace {

#ifdef RONDO_FEWER_RUNS
constexpr int kLongest = 70, kLongestBundled = 12;
#else
constexpr int kLongest = 330, kLongestBundled = 70;  // the engine's sweep has the longer ones
#endif
constexpr int kContext = 448, kAfter = 5;

struct Row {
  std::int32_t token;
  RowLogprobs logprobs;
  bool operator==(const Row& other) const {
    return token == other.token && std::memcmp(&logprobs.chosen, &other.logprobs.chosen, sizeof(float)) == 0 &&
           std::memcmp(logprobs.top, other.logprobs.top, sizeof(float) * 5) == 0 &&
           std::memcmp(logprobs.top_ids, other.logprobs.top_ids, sizeof(std::int32_t) * 5) == 0;
  }
};

// One sequence by the contract: what an engine does for it, by hand.
class Line {
 public:
  Line(Model& model, int slot, std::vector<std::int32_t> ids, int first_block)
      : model_(model), slot_(slot), ids_(std::move(ids)) {
    for (int i = 0; i < (kContext + 63) / 64; ++i) blocks.push_back(first_block + i);
  }
  void prefill(int end, int at_most = 256) {
    while (pos < end) {
      const int count = std::min(at_most, end - pos);
      const Slice slice{slot_, pos, std::span(ids_).subspan(at(pos), at(count)), blocks, true};
      model_.prefill({&slice, 1});
      pos += count;
    }
  }
  // A window of one certain row and `drafts` of the ids that follow, then `wrong` others; what its certain rows yield.
  std::vector<Row> window(int right, int wrong) {
    std::vector<std::int32_t> window(ids_.begin() + pos, ids_.begin() + pos + 1 + right);
    for (int i = 0; i < wrong; ++i) window.push_back((ids_[at(pos)] + 3 + i) % model_.facts().vocab_size);
    const Window asked{.slot = slot_,
                       .start_pos = pos,
                       .ids = window,
                       .certain = 1,
                       .blocks = blocks,
                       .draw = &draw_,
                       .generated = {},
                       .masks = {},
                       .num_top_logprobs = 5};
    const Verified verified = model_.verify({&asked, 1});
    std::vector<Row> rows;
    for (int i = 0; i <= right; ++i) rows.push_back({verified.tokens[at(i)], verified.logprobs[at(i)]});
    const Kept kept{slot_, 1 + right, ids_[at(pos + 1 + right)], true};
    model_.commit({&kept, 1});
    pos += 1 + right;
    return rows;
  }
  std::vector<Drawn> draft(int levels) {
    if (!model_.facts().has_head) return {};
    const DraftStream stream{slot_, &draw_, std::span(ids_).subspan(0, at(pos) + 1), blocks};
    std::vector<Drawn> drafts{model_.draft_first({&stream, 1})[0]};
    const int only = 0;
    for (int level = 1; level < levels; ++level) drafts.push_back(model_.draft_next({&only, 1})[0]);
    return drafts;
  }
  void resume(const Line& from, int state, SavedState saved) {
    for (int i = 0; i < saved.shared_tokens / 64; ++i) blocks[at(i)] = from.blocks[at(i)];
    model_.restore(slot_, state, from.blocks, blocks);
    pos = saved.tokens;
  }
  std::vector<std::int32_t> blocks;
  int pos = 0;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  Model& model_;
  int slot_;
  std::vector<std::int32_t> ids_;
  DrawSettings draw_{.temperature = 0, .bias = {}};
};

bool same(const std::vector<Drawn>& a, const std::vector<Drawn>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Drawn& x, const Drawn& y) {
    return x.token == y.token && std::memcmp(&x.probability, &y.probability, sizeof(float)) == 0;
  });
}

class ResumeOn : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(GetParam().folder);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
    ModelOptions options;
    options.isa = GetParam().isa;
    options.context_tokens = kContext;
    options.max_streams = 4;
    options.max_rows = 256;
    options.cache_states = 4;
    options.cache_blocks = 16;
    auto made = load_model(*checkpoint_, pool_, options, {});
    ASSERT_TRUE(made) << made.error().message;
    model_ = std::move(*made);
  }
  std::vector<std::int32_t> ids(int key, int count) const {
    std::vector<std::int32_t> out;
    for (int i = 0; i < count; ++i)
      out.push_back((i * i * 31 + i * 7 + key * 101 + i / 5) % model_->facts().vocab_size);
    return out;
  }
  // Blocks of a table of its own.
  static int table(int i) { return i * ((kContext + 63) / 64); }

  ThreadPool pool_{2};
  std::optional<Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
};

// Saved after `length` rows that ended in a window with kept and rejected drafts, as at the end of a turn; then another
// sequence with the same beginning and another continuation runs in the shared blocks, and the first one goes on, too.
TEST_P(ResumeOn, WhatFollowsIsWhatAFreshRunHasAtEveryLength) {
  const std::vector<std::int32_t> text = ids(1, kContext);
  for (int length = 4; length <= (GetParam().has_tokenizer ? kLongestBundled : kLongest); ++length) {
    const auto turned = [&](int key) {  // the same for `length` tokens, then another text
      std::vector<std::int32_t> out = ids(key, kContext);
      std::copy(text.begin(), text.begin() + length, out.begin());
      return out;
    };
    Line first(*model_, 0, text, table(0));
    first.prefill(length - 3, 1 + length % 200);
    first.window(0, length % 3);
    if (length % 2 == 0) first.draft(2);
    first.window(1, length % 4);
    ASSERT_EQ(first.pos, length);
    if (length % 5 == 0) first.draft(3);  // as after a cancel: everything is absorbed, and levels were written
    const SavedState saved = model_->save(0, 1);
    ASSERT_EQ(saved.tokens, length);
    ASSERT_LE(saved.shared_tokens, length);

    Line fresh(*model_, 1, turned(2), table(1)), resumed(*model_, 2, turned(2), table(2));
    fresh.prefill(length);
    resumed.resume(first, 1, saved);
    first.window(2, 1);  // goes on behind, in the block that was left open
    first.draft(1);
    const int slice = length % 3 == 0 ? 0 : kAfter + length % 7;
    fresh.prefill(length + slice);
    resumed.prefill(length + slice);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(fresh.window(1, i), resumed.window(1, i)) << "length " << length << " window " << i;
      ASSERT_TRUE(same(fresh.draft(3), resumed.draft(3))) << "length " << length << " drafts " << i;
    }
    // Neither has the first one changed by what was written since, nor its state.
    model_->release(1);
    model_->release(2);
    Line cold(*model_, 1, text, table(1)), again(*model_, 2, text, table(2));
    cold.prefill(length);
    cold.window(2, 1);
    cold.draft(1);
    const auto rows = cold.window(1, 0);
    const auto drafts = cold.draft(3);
    ASSERT_EQ(first.window(1, 0), rows) << "length " << length;
    ASSERT_TRUE(same(first.draft(3), drafts)) << "length " << length;
    again.resume(first, 1, saved);
    again.window(2, 1);
    again.draft(1);
    ASSERT_EQ(again.window(1, 0), rows) << "length " << length;
    ASSERT_TRUE(same(again.draft(3), drafts)) << "length " << length;
    for (int slot = 0; slot < 3; ++slot) model_->release(slot);
  }
}

TEST_P(ResumeOn, ASavedSequenceGoesOnAsIfItHadNotBeen) {
  const std::vector<std::int32_t> text = ids(3, kContext);
  for (int length = 60; length <= 68; ++length) {
    Line saved(*model_, 0, text, table(0)), not_saved(*model_, 1, text, table(1));
    for (Line* each : {&saved, &not_saved}) each->prefill(length);
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(saved.window(i % 3, i % 2), not_saved.window(i % 3, i % 2));
      model_->save(0, 2);
      ASSERT_TRUE(same(saved.draft(2), not_saved.draft(2)));
      model_->save(0, 3);
    }
    model_->release(0);
    model_->release(1);
  }
}

TEST_P(ResumeOn, ASequenceThatNeverDraftsLeavesAStateWithoutAHead) {
  const std::vector<std::int32_t> text = ids(4, 40);
  const std::vector<std::int32_t> blocks{0};
  const Slice slice{0, 0, std::span(text).first(20), blocks, false};
  model_->prefill({&slice, 1});
  const SavedState saved = model_->save(0, 0);
  EXPECT_FALSE(saved.has_head);
  EXPECT_EQ(saved.tokens, 20);
  model_->release(0);
}

using ResumeDeath = ResumeOn;
TEST_P(ResumeDeath, AnOpenWindowHasNoState) {
  const std::vector<std::int32_t> text = ids(5, 8);
  const std::vector<std::int32_t> blocks{0};
  const DrawSettings draw{.temperature = 0, .bias = {}};
  const Window window{0, 0, std::span(text).first(3), 1, blocks, &draw, {}, {}, -1};
  model_->verify({&window, 1});
  EXPECT_DEATH(model_->save(0, 0), "open_rows == 0");
}

std::vector<RealModel> three_models() {
  std::vector<RealModel> some;
  for (const RealModel& each : real_models()) {
    const std::string name = each.name.substr(0, each.name.find("_on_the_gpu"));
    if (name == "qwen3_5" || name == "qwen4_exp" || name == "bundled") some.push_back(each);
  }
  return some;
}
INSTANTIATE_TEST_SUITE_P(Every, ResumeOn, testing::ValuesIn(three_models()),
                         [](const auto& each) { return each.param.name; });
INSTANTIATE_TEST_SUITE_P(Every, ResumeDeath, testing::ValuesIn({real_models()[1]}),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo::test
