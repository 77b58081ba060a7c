// The drafting pass on real models, bit for bit: a stream's proposals and probabilities are the same whoever drafts
// beside it, however the pass was split, and however its rows came to the head. What goes wrong here changes no text,
// only how many drafts are kept, so nothing else would see it.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ckpt/checkpoint.h"
#include "tests/engine/real_model.h"
#include "tests/model/golden.h"

namespace rondo::test {
namespace {

constexpr int kContext = 112;
constexpr int kStreams = 6;

// A text that one slot is fed, token by token, whatever the model would have said.
struct Line {
  int slot;
  std::vector<std::int32_t> text;
  std::vector<std::int32_t> blocks;
  DrawSettings draw;
  int pos = 0;

  DraftStream drafting() const {
    return {.slot = slot,
            .draw = &draw,
            .generated = std::span(text).first(static_cast<std::size_t>(pos) + 1),
            .blocks = blocks};
  }
};

using Drafts = std::vector<std::vector<Drawn>>;  // by line, then by depth

std::string in_words(const std::vector<Drawn>& drafts) {
  std::string words;
  for (const Drawn& each : drafts) words += std::to_string(each.token) + ":" + std::to_string(each.probability) + " ";
  return words;
}

bool same_bits(const std::vector<Drawn>& a, const std::vector<Drawn>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].token != b[i].token || std::memcmp(&a[i].probability, &b[i].probability, sizeof(float)) != 0) return false;
  }
  return true;
}

class HeadOn : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(GetParam().folder);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
  }

  std::unique_ptr<Model> load(int rows, int drafts = 8) {
    ModelOptions options;
    options.isa = GetParam().isa;
    options.context_tokens = kContext;
    options.max_streams = kStreams;
    options.max_rows = rows;
    options.max_drafts = drafts;
    auto model = load_model(*checkpoint_, pool_, options, {});
    CHECK(model.has_value());
    return std::move(*model);
  }

  std::vector<Line> lines(const Model& model) {
    std::vector<Line> all;
    std::mt19937 random(11);
    const int each = model.facts().num_blocks / kStreams;
    for (int slot = 0; slot < kStreams; ++slot) {
      Line line{.slot = slot, .text = {}, .blocks = {}, .draw = {}};
      for (int i = 0; i <= kContext; ++i) line.text.push_back(static_cast<std::int32_t>(random() % 300));
      for (int b = 0; b < each; ++b) line.blocks.push_back(b * kStreams + slot);
      line.draw.temperature = slot % 3 == 0 ? 0.0F : slot % 3 == 1 ? 0.7F : 1.2F;
      line.draw.seed = static_cast<std::uint64_t>(slot) + 5;
      if (slot == 2) line.draw.presence_penalty = 1.0F;
      if (slot == 4) line.draw.bias = {{7, 2.0F}};
      all.push_back(line);
    }
    return all;
  }

  // `rows` more rows of the line, all of them kept.
  static void feed(Model& model, Line& line, int rows) {
    const Window window{
        .slot = line.slot,
        .start_pos = line.pos,
        .ids = std::span(line.text).subspan(static_cast<std::size_t>(line.pos), static_cast<std::size_t>(rows)),
        .certain = rows,
        .blocks = line.blocks,
        .draw = &line.draw,
        .generated = {},
        .masks = {},
        .num_top_logprobs = -1};
    model.verify({&window, 1});
    line.pos += rows;
    const Kept kept{.slot = line.slot,
                    .rows = rows,
                    .next_token = line.text[static_cast<std::size_t>(line.pos)],
                    .feeds_head = true};
    model.commit({&kept, 1});
  }
  static void fill(Model& model, Line& line, int rows) {
    const Slice slice{
        .slot = line.slot,
        .start_pos = line.pos,
        .ids = std::span(line.text).subspan(static_cast<std::size_t>(line.pos), static_cast<std::size_t>(rows)),
        .blocks = line.blocks,
        .feeds_head = true};
    model.prefill({&slice, 1});
    line.pos += rows;
  }

  static Drafts draft(Model& model, const std::vector<const Line*>& lines, const std::vector<int>& depths) {
    Drafts drafts(lines.size());
    std::vector<DraftStream> streams;
    for (const Line* line : lines) streams.push_back(line->drafting());
    const auto first = model.draft_first(streams);
    for (std::size_t i = 0; i < lines.size(); ++i) drafts[i].push_back(first[i]);
    for (int level = 1;; ++level) {
      std::vector<int> still;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (depths[i] > level) still.push_back(static_cast<int>(i));
      }
      if (still.empty()) return drafts;
      const auto next = model.draft_next(still);
      for (const int i : still) drafts[static_cast<std::size_t>(i)].push_back(next[static_cast<std::size_t>(i)]);
    }
  }

  struct Pass {
    std::vector<int> fed;     // rows of each line since the last pass
    std::vector<int> depths;  // of its drafts; 0 = it does not draft
  };
  // The passes' drafts by line, batched or one stream at a time.
  static std::vector<Drafts> run(Model& model, std::vector<Line> lines, const std::vector<Pass>& passes, int step,
                                 bool batched) {
    std::vector<Drafts> all;
    for (Line& line : lines) model.release(line.slot);
    for (const Pass& pass : passes) {
      std::vector<const Line*> drafting;
      std::vector<int> depths;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        for (int left = pass.fed[i]; left > 0; left -= step) feed(model, lines[i], std::min(step, left));
        if (pass.depths[i] == 0) continue;
        drafting.push_back(&lines[i]);
        depths.push_back(pass.depths[i]);
      }
      if (batched) {
        all.push_back(draft(model, drafting, depths));
        continue;
      }
      all.emplace_back();
      for (std::size_t i = drafting.size(); i-- > 0;)  // another order, too
        all.back().insert(all.back().begin(), draft(model, {drafting[i]}, {depths[i]})[0]);
    }
    return all;
  }

  void expect_parity(int max_rows, const std::vector<Pass>& passes, int step) {
    const auto model = load(max_rows);
    const auto together = run(*model, lines(*model), passes, step, true);
    const auto alone = run(*model, lines(*model), passes, step, false);
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      for (std::size_t i = 0; i < together[pass].size(); ++i) {
        EXPECT_TRUE(same_bits(together[pass][i], alone[pass][i]))
            << "pass " << pass << " stream " << i << ": " << in_words(together[pass][i]) << "alone "
            << in_words(alone[pass][i]);
      }
    }
  }

  ThreadPool pool_{2};
  std::optional<Checkpoint> checkpoint_;
};

