// Quantised checkpoints: every fixture in every format opens, what it holds is told, and damage is named.
#include "ckpt/formats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/inspect.h"
#include "tests/ckpt/damage.h"
#include "tools/quantise/requantise.h"

namespace rondo {
namespace {

using Scheme = QuantiseSpec::Scheme;

constexpr const char* kFile = "model.safetensors";
const QuantiseSpec kFp8{.scheme = Scheme::Fp8, .block = 32}, kNvfp4{.scheme = Scheme::Nvfp4, .block = 32},
    kAffine4{.scheme = Scheme::Affine, .bits = 4}, kAffine6{.scheme = Scheme::Affine, .bits = 6};

void make(const TempFolder& folder, const std::string& fixture, const QuantiseSpec& spec) {
  const auto done = requantise(std::string(RONDO_FIXTURES) + "/" + fixture, folder.path(), spec);
  ASSERT_TRUE(done) << done.error().message;
}

std::string format_of(const Checkpoint& checkpoint, const std::string& name) {
  const auto weight = checkpoint.find_weight(name);
  return weight ? format_name(weight->view) : "absent";
}

TEST(Formats, EveryFixtureOpensInEveryFormat) {
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}) {
    for (const QuantiseSpec& spec : {kFp8, kNvfp4, kAffine4, kAffine6}) {
      TempFolder folder;
      make(folder, fixture, spec);
      const auto checkpoint = Checkpoint::open(folder.path());
      ASSERT_TRUE(checkpoint) << fixture << ": " << checkpoint.error().message;
      EXPECT_TRUE(checkpoint->has_mtp());
      for (const auto& entry : checkpoint->entries()) {
        EXPECT_TRUE(entry.used || entry.name.ends_with("input_scale")) << fixture << ": " << entry.name;
      }
    }
  }
}

TEST(Formats, AreToldByTheFilesMatrixByMatrix) {
  TempFolder fp8, nvfp4, affine;
  make(fp8, "qwen4_exp", kFp8);
  make(nvfp4, "qwen4_exp", kNvfp4);
  make(affine, "qwen4_exp", kAffine6);
  const auto a = Checkpoint::open(fp8.path()), b = Checkpoint::open(nvfp4.path()), c = Checkpoint::open(affine.path());
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(format_of(*a, "layers.3.self_attn.q_proj.weight"), "FP8, scales 32 x 32");
  EXPECT_EQ(format_of(*a, "layers.0.linear_attn.in_proj_a.weight"), "BF16");
  EXPECT_EQ(format_name(expert_weights(*a, "layers.1.mlp", 7).down.view), "FP8, scales 32 x 32");
  EXPECT_EQ(format_name(ngram_table(*a, 1)[1].view), "FP8, one scale");
  EXPECT_EQ(format_of(*b, "layers.3.self_attn.q_proj.weight"), "FP8, one scale");
  EXPECT_EQ(format_of(*b, "lm_head.weight"), "NVFP4");
  EXPECT_EQ(format_name(expert_weights(*b, "layers.1.mlp", 7).down.view), "NVFP4");
  EXPECT_EQ(format_name(expert_weights(*b, "mtp.layers.0.mlp", 7).down.view), "FP8, scales 32 x 32");
  EXPECT_EQ(format_of(*c, "embed_tokens.weight"), "affine 6-bit, groups of 64");
  EXPECT_EQ(format_of(*c, "layers.1.mlp.gate.weight"), "affine 8-bit, groups of 64");
  EXPECT_EQ(format_name(expert_weights(*c, "layers.1.mlp", 7).up.view), "affine 6-bit, groups of 64");
  EXPECT_EQ(format_name(expert_weights(*c, "layers.1.mlp", 7).down.view), "BF16") << "its rows are no whole groups";
  EXPECT_TRUE(c->gains_hold_one(false) && c->gains_hold_one(true));
  EXPECT_FALSE(a->gains_hold_one(false) || b->gains_hold_one(true));
}

