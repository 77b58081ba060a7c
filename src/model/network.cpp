#include "model/network.h"

#include <algorithm>

#include "ops/linear/linear.h"
#include "ops/ngram/ngram.h"
#include "ops/norm/norm.h"
#include "ops/pointwise/pointwise.h"

namespace rondo {

namespace {

bool has_streams(const ModelConfig& config) { return config.hyper.num_streams > 1; }

Tensor make_rope_table(Loader& loader) {
  const RopeConfig& rope = loader.config().rope;
  return loader.table(DType::F32, {loader.options().context_tokens, 2, rope.rotary_dim / 2}, [&](Tensor table) {
    fill_rope_table({rope.theta, rope.rotary_dim, rope.yarn_factor, rope.original_context}, table);
  });
}

// The first kDraftVocab ids and the added tokens; empty when that is everything.
std::vector<std::int32_t> choose_draft_ids(const ModelConfig& config, const ModelOptions& options) {
  std::vector<std::int32_t> ids;
  if (config.vocab_size <= kDraftVocab) return ids;
  for (std::int32_t id = 0; id < kDraftVocab; ++id) ids.push_back(id);
  for (const std::int32_t id : options.draft_extra) {
    if (id >= kDraftVocab && id < config.vocab_size) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

NgramHash hash_of(const ModelConfig& config) {
  CHECK(config.ngram.layers.size() <= 1);  // the batch carries one table's rows
  return config.ngram.layers.empty() ? NgramHash{} : ngram_hash(config, 0);
}

}  // namespace

Network::Network(Loader& loader)
    : config_(loader.config()),
      ngram_hash_(hash_of(config_)),
      embedding_(loader.placed(*loader.source().find_weight("embed_tokens.weight"))),
      lm_head_(loader.matrix(config_.tied_embeddings ? "embed_tokens.weight" : "lm_head.weight")),
      rope_table_(make_rope_table(loader)) {
  for (int i = 0; i < config_.num_layers(); ++i) {
    layers_.emplace_back(loader, "layers." + std::to_string(i), i, Layer::Place::Main, rope_table_);
  }
  if (has_streams(config_)) {
    final_mixer_.emplace(loader, "hyper_connection_mixer", HyperConnection::Writes::Never);
  } else {
    final_gain_ = loader.gain("norm.weight");
  }
  weight_bytes_per_row_ = loader.row_bytes();
  if (!config_.ngram.layers.empty()) ngram_table_ = ngram_table(loader.source(), config_.ngram.layers[0]);
  if (!loader.source().has_mtp() || !loader.options().has_head) return;
  head_.emplace(loader, rope_table_);
  draft_ids_ = choose_draft_ids(config_, loader.options());
  draft_lm_head_ = lm_head_;
  if (!draft_ids_.empty()) {
    draft_lm_head_ = loader.matrix_rows(config_.tied_embeddings ? "embed_tokens.weight" : "lm_head.weight",
                                        {draft_ids_.begin(), draft_ids_.end()});
    draft_id_table_ = loader.table(DType::I32, {static_cast<std::int64_t>(draft_ids_.size())},
                                   [&](Tensor table) { std::ranges::copy(draft_ids_, table.i32()); });
  }
}

std::int64_t Network::hidden_width() const {
  return static_cast<std::int64_t>(config_.hidden_size) * config_.hyper.num_streams;
}

int Network::draft_vocab_size() const {
  return draft_ids_.empty() ? config_.vocab_size : static_cast<int>(draft_ids_.size());
}

int Network::num_ngram_heads() const { return config_.ngram.layers.empty() ? 0 : config_.ngram.num_heads(); }

void Network::forward(Stream& s, const Batch& batch, Scratch scratch, Tensor hidden) const {
  embed(s, embedding_, batch.ids, config_.hyper.num_streams, hidden);
  Output last = output_room(batch.rows, scratch);
  for (const Layer& layer : layers_) layer.forward(s, batch, scratch, hidden, last);
  finish(s, layers_.back(), final_gain_, last, hidden);
}

Output Network::output_room(int rows, Scratch& scratch) const {
  Output room{.y = scratch.take_f32({rows, config_.hidden_size}),
              .sum = {},
              .inject = scratch.take_f32({rows, config_.hyper.num_streams})};
  const int k = config_.moe.num_experts > 0 ? config_.moe.experts_per_token : 0;
  if (k > 0) room.sum = take_mixture_sum(scratch, rows, config_.hidden_size, k);
  return room;
}

void Network::finish(Stream& s, const Layer& layer, Tensor gain, Output& last, Tensor hidden) const {
  if (has_streams(config_)) return layer.write(s, last, hidden);
  const NormSpec spec{config_.norm_eps, hidden.width()};
  if (last.waits == Output::Waits::Sum) return add_up_norm(s, last.sum, last.y, hidden, gain, spec, hidden);
  add_norm(s, last.y, hidden, gain, spec, hidden);
}

void Network::settle(Stream& s, const RowSpans& spans, Scratch scratch) const {
  for (const Layer& layer : layers_) layer.settle(s, spans, scratch);
}

void Network::output(Stream& s, const HyperConnection* mixer, const Weight& matrix, Tensor hidden,
                     std::span<const std::int32_t> rows, Scratch scratch, Tensor logits) const {
  const auto n = static_cast<std::int64_t>(rows.size());
  if (mixer == nullptr) {
    const LinearPart part{
        .weight = matrix, .x = hidden, .out = logits, .in_rows = rows.data(), .rows = static_cast<int>(n)};
    return linear(s, std::span(&part, 1));
  }
  const Tensor streams = scratch.take_f32({n, hidden.width()}), x = scratch.take_f32({n, config_.hidden_size});
  gather_rows(s, hidden, rows.data(), streams);
  mixer->read(s, scratch, streams, {}, x);
  linear(s, matrix, x, logits);
}

void Network::logits(Stream& s, Tensor hidden, std::span<const std::int32_t> rows, Scratch scratch,
                     Tensor logits) const {
  output(s, final_mixer_ ? &*final_mixer_ : nullptr, lm_head_, hidden, rows, scratch, logits);
}

Network::Head::Head(Loader& loader, Tensor rope_table)
    : embedding_gain(loader.gain("mtp.pre_fc_norm_embedding.weight")),
      hidden_gain(loader.gain("mtp.pre_fc_norm_hidden.weight")),
      layer(loader, "mtp.layers.0", 0, Layer::Place::Head, rope_table) {
  if (has_streams(loader.config())) {
    fc_embedding = loader.matrix("mtp.fc_embedding.weight");
    fc_hidden = loader.matrix("mtp.fc_hidden.weight");
    mixer.emplace(loader, "mtp.hyper_connection_mixer", HyperConnection::Writes::Never);
  } else {
    fc = loader.matrix("mtp.fc.weight");
    norm_gain = loader.gain("mtp.norm.weight");
  }
}

void Network::head_forward(Stream& s, const Batch& batch, Tensor hidden, Scratch scratch, Tensor next_hidden) const {
  CHECK(head_.has_value());
  const std::int64_t width = config_.hidden_size, rows = batch.rows, streams = config_.hyper.num_streams;
  const float eps = config_.norm_eps;
  const Tensor e = scratch.take_f32({rows, width}), h = scratch.take_f32({rows, hidden.width()});
  Output last = output_room(batch.rows, scratch);
  embed(s, embedding_, batch.ids, 1, e);
  rms_norm(s, e, head_->embedding_gain, {eps, width}, e);
  rms_norm(s, hidden.slice(0, rows), head_->hidden_gain, {eps, hidden.width()}, h);  // one mean over all streams
  if (has_streams(config_)) {
    const Tensor from_embedding = scratch.take_f32({rows, width});
    linear(s, head_->fc_embedding, e, from_embedding);
    // The streams are rows to fc_hidden: [rows, streams, hidden] seen as [rows * streams, hidden].
    linear(s, head_->fc_hidden, {h.data, h.dtype, {rows * streams, width}},
           {next_hidden.data, next_hidden.dtype, {rows * streams, width}});
    add(s, from_embedding, next_hidden);
  } else {
    const Tensor both = scratch.take_f32({rows, 2 * width});
    side_by_side(s, e, h, both);
    linear(s, head_->fc, both, next_hidden);
  }
  head_->layer.forward(s, batch, scratch, next_hidden, last);
  finish(s, head_->layer, head_->norm_gain, last, next_hidden);
}

void Network::head_logits(Stream& s, Tensor next_hidden, std::span<const std::int32_t> rows, Scratch scratch,
                          Tensor logits) const {
  CHECK(head_.has_value());
  output(s, head_->mixer ? &*head_->mixer : nullptr, draft_lm_head_, next_hidden, rows, scratch, logits);
}

int Network::ngram_width() const { return config_.ngram.layers.empty() ? 0 : config_.ngram.embed_dim; }

void Network::gather_ngrams(Stream& s, Tensor rows, Tensor vectors) const {
  ngram_gather(s, ngram_table_, rows, vectors);
}

void Network::hash_ngrams(std::span<const std::int32_t> history, std::int64_t* rows) const {
  const NgramSpec spec{.ngram_size = config_.ngram.ngram_size,
                       .heads_per_ngram = config_.ngram.heads_per_ngram,
                       .eos = config_.eos_token,
                       .multipliers = ngram_hash_.multipliers,
                       .head_offsets = ngram_hash_.head_offsets,
                       .head_sizes = ngram_hash_.head_sizes};
  rondo::ngram_rows(spec, history, rows);
}

}  // namespace rondo
