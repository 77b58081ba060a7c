// A quantised checkpoint runs as the same checkpoint decoded beforehand: bit for bit, on every instruction set, and
// within the tolerance of float32 activations of the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "ckpt/checkpoint.h"
#include "tests/ckpt/damage.h"
#include "tests/model/golden.h"
#include "tools/quantise/requantise.h"

namespace rondo {
namespace {

using Scheme = QuantiseSpec::Scheme;
using Logits = std::vector<std::vector<float>>;

struct Case {
  std::string fixture, format;
  QuantiseSpec spec;
};
void PrintTo(const Case& each, std::ostream* to) { *to << each.fixture << " in " << each.format; }

class Quantised : public testing::TestWithParam<Case> {};

// Of the target, then of the head, over a prompt of the vocabulary's ids.
Logits run(const WeightSource& source, Isa isa) {
  constexpr int kRows = 40;
  std::vector<std::int32_t> ids;
  for (int i = 0; i < kRows; ++i) ids.push_back((i * 53 + 7) % source.config().vocab_size);
  TestNetwork net(source, isa, 64);
  net.run({{.slot = 0, .start_pos = 0, .ids = ids, .certain = kRows, .history = {}}});
  Logits all = net.logits(kRows);
  std::vector<float> buffer(static_cast<std::size_t>(kRows * net.hidden_width()));
  const Tensor next{buffer.data(), DType::F32, {kRows, net.hidden_width()}};
  net.run_head({{.slot = 0, .start_pos = 0, .ids = ids, .certain = kRows, .history = {}}}, net.hidden(), next);
  const Logits head = net.head_logits(kRows, next);
  all.insert(all.end(), head.begin(), head.end());
  return all;
}

float largest_difference(const Logits& a, const Logits& b) {
  float most = 0;
  for (std::size_t row = 0; row < a.size(); ++row) {
    for (std::size_t i = 0; i < a[row].size(); ++i) {
      const float difference = std::abs(a[row][i] - b[row][i]);
      most = difference <= most ? most : difference;  // NaN counts as the most
    }
  }
  return most;
}

TEST_P(Quantised, RunsAsTheSameWeightsDecodedBeforehand) {
  const std::string fixture = std::string(RONDO_FIXTURES) + "/" + GetParam().fixture;
  TempFolder coded_folder, decoded_folder;
  ASSERT_TRUE(requantise(fixture, coded_folder.path(), GetParam().spec));
  ASSERT_TRUE(requantise(coded_folder.path(), decoded_folder.path(), {.scheme = Scheme::Decoded}));
  const auto coded = Checkpoint::open(coded_folder.path()), decoded = Checkpoint::open(decoded_folder.path());
  const auto original = Checkpoint::open(fixture);
  ASSERT_TRUE(coded && decoded && original);
  const Logits reference = run(*coded, Isa::Reference);
  for (const Isa isa : {Isa::Reference, Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (!has_isa(isa)) continue;
    const Logits ours = run(*coded, isa);
    EXPECT_TRUE(ours == run(*decoded, isa)) << isa_name(isa);
    EXPECT_LT(largest_difference(ours, reference), 1e-3F) << isa_name(isa);
  }
  // Control: the codes do lose something, so the comparison above is not of the original with itself.
  EXPECT_GT(largest_difference(reference, run(*original, Isa::Reference)), 1e-3F);
}

std::vector<Case> cases() {
  const std::pair<const char*, QuantiseSpec> formats[] = {{"fp8", {.scheme = Scheme::Fp8, .block = 32}},
                                                          {"nvfp4", {.scheme = Scheme::Nvfp4, .block = 32}},
                                                          {"affine4", {.scheme = Scheme::Affine, .bits = 4}},
                                                          {"affine6", {.scheme = Scheme::Affine, .bits = 6}},
                                                          {"affine8", {.scheme = Scheme::Affine, .bits = 8}}};
  std::vector<Case> all;
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}) {
    for (const auto& [name, spec] : formats) all.push_back({fixture, name, spec});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Every, Quantised, testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.fixture + "_" + each.param.format; });

TEST(QuantisedPlan, CountsTheBytesThatAreRead) {
  TempFolder folder;
  ASSERT_TRUE(requantise(std::string(RONDO_FIXTURES) + "/qwen4_exp", folder.path(), {.scheme = Scheme::Affine}));
  const auto coded = Checkpoint::open(folder.path());
  ASSERT_TRUE(coded);
  ThreadPool pool(1);
  const MemoryPlan plan = plan_memory(*coded, pool, {});
  std::uint64_t bytes = 0;
  for (const auto& entry : coded->entries()) {
    const bool is_vector = !coded->find_weight(entry.name) && entry.name.find("switch_mlp") == entry.name.npos;
    if (entry.used && !is_vector && !entry.format.empty()) bytes += entry.size_bytes;
  }
  EXPECT_EQ(plan.lines.front().bytes, bytes);
  EXPECT_TRUE(plan.lines.front().mapped);
}

}  // namespace
}  // namespace rondo
