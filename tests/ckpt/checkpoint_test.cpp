// Whole checkpoints: what a reader of tensors gets, in either layout, from any number of files.
#include "ckpt/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/mmap_file.h"
#include "ckpt/ngram_hash.h"
#include "cli/inspect.h"
#include "tests/ckpt/damage.h"

namespace rondo {
namespace {

std::string fixture(std::string_view name) { return RONDO_FIXTURES "/" + std::string(name); }

std::string_view bytes_of(const Tensor& tensor) {
  const auto n = static_cast<std::size_t>(tensor.shape.num_elements()) * size_bytes(tensor.dtype);
  return {static_cast<const char*>(tensor.data), n};
}

std::string_view bytes_of(const Weight& weight) { return bytes_of(weight.plain()); }

// What the file holds under a stored name, found without our parser.
std::string stored_bytes(const std::string& folder, const std::string& file, const std::string& name) {
  const auto whole = read_file(folder + "/" + file);
  const SafetensorsParts parts = split_safetensors(*whole);
  const json::Value header = *parse_json(parts.header);
  const auto& offsets = header.at(name).at("data_offsets");
  const auto begin = offsets.at(0).to_number<std::size_t>(), end = offsets.at(1).to_number<std::size_t>();
  return parts.data.substr(begin, end - begin);
}

class AllFixtures : public testing::TestWithParam<std::string> {};

TEST_P(AllFixtures, OpenWithEveryTensorOfTheInventory) {
  const auto checkpoint = Checkpoint::open(GetParam());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->has_mtp());
  for (const TensorSpec& spec : inventory(checkpoint->config(), true)) {
    const auto tensor = checkpoint->find(spec.name);
    if (!tensor && spec.name.find(".mlp.experts.") != spec.name.npos) continue;  // one by one: see below
    ASSERT_TRUE(tensor) << spec.name;
    EXPECT_EQ(tensor->shape, spec.shape) << spec.name;
  }
  EXPECT_FALSE(checkpoint->find("model.norm.weight"));
  EXPECT_FALSE(checkpoint->find(""));
  const ModelConfig& config = checkpoint->config();
  for (int layer = 0; layer < config.num_layers() && config.moe.num_experts > 0; ++layer) {
    const ExpertWeights last =
        expert_weights(*checkpoint, fmt::format("layers.{}.mlp", layer), config.moe.num_experts - 1);
    EXPECT_EQ(last.down.shape, (Shape{config.hidden_size, config.moe.expert_size}));
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, AllFixtures,
                         testing::Values(fixture("qwen3_next"), fixture("qwen3_5"), fixture("qwen3_5_moe"),
                                         fixture("qwen4_exp"), RONDO_BUNDLED_MODEL));

TEST(Checkpoint, GivesTheBytesOfTheFile) {
  const std::string folder = fixture("qwen3_5_moe");
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(bytes_of(*checkpoint->find("layers.2.linear_attn.A_log")),
            stored_bytes(folder, "model.safetensors", "model.language_model.layers.2.linear_attn.A_log"));
  EXPECT_EQ(bytes_of(*checkpoint->find("lm_head.weight")), stored_bytes(folder, "model.safetensors", "lm_head.weight"));
  EXPECT_EQ(bytes_of(*checkpoint->find("mtp.fc.weight")),
            stored_bytes(folder, "model-mtp.safetensors", "mtp.fc.weight"));
}

TEST(Checkpoint, GivesAnExpertOfEitherLayout) {
  const std::string folder = fixture("qwen3_5_moe");
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint);
  const ExpertWeights single = expert_weights(*checkpoint, "layers.1.mlp", 5);
  const std::string prefix = "model.language_model.layers.1.mlp.experts.5.";
  EXPECT_EQ(bytes_of(single.gate), stored_bytes(folder, "model.safetensors", prefix + "gate_proj.weight"));
  EXPECT_EQ(bytes_of(single.up), stored_bytes(folder, "model.safetensors", prefix + "up_proj.weight"));
  EXPECT_EQ(bytes_of(single.down), stored_bytes(folder, "model.safetensors", prefix + "down_proj.weight"));

