// The whole model against transformers' float32 goldens, by the reference ops and by every instruction set this machine
// has.

#include "tests/model/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ckpt/checkpoint.h"

namespace rondo {
namespace {

constexpr float kTolerance = 1e-3F;  // float32 activations: tests/fixtures/README.md

struct Case {
  std::string fixture;
  Isa isa;
};

class GoldenOn : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!has_isa(GetParam().isa)) GTEST_SKIP() << "this machine lacks " << isa_name(GetParam().isa);
  }
};

float largest_difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  float most = ours.size() == theirs.size() ? 0.0F : INFINITY;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    const float difference = std::abs(ours[i] - theirs[i]);
    most = difference <= most ? most : difference;  // NaN counts as the most
  }
  return most;
}

TEST_P(GoldenOn, FixtureLogitsAndGreedyTextAreTransformers) {
  const std::string folder = std::string(RONDO_FIXTURES) + "/" + GetParam().fixture;
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const json::Value golden = read_json(folder + "/golden.json");
  const auto ids = numbers<std::int32_t>(golden.at("ids"));
  TestNetwork net(*checkpoint, GetParam().isa, 128);
  const int rows = static_cast<int>(ids.size());
  net.run({{.slot = 0, .start_pos = 0, .ids = ids, .certain = rows, .history = {}}});
  const auto logits = net.logits(rows);
  const auto stored = numbers<int>(golden.at("rows"));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto theirs = numbers<float>(golden.at("logits").as_array()[i]);
    EXPECT_LT(largest_difference(logits[static_cast<std::size_t>(stored[i])], theirs), kTolerance)
        << "row " << stored[i];
  }
  const auto best = numbers<int>(golden.at("argmax"));
  for (std::size_t r = 0; r < best.size(); ++r) EXPECT_EQ(argmax(logits[r]), best[r]) << "row " << r;

  // The head's chained steps: row t of step j reads token t + j and the hidden of row t after step j - 1.
  const auto greedy = numbers<std::int32_t>(golden.at("greedy"));
  std::vector<std::int32_t> all = ids;
  all.insert(all.end(), greedy.begin(), greedy.end());
  std::vector<float> buffers[2];
  for (auto& each : buffers) each.resize(static_cast<std::size_t>(rows * net.hidden_width()));
  Tensor hidden = net.hidden();
  const auto& steps = golden.at("mtp_logits").as_array();
  for (std::size_t j = 1; j <= steps.size(); ++j) {
    const std::vector<std::int32_t> shifted(all.begin() + static_cast<std::ptrdiff_t>(j),
                                            all.begin() + static_cast<std::ptrdiff_t>(j) + rows);
    const Tensor next{buffers[j % 2].data(), DType::F32, {rows, net.hidden_width()}};
    net.run_head({{.slot = 0, .start_pos = 0, .ids = shifted, .certain = rows, .history = {}}}, hidden, next);
    const auto head = net.head_logits(rows, next);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const auto theirs = numbers<float>(steps[j - 1].as_array()[i]);
      EXPECT_LT(largest_difference(head[static_cast<std::size_t>(stored[i])], theirs), kTolerance)
          << "step " << j << " row " << stored[i];
    }
    const auto head_best = numbers<int>(golden.at("mtp_argmax").as_array()[j - 1]);
    for (std::size_t r = 0; r < head_best.size(); ++r)
      EXPECT_EQ(argmax(head[r]), head_best[r]) << "step " << j << " row " << r;
    hidden = next;
  }
}

// Planted control: the comparison sees one logit off by twice the tolerance, and a NaN.
TEST(Golden, ADifferenceIsSeen) {
  EXPECT_GT(largest_difference({1, 2, 3}, {1, 2 + 2 * kTolerance, 3}), kTolerance);
  EXPECT_FALSE(largest_difference({1, NAN}, {1, 2}) < kTolerance);
  EXPECT_FALSE(largest_difference({1}, {1, 2}) < kTolerance);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}) {
    for (const Isa isa : {Isa::Reference, Isa::Baseline, Isa::Avx2, Isa::Avx512}) all.push_back({fixture, isa});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, GoldenOn, testing::ValuesIn(cases()), [](const auto& each) {
  return each.param.fixture + "_" + std::string(isa_name(each.param.isa));
});

}  // namespace
}  // namespace rondo
