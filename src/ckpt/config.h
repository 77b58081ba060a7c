// ModelConfig: what config.json says of a text model of the family, in one spelling.
//
// Accepted: qwen3_next, qwen3_5, qwen3_5_moe and qwen4_exp (and their _text types), flat or under text_config, rope in
// rope_parameters, rope_scaling or at the top level (read in that order), the tie flag at the top or inside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rondo {

constexpr const char* kMlx = "mlx affine";  // ModelConfig::quantization of an MLX file, which names no method

enum class Architecture { Qwen3Next, Qwen35, Qwen35Moe, Qwen4Exp };
std::string_view architecture_name(Architecture architecture);  // as config.json spells it: "qwen4_exp"

enum class LayerKind { Linear, Attention };   // Gated DeltaNet, or gated attention
enum class GateActivation { Silu, Sigmoid };  // of the Gated DeltaNet's output gate

struct RopeConfig {
  double theta = 1e7;
  int rotary_dim = 64;     // leading dimensions of a head that turn
  double yarn_factor = 1;  // 1 = plain; else static YaRN over original_context
  int original_context = 0;
};

struct MoeConfig {
  int num_experts = 0;  // 0 = a dense MLP
  int experts_per_token = 0;
  int expert_size = 0;  // intermediate size of one routed expert
  int shared_expert_size = 0;
  bool normalise_topk = true;
};

struct HyperConnectionConfig {  // qwen4_exp
  int num_streams = 1;          // residual streams; 1 = an ordinary residual
  int rank = 0;
};

struct NgramConfig {        // qwen4_exp: hashed n-gram embedding (PLE)
  std::vector<int> layers;  // 0-based; empty = none
  int embed_dim = 0;
  int conv_kernel = 4;
  int ngram_size = 3;  // also the convolution's dilation
  int heads_per_ngram = 8;
  std::int64_t vocab_base = 0;
  std::int64_t vocab_multiple = 128;
  std::uint64_t seed = 1234;
  int table_shards = 1;
  int num_heads() const { return (ngram_size - 1) * heads_per_ngram; }
};

struct IndexerConfig {  // qwen4_exp: block selection of sparse attention (QSA)
  int num_heads = 0;    // 0 = dense attention
  int head_dim = 0;
  int budget_tokens = 0;
  int block_tokens = 4;
};

struct ModelConfig {
  Architecture architecture = Architecture::Qwen35;
  int vocab_size = 0;
  int hidden_size = 0;
  std::vector<LayerKind> layers;
  float norm_eps = 1e-6F;
  bool tied_embeddings = false;
  int context_tokens = 0;  // max_position_embeddings, or what YaRN stretches its original context to, if that is more
  // gated attention
  int q_heads = 0, kv_heads = 0, head_dim = 0;
  RopeConfig rope;
  IndexerConfig indexer;
  // Gated DeltaNet
  int linear_k_heads = 0, linear_v_heads = 0, linear_k_dim = 0, linear_v_dim = 0, conv_kernel = 4;
  GateActivation linear_gate = GateActivation::Silu;
  // feed-forward
  int mlp_size = 0;  // dense MLP; 0 where every layer is a mixture
  MoeConfig moe;
  HyperConnectionConfig hyper;
  NgramConfig ngram;
  int eos_token = -1;           // text_config's: cuts n-grams; not what ends a reply
  std::vector<int> end_tokens;  // every eos_token_id, the top level's first: ends a reply unless generation_config does
  int num_mtp_layers = 0;       // what the file says; whether a head is there, the tensors say
  // quantization_config: a hint. What each matrix really is, its file says (ckpt/formats.h).
  std::string quantization;                           // quant_method in the file's words, or kMlx; empty = none
  int fp8_block_rows = 128, fp8_block_columns = 128;  // weight_block_size
  int num_excluded_modules = 0;                       // that it says are not quantised

  int num_layers() const { return static_cast<int>(layers.size()); }
  int linear_channels() const {
    return 2 * linear_k_heads * linear_k_dim + linear_v_heads * linear_v_dim;
  }  // q | k | v
};

// The document itself; `name` stands for the file in messages. Unsupported for an unknown architecture (naming it and
// the known ones), Corrupt for a missing, mistyped or impossible value (naming its key).
Result<ModelConfig> parse_config(std::string_view config_json, const std::string& name);

// generation_config.json: what a request that is silent gets, and what ends a reply.
struct GenerationDefaults {
  float temperature = 1;
  float top_p = 1;
  int top_k = 0;  // 0 = off
  float min_p = 0;
  std::vector<int> end_tokens;  // empty where the file names none: then config.json's
};
// do_sample: false means temperature 0, as transformers reads it.
Result<GenerationDefaults> parse_generation_config(std::string_view generation_config_json, const std::string& name);

}  // namespace rondo