  const ExpertWeights stacked = expert_weights(*checkpoint, "mtp.layers.0.mlp", 5);
  const std::string gate_up = stored_bytes(folder, "model-mtp.safetensors", "mtp.layers.0.mlp.experts.gate_up_proj");
  const std::string down = stored_bytes(folder, "model-mtp.safetensors", "mtp.layers.0.mlp.experts.down_proj");
  constexpr std::size_t kPart = 32 * 64 * 2;  // [expert_size, hidden] BF16
  EXPECT_EQ(bytes_of(stacked.gate), gate_up.substr(5 * 2 * kPart, kPart));
  EXPECT_EQ(bytes_of(stacked.up), gate_up.substr(5 * 2 * kPart + kPart, kPart));
  EXPECT_EQ(bytes_of(stacked.down), down.substr(5 * kPart, kPart));
}

TEST(Checkpoint, GivesTheNgramTableInShardsOrWhole) {
  const std::string folder = fixture("qwen4_exp");
  const auto sharded = Checkpoint::open(folder);
  ASSERT_TRUE(sharded);
  const std::vector<Weight> parts = ngram_table(*sharded, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].shape[0] + parts[1].shape[0], ngram_hash(sharded->config(), 0).padded_rows);

  // The two shards lie side by side in the file, so one description can cover both.
  TempFolder whole;
  whole.copy_from(folder);
  whole.remove("model.safetensors.index.json");
  edit_header(whole, "model.safetensors", [](json::Object& header) {
    const std::string prefix = "model.language_model.layers.1.ple.ple_embedding.ngram_embedding.";
    json::Object table = header[prefix + "shard_0.weight"].as_object();
    table["shape"] = {640, 8};
    table["data_offsets"].as_array()[1] = header[prefix + "shard_1.weight"].at("data_offsets").at(1);
    header.erase(prefix + "shard_0.weight");
    header.erase(prefix + "shard_1.weight");
    header[prefix + "weight"] = table;
  });
  const auto single = Checkpoint::open(whole.path());
  ASSERT_TRUE(single) << single.error().message;
  const std::vector<Weight> table = ngram_table(*single, 1);
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(bytes_of(table[0]), std::string(bytes_of(parts[0])) + std::string(bytes_of(parts[1])));
}

TEST(Checkpoint, TakesShardsInNumericOrder) {
  ModelConfig config = Checkpoint::open(fixture("qwen4_exp"))->config();
  config.ngram.table_shards = 16;  // shard_10 comes after shard_9
  const auto source = make_synthetic(config, false, 1);
  const std::vector<Weight> parts = ngram_table(*source, 1);
  ASSERT_EQ(parts.size(), 16u);
  EXPECT_EQ(parts[10].plain().data, source->find("layers.1.ple.ple_embedding.ngram_embedding.shard_10.weight")->data);
}

TEST(Checkpoint, NeedsNoHashBuffers) {
  TempFolder folder;
  folder.copy_from(fixture("qwen4_exp"));
  folder.remove("model.safetensors.index.json");
  // Renamed, not cut out: a file has no holes.
  edit_header(folder, "model.safetensors", [](json::Object& header) {
    const std::string prefix = "model.language_model.layers.1.ple.ple_embedding.";
    for (const char* name : {"layer_multipliers", "ngram_heads_offsets", "ngram_heads_vocab_sizes"}) {
      header["hashstats_" + std::string(name)] = header[prefix + name];
      header.erase(prefix + name);
    }
  });
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
}

TEST(Checkpoint, WithoutAHeadIsServedUndrafted) {
  TempFolder folder;
  folder.copy_from(fixture("qwen3_5"));
  folder.remove("model.safetensors.index.json");
  folder.remove("model-mtp.safetensors");
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_FALSE(checkpoint->has_mtp());
  EXPECT_FALSE(checkpoint->find("mtp.fc.weight"));
  EXPECT_NE(describe(*checkpoint, {}).find("draft head     none: served without drafts"), std::string::npos);
}

