#include "ckpt/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "ckpt/json_fields.h"
#include "ckpt/ngram_hash.h"
#include "ckpt/safetensors.h"

namespace rondo {

namespace {

// Far above any published shape, and low enough that no product of them overflows: the largest tensor has
// kMaxExperts * 2 * kMaxIntermediate * kMaxHidden < 2^52 values, and a row of channels fits an int.
constexpr int kMaxVocab = 1 << 24;
constexpr int kMaxHidden = 1 << 16;
constexpr int kMaxLayers = 1024;
constexpr int kMaxHeads = 1 << 12;
constexpr int kMaxHeadDim = 1 << 12;
constexpr int kMaxIntermediate = 1 << 20;
constexpr int kMaxExperts = 1 << 14;
constexpr int kMaxContext = 1 << 26;
constexpr int kMaxToken = (1 << 30);
constexpr int kMaxNgramLayers = 16;
constexpr int kMaxNgramHeads = 1024;  // over all layers
constexpr std::int64_t kMaxNgramVocab = std::int64_t{1} << 31;
constexpr int kDefaultHeadDim = 256;  // of every published size; re-saved files may drop the key

struct ArchitectureRow {
  Architecture architecture;
  std::string_view name;
};
constexpr std::array<ArchitectureRow, 4> kArchitectures = {{{Architecture::Qwen3Next, "qwen3_next"},
                                                            {Architecture::Qwen35, "qwen3_5"},
                                                            {Architecture::Qwen35Moe, "qwen3_5_moe"},
                                                            {Architecture::Qwen4Exp, "qwen4_exp"}}};

std::optional<Architecture> find_architecture(std::string_view model_type) {
  constexpr std::string_view kText = "_text";
  if (model_type.ends_with(kText)) model_type.remove_suffix(kText.size());
  for (const auto& row : kArchitectures) {
    if (row.name == model_type) return row.architecture;
  }
  return std::nullopt;
}

// The whole document and the text model's part of it (the same object in a flat file).
struct Document {
  Fields top, text;
};

Result<Architecture> read_architecture(const Document& document) {
  const bool inside = document.text.find("model_type") != nullptr;
  const Fields& place = inside ? document.text : document.top;
  TRY(const std::string model_type, place.text("model_type"));
  if (const auto found = find_architecture(model_type)) return *found;
  return place.unsupported("model_type", "not a known architecture (qwen3_next, qwen3_5, qwen3_5_moe, qwen4_exp)");
}

// What other models of these names may ask for and this program does not do: each refused by its key.
Result<void> refuse_unsupported(const Fields& text) {
  TRY(const bool attention_bias, text.flag("attention_bias", false));
  if (attention_bias) return text.unsupported("attention_bias", "attention with biases is not supported");
  TRY(const bool output_gate, text.flag("attn_output_gate", true));
  if (!output_gate) return text.unsupported("attn_output_gate", "attention without its output gate is not supported");
  TRY(const std::string activation, text.text("hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") return text.unsupported("hidden_act", "only silu is supported");
  if (const json::Value* dense = text.find("mlp_only_layers")) {
    if (!dense->is_array()) return text.wrong("mlp_only_layers", "a list");
    if (!dense->get_array().empty()) {
      return text.unsupported("mlp_only_layers", "dense layers between mixtures of experts are not supported");
    }
  }
  TRY(const int sparse_step, text.integer("decoder_sparse_step", {1, kMaxLayers}, 1));
  if (sparse_step != 1) return text.unsupported("decoder_sparse_step", "only 1 is supported");
  TRY(const bool dedicated, text.flag("mtp_use_dedicated_embeddings", false));
  if (dedicated) return text.unsupported("mtp_use_dedicated_embeddings", "a head's own embeddings are not supported");
  return {};
}

Result<std::vector<LayerKind>> read_layers(const Fields& text) {
  TRY(const int num_layers, text.integer("num_hidden_layers", {1, kMaxLayers}));
  std::vector<LayerKind> layers;
  const json::Value* types = text.find("layer_types");
  if (types == nullptr) {
    TRY(const int interval, text.integer("full_attention_interval", {1, kMaxLayers}, 4));
    for (int i = 0; i < num_layers; ++i) {
      layers.push_back((i + 1) % interval == 0 ? LayerKind::Attention : LayerKind::Linear);
    }
    return layers;
  }
  const std::string expected = fmt::format("a list of {} texts, one a layer (num_hidden_layers)", num_layers);
  if (!types->is_array() || types->get_array().size() != static_cast<std::size_t>(num_layers)) {
    return text.wrong("layer_types", expected);
  }
  for (const json::Value& type : types->get_array()) {
    if (!type.is_string()) return text.wrong("layer_types", expected);
    // Attention has many spellings, depending on who saved the file; only Gated DeltaNet has one.
    layers.push_back(type.get_string() == "linear_attention" ? LayerKind::Linear : LayerKind::Attention);
  }
  return layers;
}

Result<void> read_yarn(const Fields& place, ModelConfig& config) {
  const char* type_key = place.find("rope_type") != nullptr ? "rope_type" : "type";
  TRY(const std::string type, place.text(type_key, "default"));
  if (type == "default" || type == "mrope") return {};
  if (type != "yarn") return place.unsupported(type_key, "only default and yarn are supported");
  TRY(config.rope.yarn_factor, place.number("factor", {1, 1024}));
  TRY(config.rope.original_context,
      place.integer("original_max_position_embeddings", {1, kMaxContext}, config.context_tokens));
  TRY(const double beta_fast, place.number("beta_fast", {0, 1e6}, 32));
  if (beta_fast != 32) return place.unsupported("beta_fast", "only 32 is supported");
  TRY(const double beta_slow, place.number("beta_slow", {0, 1e6}, 1));
  if (beta_slow != 1) return place.unsupported("beta_slow", "only 1 is supported");
  for (const char* key : {"attention_factor", "mscale", "mscale_all_dim"}) {
    if (place.find(key) != nullptr) return place.unsupported(key, "only YaRN's own attention factor is supported");
  }
  const double stretched = config.rope.yarn_factor * config.rope.original_context;
  if (stretched > kMaxContext) return place.wrong("factor", "a stretched context of at most 67108864 tokens");
  config.context_tokens = std::max(config.context_tokens, static_cast<int>(stretched));
  return {};
}

Result<void> read_rope(const Fields& text, ModelConfig& config) {
  std::vector<Fields> places;  // in the order they are read
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    TRY(const auto place, text.find_object(key));
    if (place) places.push_back(*place);
  }
  const std::size_t num_nested = places.size();
  places.push_back(text);
  const auto place_of = [&places](const char* key) -> const Fields& {
    const auto found = std::find_if(places.begin(), places.end(), [&](const Fields& f) { return f.find(key); });
    return found == places.end() ? places.back() : *found;
  };
  TRY(config.rope.theta, place_of("rope_theta").number("rope_theta", {1, 1e12}));
  constexpr const char* kFactor = "partial_rotary_factor";
  TRY(const double factor, place_of(kFactor).number(kFactor, {0, 1}, 0.25));
  config.rope.rotary_dim = static_cast<int>(config.head_dim * factor);
  if (config.rope.rotary_dim < 2 || config.rope.rotary_dim % 2 != 0) {
    return place_of(kFactor).wrong(kFactor, fmt::format("an even share of head_dim {}", config.head_dim));
  }
  for (std::size_t i = 0; i < num_nested; ++i) {
    TRY_VOID(places[i].integers("mrope_section", {0, kMaxHeadDim}));  // text has one coordinate: nothing to keep
    if (config.rope.yarn_factor == 1) TRY_VOID(read_yarn(places[i], config));
  }
  return {};
}

Result<void> read_attention(const Fields& text, ModelConfig& config) {
  TRY(config.q_heads, text.integer("num_attention_heads", {1, kMaxHeads}));
  TRY(config.kv_heads, text.integer("num_key_value_heads", {1, kMaxHeads}));
  TRY(config.head_dim, text.integer("head_dim", {2, kMaxHeadDim}, kDefaultHeadDim));
  if (config.q_heads % config.kv_heads != 0) {
    return text.wrong("num_key_value_heads", fmt::format("a divisor of num_attention_heads {}", config.q_heads));
  }
  return read_rope(text, config);
}

Result<void> read_linear(const Fields& text, ModelConfig& config) {
  TRY(config.linear_k_heads, text.integer("linear_num_key_heads", {1, kMaxHeads}));
  TRY(config.linear_v_heads, text.integer("linear_num_value_heads", {1, kMaxHeads}));
  TRY(config.linear_k_dim, text.integer("linear_key_head_dim", {1, kMaxHeadDim}));
  TRY(config.linear_v_dim, text.integer("linear_value_head_dim", {1, kMaxHeadDim}));
  TRY(config.conv_kernel, text.integer("linear_conv_kernel_dim", {2, 16}, 4));
  if (config.linear_v_heads % config.linear_k_heads != 0) {
    const auto expected = fmt::format("a multiple of linear_num_key_heads {}", config.linear_k_heads);
    return text.wrong("linear_num_value_heads", expected);
  }
  TRY(const std::string gate, text.text("output_gate_type", "silu"));
  if (gate == "sigmoid") {
    config.linear_gate = GateActivation::Sigmoid;
  } else if (gate != "silu" && gate != "swish") {
    return text.unsupported("output_gate_type", "only silu (swish) and sigmoid are supported");
  }
  return {};
}

Result<void> read_feed_forward(const Fields& text, ModelConfig& config) {
  const bool may_be_dense = config.architecture == Architecture::Qwen3Next;
  int num_experts = 0;
  if (config.architecture != Architecture::Qwen35) {
    const int least = may_be_dense ? 0 : 1;
    const auto fallback = may_be_dense ? std::optional<int>(0) : std::nullopt;
    TRY(num_experts, text.integer("num_experts", {least, kMaxExperts}, fallback));
  }
  if (num_experts == 0) {
    TRY(config.mlp_size, text.integer("intermediate_size", {1, kMaxIntermediate}));
    return {};
  }
  config.moe.num_experts = num_experts;
  TRY(config.moe.experts_per_token, text.integer("num_experts_per_tok", {1, num_experts}));
  TRY(config.moe.expert_size, text.integer("moe_intermediate_size", {1, kMaxIntermediate}));
  TRY(config.moe.shared_expert_size, text.integer("shared_expert_intermediate_size", {1, kMaxIntermediate}));
  TRY(config.moe.normalise_topk, text.flag("norm_topk_prob", true));
  return {};
}

Result<void> read_indexer(const Fields& text, ModelConfig& config) {
  if (text.find("indexer_n_heads") == nullptr) return {};
  IndexerConfig& indexer = config.indexer;
  TRY(indexer.num_heads, text.integer("indexer_n_heads", {1, kMaxHeads}));
  TRY(const int kv_heads, text.integer("indexer_kv_heads", {1, kMaxHeads}, 1));
  if (kv_heads != 1) return text.unsupported("indexer_kv_heads", "only 1 is supported");
  TRY(indexer.head_dim, text.integer("indexer_head_dim", {1, kMaxHeadDim}));
  if (indexer.head_dim < config.rope.rotary_dim) {
    const auto expected = fmt::format("at least the {} rotary dimensions of a head", config.rope.rotary_dim);
    return text.wrong("indexer_head_dim", expected);
  }
  TRY(indexer.block_tokens, text.integer("indexer_compress_ratio", {1, 1024}));
  TRY(indexer.budget_tokens, text.integer("indexer_budget", {1, kMaxContext}));
  if (indexer.budget_tokens % indexer.block_tokens != 0) {
    const auto expected = fmt::format("a multiple of indexer_compress_ratio {}", indexer.block_tokens);
    return text.wrong("indexer_budget", expected);
  }
  return {};
}

Result<void> read_ngram_layers(const Fields& text, ModelConfig& config) {
  constexpr const char* kKey = "ple_layer_ids";
  TRY(const std::vector<int> one_based, text.integers(kKey, {1, config.num_layers()}));
  if (one_based.size() > kMaxNgramLayers) return text.wrong(kKey, fmt::format("at most {}", kMaxNgramLayers));
  for (const int layer : one_based) {
    // Their order seeds the hash, so a file that lists them otherwise would mean another table.
    if (!config.ngram.layers.empty() && layer - 1 <= config.ngram.layers.back()) {
      return text.wrong(kKey, "ascending layer numbers");
    }
    config.ngram.layers.push_back(layer - 1);
  }
  return {};
}

Result<void> check_ngram(const Fields& text, const ModelConfig& config) {
  const NgramConfig& ngram = config.ngram;
  const int all_heads = ngram.num_heads() * static_cast<int>(ngram.layers.size());
  if (all_heads > kMaxNgramHeads) {
    return text.wrong("heads_per_ngram", fmt::format("at most {} n-gram heads in all", kMaxNgramHeads));
  }
  if (ngram.embed_dim % ngram.num_heads() != 0) {
    return text.wrong("ple_embed_dim", fmt::format("a multiple of the {} n-gram heads", ngram.num_heads()));
  }
  if (config.eos_token < 0 || config.eos_token >= config.vocab_size) {
    return text.wrong("eos_token_id", fmt::format("a token below vocab_size {}", config.vocab_size));
  }
  for (int ordinal = 0; ordinal < static_cast<int>(ngram.layers.size()); ++ordinal) {
    const std::int64_t rows = ngram_hash(config, ordinal).padded_rows;
    if (rows % ngram.table_shards != 0) {
      return text.wrong("split_ngram_parts", fmt::format("a divisor of the n-gram table's {} rows", rows));
    }
  }
  return {};
}

Result<void> read_ngram(const Fields& text, ModelConfig& config) {
  TRY_VOID(read_ngram_layers(text, config));
  if (config.ngram.layers.empty()) return {};
  NgramConfig& ngram = config.ngram;
  TRY(ngram.embed_dim, text.integer("ple_embed_dim", {1, kMaxHidden}));
  TRY(ngram.conv_kernel, text.integer("ple_conv_kernel_size", {2, 16}, 4));
  TRY(ngram.ngram_size, text.integer("ngram_size", {2, 8}, 3));
  TRY(ngram.heads_per_ngram, text.integer("heads_per_ngram", {1, 64}, 8));
  TRY(ngram.vocab_base, text.whole("ngram_vocab_size_base", {2, kMaxNgramVocab}));
  TRY(ngram.vocab_multiple, text.whole("make_ngram_vocab_size_divisible_by", {1, kMaxNgramVocab}, 128));
  TRY(const std::int64_t seed, text.whole("seed", {0, std::numeric_limits<std::int64_t>::max()}, 1234));
  ngram.seed = static_cast<std::uint64_t>(seed);
  TRY(ngram.table_shards, text.integer("split_ngram_parts", {1, 4096}, 1));
  return check_ngram(text, config);
}

Result<void> read_qwen4_parts(const Fields& text, ModelConfig& config) {
  TRY(config.hyper.num_streams, text.integer("hc_count", {2, 16}));
  TRY(config.hyper.rank, text.integer("hc_lowrank", {1, kMaxHidden}));
  TRY_VOID(read_indexer(text, config));
  return read_ngram(text, config);
}

Result<void> read_end_tokens(const Document& document, ModelConfig& config) {
  constexpr const char* kKey = "eos_token_id";
  TRY(const std::vector<int> inner, document.text.integers(kKey, {0, kMaxToken}));
  TRY(const std::vector<int> outer, document.top.integers(kKey, {0, kMaxToken}));
  if (!inner.empty()) config.eos_token = inner.front();
  config.end_tokens = outer.empty() ? inner : outer;
  return {};
}

Result<void> read_draft_head(const Fields& text, ModelConfig& config) {
  TRY(const auto nested, text.find_object("mtp"));
  const bool in_nested = text.find("mtp_num_hidden_layers") == nullptr && nested;
  const Fields& place = in_nested ? *nested : text;
  const char* key = in_nested ? "num_hidden_layers" : "mtp_num_hidden_layers";
  TRY(config.num_mtp_layers, place.integer(key, {0, kMaxLayers}, 0));
  if (config.num_mtp_layers > 1) return place.unsupported(key, "a draft head of one layer is what is supported");
  return {};
}

// Modules left as they were: a list of names in one of several keys, or (MLX) modules set to false.
int count_excluded(const Fields& quantization) {
  int count = 0;
  for (const char* key : {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules"}) {
    const json::Value* list = quantization.find(key);
    if (list != nullptr && list->is_array()) count = std::max(count, static_cast<int>(list->get_array().size()));
  }
  return count + quantization.count_false();
}

Result<void> read_fp8_blocks(const Fields& quantization, ModelConfig& config) {
  constexpr const char* kKey = "weight_block_size";
  TRY(const std::vector<int> block, quantization.integers(kKey, {1, kMaxIntermediate}));
  if (block.empty()) return {};
  if (block.size() != 2) return quantization.wrong(kKey, "two whole numbers, rows and columns");
  config.fp8_block_rows = block[0];
  config.fp8_block_columns = block[1];
  return {};
}

// quant_method names the dialect of the tensors' names; MLX has none, but says how many bits.
Result<void> read_quantization(const Document& document, ModelConfig& config) {
  for (const char* key : {"quantization_config", "quantization"}) {
    for (const Fields* place : {&document.top, &document.text}) {
      TRY(const auto found, place->find_object(key));
      if (!found) continue;
      const bool is_mlx = found->find("quant_method") == nullptr && found->find("bits") != nullptr;
      TRY(const std::string method, found->text("quant_method", is_mlx ? kMlx : "unnamed"));
      config.quantization = is_printable_name(method) ? method.substr(0, 40) : "unnamed";
      config.num_excluded_modules = count_excluded(*found);
      TRY_VOID(read_fp8_blocks(*found, config));
      TRY(const std::string mode, found->text("mode", "affine"));
      if (is_mlx && mode != "affine") return found->unsupported("mode", "of MLX's formats only affine is supported");
      return {};
    }
  }
  return {};
}

Result<ModelConfig> read_model(const Document& document) {
  const Fields& text = document.text;
  ModelConfig config;
  TRY(config.architecture, read_architecture(document));
  TRY_VOID(refuse_unsupported(text));
  TRY(config.vocab_size, text.integer("vocab_size", {1, kMaxVocab}));
  TRY(config.hidden_size, text.integer("hidden_size", {1, kMaxHidden}));
  TRY(config.layers, read_layers(text));
  TRY(const double eps, text.number("rms_norm_eps", {1e-12, 1}, 1e-6));
  config.norm_eps = static_cast<float>(eps);
  const Fields& tie_place = document.top.find("tie_word_embeddings") != nullptr ? document.top : text;
  TRY(config.tied_embeddings, tie_place.flag("tie_word_embeddings", false));
  TRY(config.context_tokens, text.integer("max_position_embeddings", {1, kMaxContext}));
  TRY_VOID(read_end_tokens(document, config));
  TRY_VOID(read_attention(text, config));
  TRY_VOID(read_linear(text, config));
  TRY_VOID(read_feed_forward(text, config));
  if (config.architecture == Architecture::Qwen4Exp) TRY_VOID(read_qwen4_parts(text, config));
  TRY_VOID(read_draft_head(text, config));
  TRY_VOID(read_quantization(document, config));
  return config;
}

}  // namespace

std::string_view architecture_name(Architecture architecture) {
  return kArchitectures[static_cast<std::size_t>(architecture)].name;
}

Result<ModelConfig> parse_config(std::string_view config_json, const std::string& name) {
  TRY(const json::Value document, parse_settings(config_json, name));
  const Fields top(document.get_object(), name, "");
  TRY(const auto nested, top.find_object("text_config"));
  return read_model({top, nested ? *nested : top});
}

Result<GenerationDefaults> parse_generation_config(std::string_view generation_config_json, const std::string& name) {
  TRY(const json::Value document, parse_settings(generation_config_json, name));
  const Fields fields(document.get_object(), name, "");
  GenerationDefaults defaults;
  TRY(const double temperature, fields.number("temperature", {0, 100}, 1));
  TRY(const double top_p, fields.number("top_p", {0, 1}, 1));
  TRY(defaults.top_k, fields.integer("top_k", {0, kMaxVocab}, 0));
  TRY(const double min_p, fields.number("min_p", {0, 1}, 0));
  TRY(defaults.end_tokens, fields.integers("eos_token_id", {0, kMaxToken}));
  TRY(const bool samples, fields.flag("do_sample", true));
  defaults.temperature = samples ? static_cast<float>(temperature) : 0;
  defaults.top_p = static_cast<float>(top_p);
  defaults.min_p = static_cast<float>(min_p);
  return defaults;
}

}  // namespace rondo
