#include <fmt/format.h>

#include "ckpt/checkpoint.h"
#include "ckpt/ngram_hash.h"

namespace rondo {

namespace {

class Inventory {
 public:
  explicit Inventory(const ModelConfig& config) : c_(config), hidden_(config.hidden_size) {}

  std::vector<TensorSpec> take(bool has_mtp) && {
    matrix("embed_tokens.weight", {c_.vocab_size, hidden_});
    for (int i = 0; i < c_.num_layers(); ++i) {
      const std::string prefix = fmt::format("layers.{}.", i);
      layer(prefix, c_.layers[static_cast<std::size_t>(i)]);
    }
    for (std::size_t p = 0; p < c_.ngram.layers.size(); ++p) ngram(static_cast<int>(p));
    if (has_streams()) {
      mixer("hyper_connection_mixer.");
    } else {
      vector("norm.weight", {hidden_});
    }
    if (!c_.tied_embeddings) matrix("lm_head.weight", {c_.vocab_size, hidden_});
    if (has_mtp) draft_head();
    return std::move(specs_);
  }

 private:
  bool has_streams() const { return c_.hyper.num_streams > 1; }
  std::int64_t streams_hidden() const { return std::int64_t{c_.hyper.num_streams} * hidden_; }

  void matrix(std::string name, Shape shape) { specs_.push_back({std::move(name), shape, TensorClass::Matrix}); }
  void vector(std::string name, Shape shape) { specs_.push_back({std::move(name), shape, TensorClass::Vector}); }
  void integers(std::string name, Shape shape) { specs_.push_back({std::move(name), shape, TensorClass::Integers}); }

  void layer(const std::string& prefix, LayerKind kind) {
    if (has_streams()) {
      hyper_connection(prefix + "attn_hyper_connection.");
      hyper_connection(prefix + "mlp_hyper_connection.");
    } else {
      vector(prefix + "input_layernorm.weight", {hidden_});
      vector(prefix + "post_attention_layernorm.weight", {hidden_});
    }
    if (kind == LayerKind::Linear) {
      linear(prefix + "linear_attn.");
    } else {
      attention(prefix + "self_attn.");
    }
    feed_forward(prefix + "mlp.");
  }

  void linear(const std::string& prefix) {
    const std::int64_t channels = c_.linear_channels();
    const std::int64_t v_heads = c_.linear_v_heads;
    const std::int64_t values = v_heads * c_.linear_v_dim;
    if (c_.architecture == Architecture::Qwen3Next) {
      matrix(prefix + "in_proj_qkvz.weight", {channels + values, hidden_});
      matrix(prefix + "in_proj_ba.weight", {2 * v_heads, hidden_});
    } else {
      matrix(prefix + "in_proj_qkv.weight", {channels, hidden_});
      matrix(prefix + "in_proj_z.weight", {values, hidden_});
      matrix(prefix + "in_proj_b.weight", {v_heads, hidden_});
      matrix(prefix + "in_proj_a.weight", {v_heads, hidden_});
    }
    vector(prefix + "conv1d.weight", {channels, 1, c_.conv_kernel});
    vector(prefix + "A_log", {v_heads});
    vector(prefix + "dt_bias", {v_heads});
    vector(prefix + "norm.weight", {c_.linear_v_dim});
    matrix(prefix + "out_proj.weight", {hidden_, values});
  }

  void attention(const std::string& prefix) {
    const std::int64_t dim = c_.head_dim;
    matrix(prefix + "q_proj.weight", {2 * c_.q_heads * dim, hidden_});
    matrix(prefix + "k_proj.weight", {c_.kv_heads * dim, hidden_});
    matrix(prefix + "v_proj.weight", {c_.kv_heads * dim, hidden_});
    matrix(prefix + "o_proj.weight", {hidden_, c_.q_heads * dim});
    vector(prefix + "q_norm.weight", {dim});
    vector(prefix + "k_norm.weight", {dim});
    const std::int64_t index_dim = c_.indexer.head_dim;
    if (c_.indexer.num_heads == 0) return;
    matrix(prefix + "indexer.index_qk_proj.weight", {(c_.indexer.num_heads + 1) * index_dim, hidden_});
    vector(prefix + "indexer.q_layernorm.weight", {index_dim});
    vector(prefix + "indexer.k_layernorm.weight", {index_dim});
  }

