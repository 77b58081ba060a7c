// Damage to config.json and the other files that say what a checkpoint is.
#include "tests/ckpt/damaged.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

Damage config_is(const std::string& name, Edit edit, const std::string& words) {
  return json_is(name, "qwen3_5", kConfig, std::move(edit), words);
}

std::vector<Damage> configs() {
  const auto set = [](const std::string& name, const std::string& key, json::Value value, const std::string& words) {
    return config_is(
        name, [=](json::Object& config) { config[key] = value; }, words);
  };
  const auto without = [](const std::string& name, const std::string& key) {
    return config_is(
        name, [=](json::Object& config) { config.erase(key); }, key + " is missing");
  };
  return {
      {"ConfigIsMissing", "qwen3_5", [](const TempFolder& f) { f.remove(kConfig); }, kConfig, "missing"},
      is_folder("ConfigIsAFolder", kConfig),
      file_is("ConfigIsEmpty", kConfig, "", "invalid JSON"),
      file_is("ConfigIsNotJson", kConfig, "hidden_size: 64", "invalid JSON"),
      file_is("ConfigIsAList", kConfig, "[]", "not a JSON object"),
      file_is("ConfigIsBinary", kConfig, std::string(4096, '\0'), "invalid JSON"),
      set("TextConfigIsANumber", "text_config", 5, "text_config is 5, expected an object"),
      set("ArchitectureIsUnknown", "model_type", "llama", "model_type is \"llama\": not a known architecture"),
      without("ArchitectureIsMissing", "model_type"),
      without("HiddenSizeIsMissing", "hidden_size"),
      without("VocabIsMissing", "vocab_size"),
      without("HeadsAreMissing", "num_attention_heads"),
      without("LinearHeadsAreMissing", "linear_num_value_heads"),
      without("MlpIsMissing", "intermediate_size"),
      without("ContextIsMissing", "max_position_embeddings"),
      set("HiddenSizeIsZero", "hidden_size", 0, "hidden_size is 0"),
      set("HiddenSizeIsNegative", "hidden_size", -64, "hidden_size is -64"),
      set("HiddenSizeIsHuge", "hidden_size", std::int64_t{1} << 40, "hidden_size is 1099511627776"),
      set("HiddenSizeIsText", "hidden_size", "64", "hidden_size is \"64\", expected a whole number"),
      set("HiddenSizeIsFractional", "hidden_size", 64.5, "hidden_size is 64.5"),
      about(kModel, set("HiddenSizeIsAnother", "hidden_size", 128, "tensor model.embed_tokens.weight has shape")),
      set("LayersAreMore", "num_hidden_layers", 5, "layer_types is a list of 4"),
      set("LayersAreMillions", "num_hidden_layers", 5'000'000, "num_hidden_layers is 5000000"),
      set("LayerTypesAreNumbers", "layer_types", {1, 2, 3, 4}, "layer_types is a list of 4, expected"),
      set("HeadsDoNotDivide", "num_key_value_heads", 3, "num_key_value_heads is 3, expected a divisor"),
      set("LinearHeadsDoNotDivide", "linear_num_key_heads", 4, "linear_num_value_heads is 6, expected a multiple"),
      set("EpsIsNegative", "rms_norm_eps", -1e-6, "rms_norm_eps is"),
      set("HeadDimIsOdd", "head_dim", 31, "partial_rotary_factor is 0.25, expected an even share of head_dim 31"),
      set("RopeIsUnknown", "rope_scaling", json::Object{{"type", "ntk"}}, "rope_scaling.type is \"ntk\""),
      set("AttentionHasBiases", "attention_bias", true, "attention_bias is true"),
      set("ActivationIsAnother", "hidden_act", "gelu", "hidden_act is \"gelu\""),
      set("GateIsAnother", "output_gate_type", "tanh", "output_gate_type is \"tanh\""),
      set("SomeLayersAreDense", "mlp_only_layers", {0}, "mlp_only_layers"),
      set("StepIsTwo", "decoder_sparse_step", 2, "decoder_sparse_step is 2"),
      set("Quantised", "quantization_config", json::Object{{"quant_method", "awq"}}, "awq is not supported"),
      set("BlocksAreOneNumber", "quantization_config",
          json::Object{{"quant_method", "fp8"}, {"weight_block_size", 128}},
          "weight_block_size is 128, expected two whole numbers"),
      set("MlxModeIsAnother", "quantization", json::Object{{"bits", 4}, {"mode", "mxfp4"}},
          "quantization.mode is \"mxfp4\": of MLX's formats only affine"),
      text_config_is("ExpertsAreFewerThanChosen", "num_experts_per_tok", 9, "num_experts_per_tok is 9"),
      about(kIndex, text_config_is("ExpertsAreMany", "num_experts", 16384,
                                   "tensor layers.0.mlp.experts.8.gate_proj.weight is missing")),
      text_config_is("ExpertsAreNone", "num_experts", 0, "num_experts is 0"),
      text_config_is("PleLayerIsZero", "ple_layer_ids", {0}, "text_config.ple_layer_ids holds 0"),
      text_config_is("PleLayersRepeat", "ple_layer_ids", {2, 2}, "ascending"),
      text_config_is("PleDoesNotDivide", "ple_embed_dim", 63, "ple_embed_dim is 63, expected a multiple"),
      text_config_is("EosIsOutside", "eos_token_id", 320, "eos_token_id is 320, expected a token below"),
      text_config_is("IndexerBudgetIsOdd", "indexer_budget", 15, "indexer_budget is 15, expected a multiple"),
  };
}

std::vector<Damage> others() {
  const char* generation = "generation_config.json";
  const auto forbid = [](const TempFolder& f) {
    fs::permissions(f.path(), fs::perms::all);
    fs::permissions(f / kHead, fs::perms::none);
  };
  return {
      file_is("GenerationConfigIsGarbage", generation, "\xFF\xFE", "invalid JSON"),
      file_is("TemperatureIsText", generation, R"({"temperature": "hot"})", "temperature is \"hot\""),
      file_is("TopPIsAboveOne", generation, R"({"top_p": 1.5})", "top_p is 1.5"),
      file_is("EosListHoldsText", generation, R"({"eos_token_id": [3, "x"]})", "eos_token_id holds \"x\""),
      file_is("TokenizerConfigIsGarbage", "tokenizer_config.json", "nothing", "invalid JSON"),
      is_folder("TokenizerIsAFolder", "tokenizer.json"),
      {"PermissionIsDenied", "qwen3_5", forbid, kHead, "Permission denied"},
  };
}

INSTANTIATE_TEST_SUITE_P(Configs, Damaged, testing::ValuesIn(Damaged::all_of({configs(), others()})),
                         [](const auto& damage) { return damage.param.name; });

}  // namespace
}  // namespace rondo
