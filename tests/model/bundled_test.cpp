// The bundled model: its golden texts token for token, its head's choices, sparse attention past the budget, and that
// production arithmetic is worth the reference's perplexity.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "ops/sample/draw.h"
#include "tests/model/golden.h"

namespace rondo {
namespace {

const Checkpoint& bundled() {
  static const Checkpoint checkpoint = [] {
    auto opened = Checkpoint::open(RONDO_BUNDLED_MODEL);
    CHECK(opened.has_value());
    return std::move(*opened);
  }();
  return checkpoint;
}

std::vector<Isa> instruction_sets() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::Reference, Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (has_isa(isa)) all.push_back(isa);
  }
  return all;
}

class BundledOn : public testing::TestWithParam<Isa> {};

// golden.json's texts were sampled from transformers' equations in float32.
TEST_P(BundledOn, GoldenTextsComeOutTokenForToken) {
  const json::Value golden = read_json(std::string(RONDO_BUNDLED_MODEL) + "/../../tests/golden/rondo-demo.json");
  for (const auto& [name, entry] : golden.as_object()) {
    const auto prompt = numbers<std::int32_t>(entry.at("prompt_ids"));
    const auto greedy = numbers<std::int32_t>(entry.at("greedy_ids"));
    TestNetwork net(bundled(), GetParam(), 256, 1, 2, 256);
    net.run({{.slot = 0, .start_pos = 0, .ids = prompt, .certain = static_cast<int>(prompt.size()), .history = {}}});
    std::vector<float> last = net.logits(static_cast<int>(prompt.size())).back();
    std::vector<std::int32_t> all = prompt;
    for (std::size_t i = 0; i <= greedy.size(); ++i) {
      const auto top_ids = numbers<int>(entry.at("top8_ids").as_array()[i]);
      const auto top_logits = numbers<float>(entry.at("top8_logits").as_array()[i]);
      for (std::size_t j = 0; j < top_ids.size(); ++j) {
        EXPECT_NEAR(last[static_cast<std::size_t>(top_ids[j])], top_logits[j], 1e-3) << name << " token " << i;
      }
      if (i == greedy.size()) break;
      ASSERT_EQ(argmax(last), greedy[i]) << name << " token " << i;
      const std::vector<std::int32_t> history(all.end() - 2, all.end());
      all.push_back(greedy[i]);
      net.run({{.slot = 0,
                .start_pos = static_cast<int>(all.size()) - 1,
                .ids = {greedy[i]},
                .certain = 1,
                .history = history}});
      last = net.logits(1)[0];
    }
  }
}

TEST_P(BundledOn, TheHeadChoosesTheGoldenTokens) {
  const json::Value golden = read_json(std::string(RONDO_BUNDLED_MODEL) + "/../../tests/golden/rondo-demo.json");
  int compared = 0;
  for (const auto& [name, entry] : golden.as_object()) {
    auto ids = numbers<std::int32_t>(entry.at("prompt_ids"));
    const int prompt_rows = static_cast<int>(ids.size());
    const auto greedy = numbers<std::int32_t>(entry.at("greedy_ids"));
    ids.insert(ids.end(), greedy.begin(), greedy.end());
    const int rows = static_cast<int>(ids.size());
    TestNetwork net(bundled(), GetParam(), 256, 1, 2, 256);
    net.run({{.slot = 0, .start_pos = 0, .ids = ids, .certain = rows, .history = {}}});
    Tensor hidden = net.hidden();
    for (int step = 1; step <= 3; ++step) {
      // Past the text's end the tokens are padding: those rows see nothing that earlier rows do, and are not compared.
      std::vector<std::int32_t> shifted(ids.begin() + step, ids.end());
      shifted.resize(static_cast<std::size_t>(rows), 0);
      const Tensor next = net.head_room(step % 2).slice(0, rows);
      net.run_head({{.slot = 0, .start_pos = 0, .ids = shifted, .certain = rows, .history = {}}}, hidden, next);
      const auto head = net.head_logits(rows, next);
      const auto best = numbers<int>(entry.at("head_top1").as_array()[static_cast<std::size_t>(step - 1)]);
      for (int r = prompt_rows - 1; r + step < rows; ++r, ++compared) {
        EXPECT_EQ(argmax(head[static_cast<std::size_t>(r)]), best[static_cast<std::size_t>(r - prompt_rows + 1)])
            << name << " step " << step << " row " << r;
      }
      hidden = next;
    }
  }
  EXPECT_GT(compared, 700);
}

INSTANTIATE_TEST_SUITE_P(Every, BundledOn, testing::ValuesIn(instruction_sets()),
                         [](const auto& each) { return std::string(isa_name(each.param)); });

// Text the model itself writes under a fixed seed, several sequences at a time, by the reference; with the chance it
// gave each.
struct Sampled {
  std::vector<std::vector<std::int32_t>> ids;
  double nats = 0;
};