  void feed_forward(const std::string& prefix) {
    if (c_.moe.num_experts == 0) return mlp(prefix, c_.mlp_size);
    const std::int64_t experts = c_.moe.num_experts;
    const std::int64_t size = c_.moe.expert_size;
    matrix(prefix + "gate.weight", {experts, hidden_});
    matrix(prefix + "experts.gate_up_proj", {experts, 2 * size, hidden_});
    matrix(prefix + "experts.down_proj", {experts, hidden_, size});
    mlp(prefix + "shared_expert.", c_.moe.shared_expert_size);
    matrix(prefix + "shared_expert_gate.weight", {1, hidden_});
  }

  void mlp(const std::string& prefix, std::int64_t size) {
    matrix(prefix + "gate_proj.weight", {size, hidden_});
    matrix(prefix + "up_proj.weight", {size, hidden_});
    matrix(prefix + "down_proj.weight", {hidden_, size});
  }

  void mixer(const std::string& prefix) {
    vector(prefix + "hc_norm.weight", {streams_hidden()});
    matrix(prefix + "input_mix_weight_down.weight", {c_.hyper.rank, streams_hidden()});
    matrix(prefix + "input_mix_weight_up.weight", {streams_hidden(), c_.hyper.rank});
  }

  void hyper_connection(const std::string& prefix) {
    mixer(prefix);
    matrix(prefix + "block_inject_weight.weight", {c_.hyper.num_streams, streams_hidden()});
  }

  void ngram(int ordinal) {
    const NgramConfig& n = c_.ngram;
    const std::string prefix = fmt::format("layers.{}.ple.", n.layers[static_cast<std::size_t>(ordinal)]);
    matrix(prefix + "key_proj.weight", {streams_hidden(), n.embed_dim});
    matrix(prefix + "value_proj.weight", {hidden_, n.embed_dim});
    vector(prefix + "norm_key.weight", {streams_hidden()});
    vector(prefix + "norm_query.weight", {streams_hidden()});
    vector(prefix + "norm_conv.weight", {streams_hidden()});
    vector(prefix + "conv1d.weight", {streams_hidden(), 1, n.conv_kernel});
    const std::string embedding = prefix + "ple_embedding.";
    integers(embedding + "layer_multipliers", {n.ngram_size});
    integers(embedding + "ngram_heads_offsets", {n.num_heads()});
    integers(embedding + "ngram_heads_vocab_sizes", {n.num_heads()});
    const std::int64_t shard_rows = ngram_hash(c_, ordinal).padded_rows / n.table_shards;
    for (int k = 0; k < n.table_shards; ++k) {
      const std::string shard = fmt::format("{}ngram_embedding.shard_{}.weight", embedding, k);
      matrix(shard, {shard_rows, n.embed_dim / n.num_heads()});
    }
  }

  void draft_head() {
    if (has_streams()) {
      matrix("mtp.fc_embedding.weight", {hidden_, hidden_});
      matrix("mtp.fc_hidden.weight", {hidden_, hidden_});
    } else {
      matrix("mtp.fc.weight", {hidden_, 2 * hidden_});
    }
    vector("mtp.pre_fc_norm_embedding.weight", {hidden_});
    vector("mtp.pre_fc_norm_hidden.weight", {streams_hidden()});
    layer("mtp.layers.0.", LayerKind::Attention);
    if (has_streams()) {
      mixer("mtp.hyper_connection_mixer.");
    } else {
      vector("mtp.norm.weight", {hidden_});
    }
  }

  const ModelConfig& c_;
  const std::int64_t hidden_;
  std::vector<TensorSpec> specs_;
};

}  // namespace

std::vector<TensorSpec> inventory(const ModelConfig& config, bool has_mtp) { return Inventory(config).take(has_mtp); }

}  // namespace rondo
