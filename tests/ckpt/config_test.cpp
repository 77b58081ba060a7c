// config.json in every spelling: the fixtures' as goldens, and the others as edits of one of them.
#include "ckpt/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/json.h"
#include "base/mmap_file.h"

namespace rondo {
namespace {

std::string layer_letters(const ModelConfig& config) {
  std::string letters;
  for (const LayerKind kind : config.layers) letters += kind == LayerKind::Linear ? 'L' : 'A';
  return letters;
}

// Every field, in the header's order.
std::string summary(const ModelConfig& c) {
  std::string out =
      fmt::format("{} vocab {} hidden {} {} eps {:g} {} context {}\n", architecture_name(c.architecture), c.vocab_size,
                  c.hidden_size, layer_letters(c), c.norm_eps, c.tied_embeddings ? "tied" : "untied", c.context_tokens);
  out +=
      fmt::format("attention {}/{} x {}, rope {} theta {:g} yarn {:g} of {}, index {} x {} budget {} / {}\n", c.q_heads,
                  c.kv_heads, c.head_dim, c.rope.rotary_dim, c.rope.theta, c.rope.yarn_factor, c.rope.original_context,
                  c.indexer.num_heads, c.indexer.head_dim, c.indexer.budget_tokens, c.indexer.block_tokens);
  out += fmt::format("linear k {} x {} v {} x {} conv {} {}\n", c.linear_k_heads, c.linear_k_dim, c.linear_v_heads,
                     c.linear_v_dim, c.conv_kernel, c.linear_gate == GateActivation::Silu ? "silu" : "sigmoid");
  out += fmt::format("mlp {}, experts {} of {}, {} a token, shared {}, {}\n", c.mlp_size, c.moe.num_experts,
                     c.moe.expert_size, c.moe.experts_per_token, c.moe.shared_expert_size,
                     c.moe.normalise_topk ? "normalised" : "as they are");
  out += fmt::format("streams {} rank {}, ngram layers [{}]", c.hyper.num_streams, c.hyper.rank,
                     fmt::join(c.ngram.layers, " "));
  if (!c.ngram.layers.empty()) {
    out += fmt::format(" embed {} conv {} size {} heads {} base {} multiple {} seed {} shards {}", c.ngram.embed_dim,
                       c.ngram.conv_kernel, c.ngram.ngram_size, c.ngram.heads_per_ngram, c.ngram.vocab_base,
                       c.ngram.vocab_multiple, c.ngram.seed, c.ngram.table_shards);
  }
  out += fmt::format("\neos {} ends [{}] mtp {} quantised \"{}\"\n", c.eos_token, fmt::join(c.end_tokens, " "),
                     c.num_mtp_layers, c.quantization);
  return out;
}

std::string summary_of(const std::string& folder) {
  const auto config = parse_config(*read_file(folder + "/config.json"), "config.json");
  return config ? summary(*config) : config.error().message;
}

TEST(Config, OfTheFixturesIsReadWhole) {
  EXPECT_EQ(summary_of(RONDO_FIXTURES "/qwen3_next"),
            "qwen3_next vocab 320 hidden 64 LLLA eps 1e-06 untied context 512\n"
            "attention 4/2 x 32, rope 8 theta 10000 yarn 1 of 0, index 0 x 0 budget 0 / 4\n"
            "linear k 2 x 16 v 6 x 16 conv 4 silu\n"
            "mlp 0, experts 8 of 32, 3 a token, shared 48, normalised\n"
            "streams 1 rank 0, ngram layers []\n"
            "eos 3 ends [3] mtp 1 quantised \"\"\n");
  EXPECT_EQ(summary_of(RONDO_FIXTURES "/qwen3_5"),
            "qwen3_5 vocab 320 hidden 64 LLLA eps 1e-06 tied context 512\n"
            "attention 4/2 x 32, rope 8 theta 10000 yarn 1 of 0, index 0 x 0 budget 0 / 4\n"
            "linear k 2 x 16 v 6 x 16 conv 4 silu\n"
            "mlp 96, experts 0 of 0, 0 a token, shared 0, normalised\n"
            "streams 1 rank 0, ngram layers []\n"
            "eos 3 ends [3] mtp 1 quantised \"\"\n");
  EXPECT_EQ(summary_of(RONDO_FIXTURES "/qwen3_5_moe"),
            "qwen3_5_moe vocab 320 hidden 64 LLLA eps 1e-06 untied context 512\n"
            "attention 4/2 x 32, rope 8 theta 10000 yarn 1 of 0, index 0 x 0 budget 0 / 4\n"
            "linear k 2 x 16 v 6 x 16 conv 4 silu\n"
            "mlp 0, experts 8 of 32, 3 a token, shared 48, normalised\n"
            "streams 1 rank 0, ngram layers []\n"
            "eos 3 ends [3] mtp 1 quantised \"\"\n");
  EXPECT_EQ(
      summary_of(RONDO_FIXTURES "/qwen4_exp"),
      "qwen4_exp vocab 320 hidden 64 LLLA eps 1e-06 untied context 512\n"
      "attention 4/2 x 32, rope 8 theta 10000 yarn 1 of 0, index 2 x 16 budget 16 / 4\n"
      "linear k 2 x 16 v 6 x 16 conv 4 sigmoid\n"
      "mlp 0, experts 8 of 32, 3 a token, shared 48, normalised\n"
      "streams 4 rank 12, ngram layers [1] embed 64 conv 4 size 3 heads 4 base 50 multiple 128 seed 1234 shards 2\n"
      "eos 3 ends [3] mtp 1 quantised \"\"\n");
}

TEST(Config, OfTheBundledModelIsReadWhole) {
  EXPECT_EQ(summary_of(RONDO_BUNDLED_MODEL),
            "qwen4_exp vocab 6144 hidden 256 LLLALLLA eps 1e-06 untied context 4096\n"
            "attention 4/2 x 64, rope 16 theta 10000 yarn 1 of 0, index 2 x 32 budget 256 / 4\n"
            "linear k 2 x 64 v 4 x 64 conv 4 sigmoid\n"
            "mlp 0, experts 8 of 128, 2 a token, shared 128, normalised\n"
            "streams 4 rank 16, ngram layers [1] embed 256 conv 4 size 3 heads 4 base 8000 multiple 128 seed 1234 "
            "shards 4\n"
            "eos 6135 ends [6135] mtp 1 quantised \"\"\n");
}

// The nested fixture with its text_config changed.
Result<ModelConfig> with(const std::function<void(json::Object& text, json::Object& top)>& edit) {
  json::Value document = *parse_json(*read_file(RONDO_FIXTURES "/qwen4_exp/config.json"));
  edit(document.get_object()["text_config"].as_object(), document.as_object());
  return parse_config(to_json(document), "config.json");
}

TEST(Config, ReadsTheTieFlagAtTheTopBeforeTheOneInside) {
  EXPECT_TRUE(with([](auto&, auto& top) { top["tie_word_embeddings"] = true; })->tied_embeddings);
  const auto only_inside = with([](auto& text, auto& top) {
    top.erase("tie_word_embeddings");
    text["tie_word_embeddings"] = true;
  });
  EXPECT_TRUE(only_inside->tied_embeddings);
}

TEST(Config, ReadsRopeInItsThreePlacesInOrder) {
  const auto at_the_top = with([](auto& text, auto&) {
    text.erase("rope_parameters");
    text["rope_theta"] = 5e6;
    text["partial_rotary_factor"] = 0.5;
  });
  EXPECT_EQ(at_the_top->rope.theta, 5e6);
  EXPECT_EQ(at_the_top->rope.rotary_dim, 16);
  const auto in_scaling = with([](auto& text, auto&) {
    text["rope_scaling"] = text["rope_parameters"];
    text["rope_scaling"].as_object()["rope_theta"] = 7;
    text.erase("rope_parameters");
    text["rope_theta"] = 5e6;
  });
  EXPECT_EQ(in_scaling->rope.theta, 7);
  const auto in_both = with([](auto& text, auto&) {
    text["rope_scaling"] = json::Object{{"rope_theta", 7}};
    text["rope_theta"] = 5e6;
  });
  EXPECT_EQ(in_both->rope.theta, 10000);
  const auto nowhere = with([](auto& text, auto&) { text["rope_parameters"].as_object().erase("rope_theta"); });
  EXPECT_EQ(nowhere.error().message, "config.json: text_config.rope_theta is missing");
}

TEST(Config, StretchesTheContextByYarn) {
  const auto stretched = with([](auto& text, auto&) {
    auto& rope = text["rope_parameters"].as_object();
    rope["rope_type"] = "yarn";
    rope["factor"] = 4.0;
    rope["original_max_position_embeddings"] = 512;
  });
  EXPECT_EQ(stretched->rope.yarn_factor, 4);
  EXPECT_EQ(stretched->rope.original_context, 512);
  EXPECT_EQ(stretched->context_tokens, 2048);
  const auto old_spelling = with([](auto& text, auto&) {
    text["rope_scaling"] = json::Object{{"type", "yarn"}, {"factor", 2}};
  });
  EXPECT_EQ(old_spelling->rope.yarn_factor, 2);
  EXPECT_EQ(old_spelling->rope.original_context, 512);
  const auto no_factor = with([](auto& text, auto&) { text["rope_parameters"].as_object()["rope_type"] = "yarn"; });
  EXPECT_EQ(no_factor.error().message, "config.json: text_config.rope_parameters.factor is missing");
}

TEST(Config, FillsInWhatResavedFilesDrop) {
  const auto dropped = with([](auto& text, auto&) {
    for (const char* key : {"layer_types", "head_dim", "seed", "norm_topk_prob", "model_type", "bos_token_id"}) {
      text.erase(key);
    }
    text["rope_parameters"].as_object()["mrope_section"] = json::Array();
    text["num_hidden_layers"] = 9;
    text["indexer_head_dim"] = 64;  // head_dim is 256 now, of which 64 dimensions turn
  });
  ASSERT_TRUE(dropped) << dropped.error().message;
  EXPECT_EQ(dropped->head_dim, 256);
  EXPECT_EQ(dropped->rope.rotary_dim, 64);
  EXPECT_EQ(layer_letters(*dropped), "LLLALLLAL");
  EXPECT_EQ(dropped->ngram.seed, 1234u);
  EXPECT_TRUE(dropped->moe.normalise_topk);
}

TEST(Config, ReadsEveryAttentionSpellingAsAttention) {
  const auto spelled = with([](auto& text, auto&) {
    text["layer_types"] = {"full_attention", "deepseek_sparse_attention", "hybrid_indexed", "linear_attention"};
  });
  EXPECT_EQ(layer_letters(*spelled), "AAAL");
  EXPECT_EQ(spelled->indexer.num_heads, 2);  // by its keys, whatever the layers are called
  const auto dense = with([](auto& text, auto&) { text.erase("indexer_n_heads"); });
  EXPECT_EQ(dense->indexer.num_heads, 0);
}

TEST(Config, ReadsTheOutputGateAndFallsBackToSilu) {
  const auto gate = [](json::Value value) {
    return with([&](auto& text, auto&) { text["output_gate_type"] = value; })->linear_gate;
  };
  EXPECT_EQ(gate("swish"), GateActivation::Silu);
  EXPECT_EQ(gate("silu"), GateActivation::Silu);
  EXPECT_EQ(gate("sigmoid"), GateActivation::Sigmoid);
  EXPECT_EQ(gate(nullptr), GateActivation::Silu);
}

TEST(Config, KeepsEveryEndTokenAndTheFirstForNgrams) {
  const auto listed = with([](auto& text, auto& top) {
    text["eos_token_id"] = {5, 6};
    top["eos_token_id"] = {7, 5};
  });
  EXPECT_EQ(listed->eos_token, 5);
  EXPECT_EQ(listed->end_tokens, (std::vector<int>{7, 5}));
}

TEST(Config, FindsTheDraftHeadsLayersNested) {
  const auto nested = with([](auto& text, auto&) {
    text.erase("mtp_num_hidden_layers");
    text["mtp"] = json::Object{{"num_hidden_layers", 1}};
  });
  EXPECT_EQ(nested->num_mtp_layers, 1);
  const auto two = with([](auto& text, auto&) { text["mtp_num_hidden_layers"] = 2; });
  EXPECT_EQ(two.error().code, ErrorCode::Unsupported);
}

TEST(Config, RefusesAnUnknownArchitectureByNameAndNamesTheKnownOnes) {
  const auto refused = with([](auto& text, auto&) { text["model_type"] = "llama"; });
  EXPECT_EQ(refused.error().code, ErrorCode::Unsupported);
  EXPECT_EQ(refused.error().message,
            "config.json: text_config.model_type is \"llama\": not a known architecture (qwen3_next, qwen3_5, "
            "qwen3_5_moe, qwen4_exp)");
}

// The largest numbers the bounds let through must not overflow anything that is computed from them.
TEST(Config, HasBoundsThatKeepEveryProductInRange) {
  const auto largest = with([](auto& text, auto&) {
    text["hidden_size"] = 1 << 16;
    text["num_attention_heads"] = text["num_key_value_heads"] = 1 << 12;
    text["head_dim"] = text["indexer_head_dim"] = 1 << 12;
    text["linear_num_key_heads"] = text["linear_num_value_heads"] = 1 << 12;
    text["linear_key_head_dim"] = text["linear_value_head_dim"] = 1 << 12;
  });
  ASSERT_TRUE(largest) << largest.error().message;
  EXPECT_EQ(largest->linear_channels(), 3 << 24);
}

TEST(GenerationConfig, GivesWhatASilentRequestGets) {
  const auto published = parse_generation_config(
      R"({"do_sample": true, "temperature": 0.7, "top_p": 0.95, "top_k": 20, "eos_token_id": [6, 5], "min_p": null})",
      "generation_config.json");
  EXPECT_FLOAT_EQ(published->temperature, 0.7F);
  EXPECT_FLOAT_EQ(published->top_p, 0.95F);
  EXPECT_EQ(published->top_k, 20);
  EXPECT_EQ(published->min_p, 0);
  EXPECT_EQ(published->end_tokens, (std::vector<int>{6, 5}));
  EXPECT_EQ(parse_generation_config(R"({"do_sample": false})", "g")->temperature, 0);
  EXPECT_EQ(parse_generation_config("{}", "g")->temperature, 1);
}

}  // namespace
}  // namespace rondo
