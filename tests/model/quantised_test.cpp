// A quantised checkpoint runs as the same checkpoint decoded beforehand: bit for bit, on every instruction set, and
// within the tolerance of float32 activations of the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

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
  const Tensor next = net.head_room(1).slice(0, kRows);
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

double relative_rms(const Logits& got, const Logits& want) {
  double off = 0, all = 0;
  for (std::size_t row = 0; row < want.size(); ++row) {
    for (std::size_t i = 0; i < want[row].size(); ++i) {
      const double difference = static_cast<double>(got[row][i]) - want[row][i];
      off += difference * difference;
      all += static_cast<double>(want[row][i]) * want[row][i];
    }
  }
  return std::sqrt(off / all);
}

// On a GPU a tensor scale stands behind the sum; without one (all but nvfp4 here) the decoded checkpoint comes to the
// same bits there too.
class QuantisedOnTheGpu : public testing::TestWithParam<Case> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(QuantisedOnTheGpu);  // where there is none

TEST_P(QuantisedOnTheGpu, RunsAsTheSameWeightsDecodedBeforehand) {
  const std::string fixture = std::string(RONDO_FIXTURES) + "/" + GetParam().fixture;
  TempFolder coded_folder, decoded_folder;
  ASSERT_TRUE(requantise(fixture, coded_folder.path(), GetParam().spec));
  ASSERT_TRUE(requantise(coded_folder.path(), decoded_folder.path(), {.scheme = Scheme::Decoded}));
  const auto coded = Checkpoint::open(coded_folder.path()), decoded = Checkpoint::open(decoded_folder.path());
  ASSERT_TRUE(coded && decoded);
  const Logits reference = run(*coded, Isa::Reference), ours = run(*coded, Isa::Sm90),
               theirs = run(*decoded, Isa::Sm90);
  EXPECT_TRUE(ours == theirs || GetParam().spec.scheme == Scheme::Nvfp4);
  const double off = relative_rms(ours, reference);
  EXPECT_LT(off, 0.3);
  EXPECT_LT(relative_rms(theirs, reference), 0.3);
  std::printf("relative rms %.3f  %s in %s\n", off, GetParam().fixture.c_str(), GetParam().format.c_str());
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

INSTANTIATE_TEST_SUITE_P(Every, QuantisedOnTheGpu,
                         testing::ValuesIn(has_isa(Isa::Sm90) ? cases() : std::vector<Case>()),
                         [](const auto& each) { return each.param.fixture + "_" + each.param.format + "_on_the_gpu"; });

TEST(QuantisedPlan, AGpuRefusesCodesThatItHasNoKernelFor) {
  TempFolder folder;
  ASSERT_TRUE(
      requantise(std::string(RONDO_FIXTURES) + "/qwen3_5", folder.path(), {.scheme = Scheme::Fp8, .block = 32}));
  const auto coded = Checkpoint::open(folder.path());
  ASSERT_TRUE(coded);
  ThreadPool pool(1);
  ModelOptions options;
  options.context_tokens = 64;
  options.isa = Isa::Sm90;
  const auto refused = load_model(*coded, pool, options, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_TRUE(refused.error().message.starts_with("weights in FP8, scales 32 x 32: the GPU's code reads "))
      << refused.error().message;
}

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