TEST_P(HeadOn, ABatchOfOneRowStreamsDraftsAsEachAlone) {
  expect_parity(64, {{{3, 3, 3, 3, 3, 3}, {1, 8, 3, 2, 8, 5}}, {{1, 1, 1, 1, 1, 1}, {4, 4, 1, 8, 1, 2}}}, 1);
}

TEST_P(HeadOn, ABatchOfLongAndShortStreamsDraftsAsEachAlone) {
  expect_parity(64,
                {{{16, 1, 16, 1, 16, 16}, {3, 3, 3, 3, 3, 3}},
                 {{1, 16, 1, 2, 3, 4}, {2, 0, 8, 8, 0, 1}},
                 {{1, 1, 1, 1, 1, 1}, {5, 5, 5, 5, 5, 5}}},
                16);
}

TEST_P(HeadOn, APassSplitIntoGroupsDraftsAsEachAlone) {
  expect_parity(16, {{{10, 10, 5, 12, 16, 1}, {3, 5, 3, 8, 3, 3}}, {{9, 1, 1, 8, 8, 8}, {2, 6, 8, 8, 0, 1}}}, 8);
}

TEST_P(HeadOn, MoreWaitingRowsThanOnePassHoldsDraftAsEachAlone) {
  expect_parity(8, {{{30, 9, 8, 40, 64, 1}, {3, 5, 3, 8, 3, 3}}, {{20, 1, 9, 8, 17, 8}, {2, 6, 8, 8, 2, 1}}}, 8);
}

TEST_P(HeadOn, AFullBufferLetsItsOldestRowsGoAndDraftsAsEachAlone) {
  expect_parity(16, {{{80, 65, 64, 90, 70, 3}, {3, 5, 3, 8, 3, 3}}, {{4, 1, 9, 8, 1, 70}, {2, 6, 8, 8, 2, 1}}}, 5);
  const auto model = load(16);
  Line line = lines(*model)[0];
  for (int row = 0; row < 100; ++row) {
    feed(*model, line, 1);
    EXPECT_LE(model->waiting_rows(0), 64);
    EXPECT_GE(model->waiting_rows(0), std::min(row + 1, 32));
  }
}

