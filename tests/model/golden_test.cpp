// The whole model against transformers' float32 goldens, by the reference ops and by every instruction set this machine
// has.

#include "tests/model/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "ckpt/checkpoint.h"

namespace rondo {
namespace {

constexpr float kTolerance = 1e-3F;  // float32 activations: tests/fixtures/README.md

// bf16 activations, the same page: relative root mean square, and rows of 90 whose likeliest token is the same.
constexpr double kRelativeRms = 0.08, kNextRelativeRms = 0.25;
constexpr int kSameBest = 75;

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

// Rows against goldens: by the largest difference where activations are f32, else by the page's other measure.
class Comparison {
 public:
  explicit Comparison(const Case& of)
      : in_f32_(of.isa != Isa::Sm90), most_rms_(of.fixture == "qwen3_next" ? kNextRelativeRms : kRelativeRms) {}
  void logits(const std::vector<float>& ours, const std::vector<float>& theirs, const std::string& where) {
    if (in_f32_) {
      EXPECT_LT(largest_difference(ours, theirs), kTolerance) << where;
      return;
    }
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      difference_ += std::pow(static_cast<double>(ours[i]) - theirs[i], 2);
      size_ += std::pow(static_cast<double>(theirs[i]), 2);
    }
  }
  void best(const std::vector<float>& ours, int theirs, const std::string& where) {
    if (in_f32_) {
      EXPECT_EQ(argmax(ours), theirs) << where;
    }
    same_ += argmax(ours) == theirs ? 1 : 0;
    ++rows_;
  }
  void done(const std::string& what) {
    if (!in_f32_) {
      const double rms = std::sqrt(difference_ / size_);
      std::printf("%s: relative rms %.4f, %d of %d rows choose the same\n", what.c_str(), rms, same_, rows_);
      EXPECT_LE(rms, most_rms_) << what;
      EXPECT_GE(same_ * 90, kSameBest * rows_) << what;
    }
    difference_ = size_ = same_ = rows_ = 0;
  }

 private:
  bool in_f32_;
  double most_rms_, difference_ = 0, size_ = 0;
  int same_ = 0, rows_ = 0;
};

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
  Comparison comparison(GetParam());
  const auto stored = numbers<int>(golden.at("rows"));
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto theirs = numbers<float>(golden.at("logits").as_array()[i]);
    comparison.logits(logits[static_cast<std::size_t>(stored[i])], theirs, "row " + std::to_string(stored[i]));
  }
  const auto best = numbers<int>(golden.at("argmax"));
  for (std::size_t r = 0; r < best.size(); ++r) comparison.best(logits[r], best[r], "row " + std::to_string(r));
  comparison.done(GetParam().fixture);

  // The head's chained steps: row t of step j reads token t + j and the hidden of row t after step j - 1.
  const auto greedy = numbers<std::int32_t>(golden.at("greedy"));
  std::vector<std::int32_t> all = ids;
  all.insert(all.end(), greedy.begin(), greedy.end());
  Tensor hidden = net.hidden();
  const auto& steps = golden.at("mtp_logits").as_array();
  for (std::size_t j = 1; j <= steps.size(); ++j) {
    const std::vector<std::int32_t> shifted(all.begin() + static_cast<std::ptrdiff_t>(j),
                                            all.begin() + static_cast<std::ptrdiff_t>(j) + rows);
    const Tensor next = net.head_room(static_cast<int>(j % 2)).slice(0, rows);
    net.run_head({{.slot = 0, .start_pos = 0, .ids = shifted, .certain = rows, .history = {}}}, hidden, next);
    const auto head = net.head_logits(rows, next);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const auto theirs = numbers<float>(steps[j - 1].as_array()[i]);
      comparison.logits(head[static_cast<std::size_t>(stored[i])], theirs,
                        "step " + std::to_string(j) + " row " + std::to_string(stored[i]));
    }
    const auto head_best = numbers<int>(golden.at("mtp_argmax").as_array()[j - 1]);
    for (std::size_t r = 0; r < head_best.size(); ++r)
      comparison.best(head[r], head_best[r], "step " + std::to_string(j) + " row " + std::to_string(r));
    comparison.done(GetParam().fixture + ", head's step " + std::to_string(j));
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
    for (const Isa isa : {Isa::Reference, Isa::Baseline, Isa::Avx2, Isa::Avx512, Isa::Sm90})
      all.push_back({fixture, isa});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, GoldenOn, testing::ValuesIn(cases()), [](const auto& each) {
  return each.param.fixture + "_" + std::string(isa_name(each.param.isa));
});

}  // namespace
}  // namespace rondo
