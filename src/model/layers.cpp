#include "model/layers.h"

#include <array>

#include "ckpt/ngram_hash.h"
#include "ops/hyper/hyper.h"
#include "ops/linear/linear.h"
#include "ops/ngram/ngram.h"
#include "ops/norm/norm.h"
#include "ops/pointwise/pointwise.h"

namespace rondo {

PreNorm::PreNorm(Loader& loader, const std::string& norm_name)
    : eps_(loader.config().norm_eps), gain_(loader.gain(norm_name + ".weight")) {}

void PreNorm::read(Stream& s, Scratch, Tensor residual, const Output& before, Tensor x) const {
  const NormSpec spec{eps_, residual.width()};
  switch (before.waits) {
    case Output::Waits::Nothing: return rms_norm(s, residual, gain_, spec, x);
    case Output::Waits::Y: return add_norm(s, before.y, residual, gain_, spec, x);
    case Output::Waits::Sum: return add_up_norm(s, before.sum, before.y, residual, gain_, spec, x);
  }
}

void PreNorm::write(Stream& s, const Output& output, Tensor residual) const { add(s, output.y, residual); }

HyperConnection::HyperConnection(Loader& loader, const std::string& prefix, Writes writes)
    : num_streams_(loader.config().hyper.num_streams),
      eps_(loader.config().norm_eps),
      writes_(writes),
      gain_(loader.gain(prefix + ".hc_norm.weight")),
      down_(loader.matrix(prefix + ".input_mix_weight_down.weight")),
      up_(loader.matrix(prefix + ".input_mix_weight_up.weight")) {
  if (writes == Writes::Back) inject_ = loader.matrix(prefix + ".block_inject_weight.weight");
}

void HyperConnection::read(Stream& s, Scratch scratch, Tensor residual, const Output& before, Tensor x) const {
  const int rows = residual.rows();
  const Tensor normed = scratch.take_f32({rows, residual.width()});
  const Tensor mix = scratch.take_f32({rows, down_.shape[0]});
  switch (before.waits) {
    case Output::Waits::Nothing: rms_norm(s, residual, gain_, {eps_, residual.width() / num_streams_}, normed); break;
    case Output::Waits::Y: hyper_inject_norm(s, before.y, before.inject, residual, gain_, eps_, normed); break;
    case Output::Waits::Sum:
      hyper_inject_norm(s, before.sum, before.y, before.inject, residual, gain_, eps_, normed);
      break;
  }
  const LinearPart parts[] = {{.weight = down_, .x = normed, .out = mix, .rows = rows},
                              {.weight = inject_, .x = normed, .out = before.inject, .rows = rows}};
  linear(s, std::span(parts, writes_ == Writes::Back ? 2 : 1));
  hyper_mix(s, normed, mix, up_, scratch, x);
}

void HyperConnection::write(Stream& s, const Output& output, Tensor residual) const {
  hyper_inject(s, output.y, output.inject, residual);
}

MixtureOfExperts::MixtureOfExperts(Loader& loader, const std::string& prefix) {
  const ModelConfig& c = loader.config();
  for (int e = 0; e < c.moe.num_experts; ++e) {
    const ExpertWeights expert = expert_weights(loader.source(), prefix, e);
    experts_.push_back(
        {.gate = loader.placed(expert.gate), .up = loader.placed(expert.up), .down = loader.placed(expert.down)});
  }
  const GatedMlpWeights& one = experts_.front();
  const std::uint64_t expert_bytes = one.gate.size_bytes() + one.up.size_bytes() + one.down.size_bytes();
  loader.count_row_bytes(expert_bytes * static_cast<std::uint64_t>(c.moe.experts_per_token));
  w_ = {.router = loader.matrix(prefix + ".gate.weight"),
        .experts = {},
        .shared = loader.gated_mlp(prefix + ".shared_expert"),
        .shared_gate = loader.matrix(prefix + ".shared_expert_gate.weight"),
        .experts_per_token = c.moe.experts_per_token,
        .normalise_topk = c.moe.normalise_topk,
        .tensor_scales = loader.tensor_scales(experts_)};
}

void MixtureOfExperts::forward(Stream& s, Scratch scratch, Tensor x, Output& output) const {
  MoeWeights w = w_;
  w.experts = experts_;
  mixture_of_experts(s, w, x, scratch, output.sum);
  output.waits = Output::Waits::Sum;
}

NgramEmbedding::NgramEmbedding(Loader& loader, int layer) {
  const ModelConfig& c = loader.config();
  const std::string prefix = "layers." + std::to_string(layer) + ".ple.";
  hidden_ = c.hidden_size;
  eps_ = c.norm_eps;
  conv_ = {.kernel = c.ngram.conv_kernel, .dilation = c.ngram.ngram_size};
  key_ = loader.matrix(prefix + "key_proj.weight");
  value_ = loader.matrix(prefix + "value_proj.weight");
  key_gain_ = loader.gain(prefix + "norm_key.weight");
  query_gain_ = loader.gain(prefix + "norm_query.weight");
  conv_gain_ = loader.gain(prefix + "norm_conv.weight");
  conv_weight_ = loader.conv_weight(prefix + "conv1d.weight");
  const ModelOptions& o = loader.options();
  const std::int64_t channels = key_.shape[0];
  Arena& slots = loader.arenas().slots;
  conv_state_ = {loader.slot_state({o.max_streams, (conv_.kernel - 1) * conv_.dilation, channels}),
                 slots.take(DType::F32, {o.max_streams, o.max_drafts, channels})};
}

void NgramEmbedding::settle(Stream& s, const RowSpans& spans, Scratch scratch) const {
  const Tensor x = scratch.take_f32({1, key_.shape[0]}), out = scratch.take_f32({1, key_.shape[0]});
  causal_conv(s, spans, x, conv_weight_, conv_, conv_state_, out);
}

void NgramEmbedding::forward(Stream& s, const Batch& batch, Scratch scratch, Tensor residual) const {
  const int rows = batch.rows;
  const Tensor e = batch.ngram_vectors, value = scratch.take_f32({rows, hidden_});
  const Tensor key = scratch.take_f32({rows, residual.width()}), query = scratch.take_f32({rows, residual.width()});
  const Tensor gated = scratch.take_f32({rows, residual.width()});
  linear(s, std::array{LinearPart{.weight = key_, .x = e, .out = key, .rows = rows},
                       LinearPart{.weight = value_, .x = e, .out = value, .rows = rows}});
  rms_norm(s, key, key_gain_, {eps_, hidden_}, key);
  rms_norm(s, residual, query_gain_, {eps_, hidden_}, query);
  ngram_gate(s, key, query, value, gated);
  rms_norm(s, gated, conv_gain_, {eps_, hidden_}, key);
  causal_conv(s, batch.spans, key, conv_weight_, conv_, conv_state_, query);
  add(s, gated, residual);
  add(s, query, residual);
}

namespace {

Junction make_junction(Loader& loader, const std::string& prefix, const char* norm, const char* hyper) {
  if (loader.config().hyper.num_streams > 1) {
    return HyperConnection(loader, prefix + "." + hyper, HyperConnection::Writes::Back);
  }
  return PreNorm(loader, prefix + "." + norm);
}

std::variant<GatedDeltaNet, GatedAttention> make_mixer(Loader& loader, const std::string& prefix, LayerKind kind,
                                                       Tensor rope_table) {
  if (kind == LayerKind::Linear) return GatedDeltaNet(loader, prefix + ".linear_attn");
  return GatedAttention(loader, prefix + ".self_attn", rope_table);
}

std::variant<DenseMlp, MixtureOfExperts> make_mlp(Loader& loader, const std::string& prefix) {
  if (loader.config().moe.num_experts > 0) return MixtureOfExperts(loader, prefix + ".mlp");
  return DenseMlp(loader, prefix + ".mlp");
}

bool has_ngram(const ModelConfig& config, int layer, Layer::Place place) {
  const auto& layers = config.ngram.layers;
  return place == Layer::Place::Main && std::find(layers.begin(), layers.end(), layer) != layers.end();
}

}  // namespace

Layer::Layer(Loader& loader, const std::string& prefix, int index, Place place, Tensor rope_table)
    : hidden_(loader.config().hidden_size),
      ngram_(has_ngram(loader.config(), index, place) ? std::make_optional<NgramEmbedding>(loader, index)
                                                      : std::nullopt),
      mixer_junction_(make_junction(loader, prefix, "input_layernorm", "attn_hyper_connection")),
      mixer_(make_mixer(
          loader, prefix,
          place == Place::Head ? LayerKind::Attention : loader.config().layers[static_cast<std::size_t>(index)],
          rope_table)),
      mlp_junction_(make_junction(loader, prefix, "post_attention_layernorm", "mlp_hyper_connection")),
      mlp_(make_mlp(loader, prefix)) {}

void Layer::write(Stream& s, Output& output, Tensor residual) const {
  if (output.waits == Output::Waits::Nothing) return;
  if (output.waits == Output::Waits::Sum) add_up(s, output.sum, output.y);
  std::visit([&](const auto& junction) { junction.write(s, output, residual); }, mlp_junction_);
  output.waits = Output::Waits::Nothing;
}

void Layer::read(Stream& s, Scratch scratch, const Junction& junction, Tensor residual, Output& output,
                 Tensor x) const {
  std::visit([&](const auto& each) { each.read(s, scratch, residual, output, x); }, junction);
  output.waits = Output::Waits::Nothing;
}

void Layer::forward(Stream& s, const Batch& batch, Scratch scratch, Tensor residual, Output& output) const {
  const Tensor x = scratch.take_f32({batch.rows, hidden_});
  if (ngram_) {
    write(s, output, residual);
    ngram_->forward(s, batch, scratch, residual);
  }
  read(s, scratch, mixer_junction_, residual, output, x);
  std::visit([&](const auto& mixer) { mixer.forward(s, batch, scratch, x, output.y); }, mixer_);
  output.waits = Output::Waits::Y;
  read(s, scratch, mlp_junction_, residual, output, x);
  std::visit([&](const auto& mlp) { mlp.forward(s, scratch, x, output); }, mlp_);
}

void Layer::settle(Stream& s, const RowSpans& spans, Scratch scratch) const {
  if (ngram_) ngram_->settle(s, spans, scratch);
  if (const auto* delta_net = std::get_if<GatedDeltaNet>(&mixer_)) delta_net->settle(s, spans, scratch);
}

}  // namespace rondo