TEST(Formats, InspectCountsParametersNotCodesAndNamesEachFormat) {
  const auto plain = Checkpoint::open(std::string(RONDO_FIXTURES) + "/qwen3_5_moe");
  ASSERT_TRUE(plain);
  const auto total = [](const std::string& report) {
    const std::size_t at = report.find("\n  total");
    return report.substr(at, report.find('\n', at + 1) - at);
  };
  for (const QuantiseSpec& spec : {kFp8, kNvfp4, kAffine4}) {
    TempFolder folder;
    make(folder, "qwen3_5_moe", spec);
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(total(describe(*checkpoint, {})), total(describe(*plain, {})));
  }
  TempFolder folder;
  make(folder, "qwen3_5_moe", kNvfp4);
  const std::string report = describe(*Checkpoint::open(folder.path()), {});
  for (const char* words : {"quantised      modelopt, 3 names or patterns", "  NVFP4 ", "  FP8, one scale ",
                            "  FP8, scales 32 x 32 ", "  BF16 ", "input_scale F32 []"}) {
    EXPECT_NE(report.find(words), report.npos) << words << "\n" << report;
  }
}

struct Damage {
  const char* name;
  QuantiseSpec spec;
  std::string tensor;  // whose description changes
  std::function<void(json::Object&, const std::string&)> inflict;
  std::string words;
};

void PrintTo(const Damage& damage, std::ostream* to) { *to << damage.name; }

// The tensor goes by another name, so that the data still has no hole.
void rename(json::Object& header, const std::string& tensor) {
  header["other." + tensor] = header[tensor];
  header.erase(tensor);
}
auto shape_is(const std::vector<int>& shape) {
  return [shape](json::Object& header, const std::string& tensor) {
    header[tensor].as_object()["shape"] = json::Array(shape.begin(), shape.end());
  };
}
auto dtype_is(const char* dtype, const std::vector<int>& shape) {
  return [dtype, shape](json::Object& header, const std::string& tensor) {
    header[tensor].as_object()["dtype"] = dtype;
    header[tensor].as_object()["shape"] = json::Array(shape.begin(), shape.end());
  };
}