TEST(Checkpoint, TakesAVectorInAnyOfItsThreeTypes) {
  TempFolder folder;
  folder.copy_from(fixture("qwen3_5"));
  edit_header(folder, "model.safetensors", [](json::Object& header) {
    header["model.norm.weight"].as_object()["dtype"] = "F16";  // as wide as BF16
  });
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->find("norm.weight")->dtype, DType::F16);
}

TEST(Checkpoint, NotesWhatItDoesNotUse) {
  TempFolder folder;
  folder.copy_from(fixture("qwen3_5_moe"));
  folder.write("stray.safetensors", folder.read("model-mtp.safetensors"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->unread_files(), std::vector<std::string>{"stray.safetensors"});
  const std::string report = describe(*checkpoint, {});
  EXPECT_NE(report.find("vision tower: 21 tensors"), std::string::npos);
  EXPECT_NE(report.find("stray.safetensors: not named by the index"), std::string::npos);
}

TEST(Checkpoint, KnowsItsTokenizerAndItsTemplateByTheirFiles) {
  const auto bundled = Checkpoint::open(RONDO_BUNDLED_MODEL);
  EXPECT_TRUE(bundled->has_tokenizer());
  EXPECT_TRUE(bundled->has_chat_template());
  const auto bare = Checkpoint::open(fixture("qwen3_5"));
  EXPECT_FALSE(bare->has_tokenizer());
  EXPECT_FALSE(bare->has_chat_template());
  EXPECT_EQ(bundled->generation_defaults().end_tokens, (std::vector<int>{6137, 6135}));
}

TEST(Checkpoint, TakesItsEndTokensFromConfigWhereNothingElseNamesAny) {
  TempFolder folder;
  folder.copy_from(fixture("qwen3_5"));
  folder.remove("generation_config.json");
  EXPECT_EQ(Checkpoint::open(folder.path())->generation_defaults().end_tokens, std::vector<int>{3});
}

// 131 files and 150,000 tensors, as the largest published repository has: listing them must not be quadratic.
TEST(Checkpoint, OfManyTensorsOpensInTimeProportionalToThem) {
  constexpr int kShards = 131, kTensors = 1150;
  TempFolder folder;
  folder.copy_from(fixture("qwen3_5"));
  edit_json(folder, "model.safetensors.index.json", [&](json::Object& index) {
    json::Object& map = index["weight_map"].as_object();
    for (int shard = 0; shard < kShards; ++shard) {
      const std::string file = fmt::format("extra-{}.safetensors", shard);
      std::string header = "{";
      for (int i = 0; i < kTensors; ++i) {
        const std::string name = fmt::format("extra.{}.mlp.experts.{}.down_proj.weight", shard, i);
        header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})", i > 0 ? "," : "", name,
                              i, i + 1);
        map[name] = file;
      }
      folder.write(file, join_safetensors({header + "}", std::string(kTensors, '\0')}));
    }
  });
  std::size_t num_entries = 0;
  const double seconds = processor_seconds([&] {
    const auto checkpoint = Checkpoint::open(folder.path());
    if (checkpoint) num_entries = checkpoint->entries().size();
  });
  EXPECT_EQ(num_entries, 70u + kShards * kTensors);
  EXPECT_LT(seconds, 5);  // quadratic would take minutes
}

TEST(Inspect, AddsTheProblemsOfFurtherChecks) {
  testing::internal::CaptureStdout();
  const auto further = [](const Checkpoint&) { return std::vector<Problem>{{"tokenizer.json", "no merges"}}; };
  EXPECT_EQ(run_inspect(RONDO_BUNDLED_MODEL, further), 1);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("  tokenizer.json\n    no merges\n"), std::string::npos);
}

