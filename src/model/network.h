// Network: the equations of the four architectures, from token ids to hidden states to logits, and the draft head's.
//
// `hidden` is what the head reads: [rows, hidden] after the final norm (qwen3_next, qwen3_5, qwen3_5_moe), or the four
// residual streams before the last mixer, [rows, 4 * hidden] (qwen4_exp). Everything const but the sequences' state,
// which the rows of a batch move on (ops/common/row_span.h).
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "ckpt/ngram_hash.h"
#include "model/batch.h"
#include "model/layers.h"
#include "model/loader.h"

namespace rondo {

class Network {
 public:
  explicit Network(Loader& loader);

  std::int64_t hidden_width() const;
  bool has_head() const { return head_.has_value(); }
  int num_ngram_heads() const;
  int ngram_width() const;  // of all heads together; 0 without a table

  // Every row of the batch through the model. hidden: [rows, hidden_width] f32.
  void forward(Stream& s, const Batch& batch, Scratch scratch, Tensor hidden) const;
  // Folds the logged rows of spans that have no rows, and no more.
  void settle(Stream& s, const RowSpans& spans, Scratch scratch) const;
  // logits[i] of hidden row rows[i]. logits: [n, vocab] f32. rows: where the ops read, like everything of a batch.
  void logits(Stream& s, Tensor hidden, std::span<const std::int32_t> rows, Scratch scratch, Tensor logits) const;

  // One pass of the head (spec 3): row t reads token ids[t] (the one after position t) and hidden row t, at position t,
  // and yields next_hidden, which a chained step reads in hidden's place. Writes the head's own KV at the rows'
  // positions.
  void head_forward(Stream& s, const Batch& batch, Tensor hidden, Scratch scratch, Tensor next_hidden) const;
  // Over the draft vocabulary. logits: [n, draft_vocab_size] f32.
  void head_logits(Stream& s, Tensor next_hidden, std::span<const std::int32_t> rows, Scratch scratch,
                   Tensor logits) const;

  // The ids the head scores, ascending; empty = the whole vocabulary.
  std::span<const std::int32_t> draft_ids() const { return draft_ids_; }
  // The same where ops read it; null = the whole vocabulary.
  const std::int32_t* draft_id_table() const { return draft_ids_.empty() ? nullptr : draft_id_table_.i32(); }
  int draft_vocab_size() const;

  // Table rows of the last token of `history` (ops/ngram/ngram.h). rows: [num_ngram_heads].
  void hash_ngrams(std::span<const std::int32_t> history, std::int64_t* rows) const;
  // vectors: f32 [rows, ngram_width], on the host, as s must be; rows: i64 [rows, num_ngram_heads].
  void gather_ngrams(Stream& s, Tensor rows, Tensor vectors) const;
  int ngram_size() const { return config_.ngram.ngram_size; }
  std::uint64_t weight_bytes_per_row() const { return weight_bytes_per_row_; }  // of the target, one row

 private:
  // norm or hyper-connection mixer on rows of the last hidden states, then the output matrix.
  void output(Stream& s, const HyperConnection* mixer, const Weight& matrix, Tensor hidden,
              std::span<const std::int32_t> rows, Scratch scratch, Tensor logits) const;

  // Where a forward's layers leave their outputs; and what is left to do behind the last: the norm, qwen3_* alone.
  Output output_room(int rows, Scratch& scratch) const;
  void finish(Stream& s, const Layer& layer, Tensor gain, Output& last, Tensor hidden) const;

  // qwen3_*: u = fc [norm_e(e) ; norm_h(h)];  qwen4_exp: U_s = fc_hidden norm_h(R)_s + fc_embedding norm_e(e)
  struct Head {
    Head(Loader& loader, Tensor rope_table);
    Tensor embedding_gain, hidden_gain;
    Weight fc;                       // qwen3_*: [hidden, 2 hidden]
    Weight fc_embedding, fc_hidden;  // qwen4_exp: [hidden, hidden]
    Layer layer;
    Tensor norm_gain;                      // qwen3_*
    std::optional<HyperConnection> mixer;  // qwen4_exp
  };

  const ModelConfig& config_;
  NgramHash ngram_hash_;
  std::vector<Weight> ngram_table_;  // shards, where the source has them
  Weight embedding_;                 // [vocab, hidden]
  Weight lm_head_;                   // [vocab, hidden]
  std::vector<std::int32_t> draft_ids_;
  Tensor draft_id_table_;  // i32 [draft_vocab]
  Weight draft_lm_head_;   // [draft_vocab, hidden]: lm_head's rows of those ids, side by side
  Tensor rope_table_;
  std::vector<Layer> layers_;
  Tensor final_gain_;                           // qwen3_*
  std::optional<HyperConnection> final_mixer_;  // qwen4_exp
  std::uint64_t weight_bytes_per_row_ = 0;
  std::optional<Head> head_;
};

}  // namespace rondo
