// Synthetic weights in quantised formats: which matrices are, and what they decode to.
#include <gtest/gtest.h>

#include <cmath>

#include "ckpt/checkpoint.h"

namespace rondo {
namespace {

std::unique_ptr<WeightSource> synthetic(std::string_view shape, SyntheticFormat format, bool is_hollow,
                                        int num_layers = 4) {
  auto made = make_synthetic(shape, {.format = format, .num_layers = num_layers, .is_hollow = is_hollow});
  CHECK(made.has_value());
  return *std::move(made);
}

std::string format_of(const WeightSource& source, const std::string& name) {
  const auto weight = source.find_weight(name);
  return weight ? format_name(weight->view) : "none";
}

TEST(SyntheticFormat, CoversWhatItNamesAndLeavesTheRestInBfloat16) {
  const struct {
    SyntheticFormat format;
    std::string wide, projection;
  } cases[] = {{SyntheticFormat::Bf16, "BF16", "BF16"},
               {SyntheticFormat::Nvfp4, "NVFP4", "FP8, one scale"},
               {SyntheticFormat::Fp8, "FP8, scales 128 x 128", "FP8, scales 128 x 128"},
               {SyntheticFormat::Affine4, "affine 4-bit, groups of 64", "affine 4-bit, groups of 64"}};
  for (const auto& each : cases) {
    for (const char* shape : {"qwen3.8-27b", "qwen3.5-35b-a3b", "qwen3.8-flash-next"}) {
      const auto source = synthetic(shape, each.format, true);
      const bool dense = source->config().moe.num_experts == 0, streams = source->config().hyper.num_streams > 1;
      if (dense) {
        EXPECT_EQ(format_of(*source, "layers.0.mlp.down_proj.weight"), each.wide);
        EXPECT_EQ(format_of(*source, "mtp.layers.0.mlp.up_proj.weight"), each.wide);
      } else {
        EXPECT_EQ(format_of(*source, "layers.0.mlp.experts.gate_up_proj"), each.wide);
        EXPECT_EQ(format_of(*source, "mtp.layers.0.mlp.experts.down_proj"), each.wide);
        EXPECT_EQ(format_of(*source, "layers.3.mlp.shared_expert.gate_proj.weight"), each.wide);
        EXPECT_EQ(format_of(*source, "layers.3.mlp.shared_expert_gate.weight"), "BF16");
        EXPECT_EQ(format_of(*source, "layers.3.mlp.gate.weight"), "BF16");
        const ExpertWeights last = expert_weights(*source, "layers.1.mlp", source->config().moe.num_experts - 1);
        EXPECT_EQ(format_name(last.up.view), each.wide);
      }
      for (const char* name :
           {"lm_head", "layers.3.self_attn.q_proj", "layers.3.self_attn.o_proj", "layers.0.linear_attn.in_proj_qkv",
            "layers.0.linear_attn.in_proj_z", "layers.0.linear_attn.out_proj", "mtp.layers.0.self_attn.k_proj"}) {
        EXPECT_EQ(format_of(*source, std::string(name) + ".weight"), each.projection) << name;
      }
      for (const char* name : {"embed_tokens", "layers.0.linear_attn.in_proj_a", "layers.0.linear_attn.in_proj_b"}) {
        EXPECT_EQ(format_of(*source, std::string(name) + ".weight"), "BF16") << name;
      }
      if (!streams) continue;
      EXPECT_EQ(format_of(*source, "layers.3.self_attn.indexer.index_qk_proj.weight"), "BF16");
      EXPECT_EQ(format_of(*source, "layers.0.mlp_hyper_connection.input_mix_weight_up.weight"), "BF16");
      EXPECT_EQ(format_of(*source, "layers.1.ple.key_proj.weight"), "BF16");
      EXPECT_EQ(format_of(*source, "mtp.fc_hidden.weight"), "BF16");
    }
  }
}

TEST(SyntheticFormat, DecodesToWeightsThatKeepActivationsTheirSize) {
  for (const auto format : {SyntheticFormat::Nvfp4, SyntheticFormat::Fp8, SyntheticFormat::Affine4}) {
    const auto source = synthetic("qwen3.5-0.8b", format, false, 1);
    for (const char* name : {"layers.0.mlp.down_proj.weight", "layers.0.linear_attn.in_proj_qkv.weight"}) {
      const auto weight = source->find_weight(name);
      ASSERT_TRUE(weight.has_value());
      const auto columns = static_cast<std::size_t>(weight->view.columns);
      std::vector<float> row(columns);
      double squares = 0, sum = 0;
      constexpr std::int64_t kRows = 200;
      for (std::int64_t n = 0; n < kRows; ++n) {
        decode(weight->view, n, 0, row);
        for (const float value : row) squares += static_cast<double>(value) * value, sum += value;
      }
      EXPECT_NEAR(squares / kRows, 1.0, 0.05) << name;  // a row's sum of squares
      EXPECT_NEAR(sum / kRows / std::sqrt(static_cast<double>(columns)), 0.0, 0.1) << name;
    }
  }
}

TEST(SyntheticFormat, AnUnknownFormatIsRefusedByName) {
  const auto refused = synthetic_format("int3");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "unknown weight format \"int3\" (known: bf16, nvfp4, fp8, affine4)");
}

}  // namespace
}  // namespace rondo