TEST(Inspect, CountsTheParametersOfTheBundledModelByPart) {
  const auto checkpoint = Checkpoint::open(RONDO_BUNDLED_MODEL);
  const std::string report = describe(*checkpoint, checkpoint->problems());
  for (const char* expected :
       {"  routed experts                 6,291,456    37.3 %\n", "  total                         16,864,752\n",
        "  active per token               7,097,392\n", "draft head     MTP, one layer\n",
        "  BF16          414 tensors     33.7 MB\n", "\nno problems\n"}) {
    EXPECT_NE(report.find(expected), report.npos) << expected << "in\n" << report;
  }
}

TEST(Synthetic, IsTheSameForTheSameSeedAndHoldsItsWholeInventory) {
  const ModelConfig config = Checkpoint::open(fixture("qwen4_exp"))->config();
  const auto first = make_synthetic(config, true, 7), again = make_synthetic(config, true, 7);
  const auto other = make_synthetic(config, true, 8);
  int num_different = 0;
  for (const TensorSpec& spec : inventory(config, true)) {
    ASSERT_TRUE(first->find(spec.name)) << spec.name;
    EXPECT_EQ(first->find(spec.name)->shape, spec.shape);
    EXPECT_EQ(bytes_of(*first->find(spec.name)), bytes_of(*again->find(spec.name))) << spec.name;
    if (bytes_of(*first->find(spec.name)) != bytes_of(*other->find(spec.name))) ++num_different;
  }
  EXPECT_GT(num_different, 100);
  const NgramHash hash = ngram_hash(config, 0);
  const Tensor sizes = *first->find("layers.1.ple.ple_embedding.ngram_heads_vocab_sizes");
  EXPECT_EQ(std::memcmp(sizes.data, hash.head_sizes.data(), hash.head_sizes.size() * 8), 0);
  EXPECT_EQ(expert_weights(*first, "layers.0.mlp", 3).up.shape, (Shape{32, 64}));
}

// Mean and spread as the opening of synthetic.cpp promises, each about what its class needs.
TEST(Synthetic, HasValuesOfASaneSize) {
  const ModelConfig config = Checkpoint::open(RONDO_BUNDLED_MODEL)->config();
  const auto source = make_synthetic(config, true, 1);
  const auto moments = [&source](const std::string& name) {
    const Tensor tensor = *source->find(name);
    double sum = 0, squares = 0;
    const auto n = static_cast<double>(tensor.shape.num_elements());
    for (std::int64_t i = 0; i < tensor.shape.num_elements(); ++i) {
      const double value = to_float(tensor.as<BFloat16>()[i]);
      sum += value;
      squares += value * value;
    }
    return std::pair(sum / n, std::sqrt(squares / n - sum / n * (sum / n)));
  };
  const auto [matrix_mean, matrix_spread] = moments("layers.0.linear_attn.in_proj_qkv.weight");  // 256 inputs
  EXPECT_NEAR(matrix_mean, 0, 0.001);
  EXPECT_NEAR(matrix_spread, 1.0 / 16, 0.001);
  const auto [norm_mean, norm_spread] = moments("layers.0.linear_attn.norm.weight");
  EXPECT_NEAR(norm_mean, 1, 0.03);
  EXPECT_LT(norm_spread, 0.1);
  const auto [centred_mean, centred_spread] = moments("layers.0.attn_hyper_connection.hc_norm.weight");
  EXPECT_NEAR(centred_mean, 0, 0.01);
  EXPECT_LT(centred_spread, 0.1);
}

TEST(Synthetic, RefusesAnUnknownShapeByName) {
  const auto refused = make_synthetic("gpt-2", SyntheticOptions{});
  EXPECT_EQ(
      refused.error().message,
      "unknown synthetic shape \"gpt-2\" (known: qwen3.5-0.8b, qwen3.8-27b, qwen3.5-35b-a3b, qwen3.8-flash-next)");
}

}  // namespace
}  // namespace rondo