// How the rows came to the head: round by round with a drafting pass each (whose deeper rows must be written over),
// all at once after waiting, or as prompt slices.
TEST_P(HeadOn, AHeadThatWaitedDraftsAsOneThatReadEveryRound) {
  const auto model = load(16);
  for (const int rows : {2, 7, 33, 60}) {
    std::vector<Line> each = lines(*model);
    for (Line& line : each) {
      model->release(line.slot);
      line.text = each[0].text;
      line.draw = each[1].draw;
    }
    for (int row = 0; row < rows; ++row) {
      feed(*model, each[0], 1);
      feed(*model, each[1], 1);
      if (row + 1 < rows) draft(*model, {&each[0]}, {1 + row % 6});
      if (row % 5 == 4 && row + 1 < rows) draft(*model, {&each[1]}, {8});
      feed(*model, each[2], 1);
    }
    for (int left = rows - 1; left > 0; left -= 13) fill(*model, each[3], std::min(13, left));
    feed(*model, each[3], 1);
    for (int left = rows - 1; left > 0; left -= 1) fill(*model, each[4], 1);
    feed(*model, each[4], 1);
    const Drafts drafts = draft(*model, {&each[0], &each[1], &each[2], &each[3], &each[4]}, {4, 4, 4, 4, 4});
    for (std::size_t i = 1; i < drafts.size(); ++i)
      EXPECT_TRUE(same_bits(drafts[i], drafts[0]))
          << "rows " << rows << " way " << i << ": " << in_words(drafts[i]) << "not " << in_words(drafts[0]);
  }
}

// Hot enough, a draw is all noise: a draft meets the target's own only if both are keyed alike.
TEST_P(HeadOn, DraftsMeetTheNoiseOfTheTargetsOwnDraws) {
  const auto model = load(16);
  Line line = lines(*model)[0];
  line.draw.temperature = 100;
  feed(*model, line, 5);
  int met = 0, seen = 0;
  for (int round = 0; round < 8; ++round) {
    const std::vector<Drawn> drafts = draft(*model, {&line}, {4})[0];
    std::vector<std::int32_t> ids{line.text[static_cast<std::size_t>(line.pos)]};
    for (const Drawn& each : drafts) ids.push_back(each.token);
    const Window window{.slot = line.slot,
                        .start_pos = line.pos,
                        .ids = ids,
                        .certain = 1,
                        .blocks = line.blocks,
                        .draw = &line.draw,
                        .generated = {},
                        .masks = {},
                        .num_top_logprobs = -1};
    const Verified verified = model->verify({&window, 1});
    for (std::size_t i = 0; i < drafts.size(); ++i, ++seen) met += verified.tokens[i] == drafts[i].token;
    ++line.pos;
    const Kept kept{
        .slot = line.slot, .rows = 1, .next_token = line.text[static_cast<std::size_t>(line.pos)], .feeds_head = true};
    model->commit({&kept, 1});
  }
  EXPECT_GT(met, seen * 7 / 10) << "of " << seen;
}

// A token is drawn at its own absolute position: the logits of the plain network, drawn by hand.
TEST_P(HeadOn, ATokenIsDrawnWithTheKeyOfItsOwnPosition) {
  const auto model = load(16);
  Line line = lines(*model)[1];
  TestNetwork net(*checkpoint_, GetParam().isa, kContext, 1, 2, 16);
  net.run(
      {{.slot = 0, .start_pos = 0, .ids = {line.text.begin(), line.text.begin() + 9}, .certain = 9, .history = {}}});
  const auto logits = net.logits(9);
  const std::size_t vocab = logits[0].size();
  std::vector<Candidate> room(vocab);
  for (int certain = 1; certain <= 9; ++certain) {
    for (Line each : {line}) {
      model->release(each.slot);
      const Window window{.slot = each.slot,
                          .start_pos = 0,
                          .ids = std::span(each.text).first(9),
                          .certain = certain,
                          .blocks = each.blocks,
                          .draw = &each.draw,
                          .generated = {},
                          .masks = {},
                          .num_top_logprobs = -1};
      const Verified verified = model->verify({&window, 1});
      for (int row = certain - 1; row < 9; ++row) {
        const DrawRow drawn{.settings = &each.draw, .position = row + 1, .generated = {}, .drafted = {}, .mask = {}};
        EXPECT_EQ(verified.tokens[static_cast<std::size_t>(row - certain + 1)],
                  draw(best_isa(), logits[static_cast<std::size_t>(row)], drawn, {room, {}, {}}));
      }
      const Kept kept{.slot = each.slot, .rows = 9, .next_token = 0, .feeds_head = false};
      model->commit({&kept, 1});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, HeadOn, testing::ValuesIn(real_models()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo::test