std::vector<Damage> damages() {
  const std::string up = "model.layers.1.mlp.up_proj.", q = "model.layers.3.self_attn.q_proj.";
  const std::string mlx = "language_model.model.layers.1.mlp.up_proj.";  // [96, 64]
  return {
      {"BlockScalesAreMissing", kFp8, up + "weight_scale_inv", rename,
       "tensor " + up + "weight is F8_E4M3, but layers.1.mlp.up_proj.weight_scale_inv is missing"},
      {"BlockScalesAreTurned", kFp8, up + "weight_scale_inv", shape_is({2, 3}),
       "tensor " + up +
           "weight_scale_inv has shape [2, 3], expected [3, 2] (blocks of 32 x 32), [96, 1] or one number"},
      {"BlockScalesAreBytes", kFp8, up + "weight_scale_inv", dtype_is("U8", {3, 4}),
       "tensor " + up + "weight_scale_inv is U8, expected BF16, F16 or F32"},
      {"Fp8CodesAreTurned", kFp8, up + "weight", shape_is({64, 96}),
       "tensor " + up + "weight has shape [64, 96], config.json asks for [96, 64]"},
      {"Nvfp4ScalesAreMissing", kNvfp4, up + "weight_scale", rename, "layers.1.mlp.up_proj.weight_scale is missing"},
      {"Nvfp4ScalesAreTurned", kNvfp4, up + "weight_scale", shape_is({4, 96}),
       "tensor " + up + "weight_scale has shape [4, 96], expected [96, 4]"},
      {"Nvfp4ScalesAreBytes", kNvfp4, up + "weight_scale", dtype_is("U8", {96, 4}),
       "tensor " + up + "weight_scale is U8, expected F8_E4M3"},
      {"Nvfp4TensorScaleIsMissing", kNvfp4, up + "weight_scale_2", rename, "weight_scale_2 is missing"},
      {"Nvfp4TensorScaleIsTwoHalves", kNvfp4, up + "weight_scale_2", dtype_is("F16", {2}),
       "tensor " + up + "weight_scale_2 is F16, expected F32"},
      {"Nvfp4CodesAreAByteEach", kNvfp4, up + "weight", shape_is({48, 64}),
       "tensor " + up + "weight has shape [48, 64], config.json asks for [96, 32], two codes a byte"},
      {"TensorFp8ScaleIsMissing", kNvfp4, q + "weight_scale", rename, "q_proj.weight_scale_inv is missing"},
      {"AffineScalesAreMissing", kAffine4, mlx + "scales", rename, "layers.1.mlp.up_proj.scales is missing"},
      {"AffineBiasesAreMissing", kAffine4, mlx + "biases", rename, "layers.1.mlp.up_proj.biases is missing"},
      {"AffineScalesAreTurned", kAffine4, mlx + "scales", shape_is({1, 96}),
       "tensor " + mlx + "scales has shape [1, 96], expected a scale for each 32, 64 or 128 of 64 inputs"},
      {"AffineBiasesAreOfAnotherShape", kAffine4, mlx + "biases", shape_is({48, 2}),
       "tensor " + mlx + "biases has shape [48, 2], expected [96, 1]"},
      {"AffineBiasesAreOfAnotherType", kAffine4, mlx + "biases", dtype_is("F16", {96, 1}),
       "tensor " + mlx + "biases is F16, expected BF16"},
      {"AffineCodesAreOfNoWidth", kAffine4, mlx + "weight", shape_is({768, 1}),
       "tensor " + mlx + "weight has shape [768, 1]: 64 inputs of 4, 6 or 8 bits would be 8, 12 or 16 words a row"},
      {"AffineCodesAreOfAnotherHeight", kAffine4, mlx + "weight", shape_is({48, 16}),
       "tensor " + mlx + "weight has shape [48, 16], config.json asks for [96, 16]"},
  };
}

class DamagedFormat : public testing::TestWithParam<Damage> {};

TEST_P(DamagedFormat, IsRefusedNamingFileAndTensor) {
  const Damage& damage = GetParam();
  TempFolder folder;
  make(folder, "qwen3_5", damage.spec);
  edit_header(folder, kFile, [&](json::Object& header) {
    ASSERT_TRUE(header.contains(damage.tensor)) << damage.tensor;
    damage.inflict(header, damage.tensor);
  });
  const auto opened = Checkpoint::open(folder.path());
  ASSERT_FALSE(opened);
  const std::string& message = opened.error().message;
  EXPECT_TRUE(message.starts_with(std::string(kFile) + ": ")) << message;
  EXPECT_NE(message.find(damage.words), message.npos) << message;
}

INSTANTIATE_TEST_SUITE_P(All, DamagedFormat, testing::ValuesIn(damages()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Formats, ATensorScaleThatIsNoNumberIsRefused) {
  TempFolder folder;
  make(folder, "qwen3_5", kNvfp4);
  SafetensorsParts parts = split_safetensors(folder.read(kFile));
  const json::Value header = *parse_json(parts.header);
  const auto& tensor = header.at("model.layers.1.mlp.up_proj.weight_scale_2");
  parts.data.replace(tensor.at("data_offsets").at(0).to_number<std::size_t>(), 4, std::string("\0\0\xC0\x7F", 4));
  folder.write(kFile, join_safetensors(parts));
  const auto opened = Checkpoint::open(folder.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "model.safetensors: tensor model.layers.1.mlp.up_proj.weight_scale_2 is nan, expected a finite number");
}

}  // namespace
}  // namespace rondo