double surprise(const std::vector<float>& logits, std::int32_t id) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(logit - most);
  return most + std::log(total) - logits[static_cast<std::size_t>(id)];
}

Sampled sample(int sequences, int length) {
  TestNetwork net(bundled(), Isa::Reference, length, sequences, 2, sequences);
  Sampled out;
  out.ids.assign(static_cast<std::size_t>(sequences), {bundled().config().eos_token});
  std::vector<Candidate> room(static_cast<std::size_t>(bundled().config().vocab_size));
  for (int t = 0; t + 1 < length; ++t) {
    std::vector<TestNetwork::Piece> pieces;
    for (int i = 0; i < sequences; ++i) {
      const auto& ids = out.ids[static_cast<std::size_t>(i)];
      pieces.push_back({.slot = i,
                        .start_pos = t,
                        .ids = {ids.back()},
                        .certain = 1,
                        .history = {ids.begin() + std::max(0, t - 2), ids.begin() + t}});
    }
    net.run(pieces);
    const auto logits = net.logits(sequences);
    for (std::size_t i = 0; i < out.ids.size(); ++i) {
      const DrawSettings settings{.temperature = 1, .bias = {}, .seed = i};
      const DrawRow row{.settings = &settings, .position = t + 1, .generated = {}, .drafted = {}, .mask = {}};
      const std::int32_t id = draw(Isa::Reference, logits[i], row, {room, {}, {}});
      out.nats += surprise(logits[i], id);
      out.ids[i].push_back(id);
    }
  }
  return out;
}

double nats_of(const std::vector<std::vector<std::int32_t>>& texts, Isa isa) {
  const int length = static_cast<int>(texts[0].size());
  double nats = 0;
  TestNetwork net(bundled(), isa, length, 1, 2, 256);
  for (const auto& ids : texts) {
    for (int begin = 0; begin < length; begin += 256) {
      const int end = std::min(begin + 256, length);
      net.run({{.slot = 0,
                .start_pos = begin,
                .ids = {ids.begin() + begin, ids.begin() + end},
                .certain = end - begin,
                .history = {ids.begin() + std::max(0, begin - 2), ids.begin() + begin}}});
      const auto logits = net.logits(end - begin);
      for (int t = begin; t < end && t + 1 < length; ++t) {
        nats += surprise(logits[static_cast<std::size_t>(t - begin)], ids[static_cast<std::size_t>(t + 1)]);
      }
    }
  }
  return nats;
}

#ifdef RONDO_FEWER_RUNS
constexpr int kWindows = 2, kLength = 300;
#else
constexpr int kWindows = 20, kLength = 1024;
#endif

TEST(Bundled, ProductionPerplexityIsTheReferencesWithinATenthOfAPercent) {
  const Sampled text = sample(kWindows, kLength);
  const double tokens = kWindows * (kLength - 1.0);
  const double reference = std::exp(text.nats / tokens);
  for (const Isa isa : instruction_sets()) {
    if (isa == Isa::Reference) continue;
    EXPECT_NEAR(std::exp(nats_of(text.ids, isa) / tokens) / reference, 1, 1e-3) << isa_name(isa);
  }
  // Planted control: one wrong token in a hundred shows.
  auto worn = text.ids;
  for (auto& ids : worn) {
    for (std::size_t t = 50; t < ids.size(); t += 100) ids[t] ^= 1;
  }
  EXPECT_GT(std::exp(nats_of(worn, best_isa()) / tokens) / reference, 1.001);
  if (has_isa(Isa::Sm90)) {  // bf16 activations: tests/fixtures/README.md
    const double ratio = std::exp(nats_of(text.ids, Isa::Sm90) / tokens) / reference;
    std::printf("perplexity on the GPU over the reference's: %.5f\n", ratio);
    EXPECT_NEAR(ratio, 1, 5e-3);
  }
}

// 700 tokens: attention selects 64 blocks of 4 out of up to 175.
TEST(Bundled, SparseAttentionPastTheBudgetIsTheReferences) {
  std::vector<std::int32_t> ids;
  std::mt19937 random(3);
  for (int t = 0; t < 700; ++t) ids.push_back(static_cast<std::int32_t>(random() % 6000));
  const auto logits_on = [&](Isa isa) {
    TestNetwork net(bundled(), isa, 704, 1, 2, 700);
    net.run({{.slot = 0, .start_pos = 0, .ids = ids, .certain = 700, .history = {}}});
    return net.logits(700);
  };
  const auto expected = logits_on(Isa::Reference);
  for (const Isa isa : instruction_sets()) {
    const auto got = logits_on(isa);
    for (std::size_t r = 0; r < got.size(); ++r) {
      float most = 0;
      for (std::size_t i = 0; i < got[r].size(); ++i) most = std::max(most, std::abs(got[r][i] - expected[r][i]));
      ASSERT_LT(most, 1e-3) << isa_name(isa) << " row " << r;
    }
  }
}

}  // namespace
}  // namespace rondo
