// A decoder layer: how a block reads the residual and writes back to it (Junction), the mixer, the feed-forward block,
// and qwen4_exp's n-gram embedding before one of the layers.
//
// residual: [rows, S * hidden] f32, S = 1 for the qwen3 models, 4 streams side by side for qwen4_exp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/batch.h"
#include "model/loader.h"
#include "model/mixers.h"

namespace rondo {

// A block's output on its way into the residual: whoever reads that next writes it there in the same pass.
struct Output {
  enum class Waits { Nothing, Y, Sum };  // which of the two is not in the residual yet
  Tensor y;                              // [rows, hidden]
  MixtureSum sum;                        // of a mixture; y is room for it then
  Tensor inject;                         // [rows, S] how much of it each of qwen4_exp's streams gets
  Waits waits = Waits::Nothing;
};

// x = norm(residual);  residual = residual + y
class PreNorm {
 public:
  PreNorm(Loader& loader, const std::string& norm_name);
  void read(Stream& s, Scratch scratch, Tensor residual, const Output& before, Tensor x) const;
  void write(Stream& s, const Output& output, Tensor residual) const;

 private:
  float eps_;
  Tensor gain_;  // [hidden]
};

// x = mean over streams of sigmoid(omega) * N;  R_s = R_s + kappa_s y    (spec 2.7)
class HyperConnection {
 public:
  enum class Writes { Back, Never };  // the mixer at the end only reads
  HyperConnection(Loader& loader, const std::string& prefix, Writes writes);
  // before: its inject is the last block's until then, and this one's afterwards.
  void read(Stream& s, Scratch scratch, Tensor residual, const Output& before, Tensor x) const;
  void write(Stream& s, const Output& output, Tensor residual) const;

 private:
  int num_streams_;
  float eps_;
  Writes writes_;
  Tensor gain_;       // [S * hidden]
  Weight down_, up_;  // [rank, S * hidden], [S * hidden, rank]
  Weight inject_;     // [S, S * hidden]
};

using Junction = std::variant<PreNorm, HyperConnection>;

class DenseMlp {
 public:
  DenseMlp(Loader& loader, const std::string& prefix) : w_(loader.gated_mlp(prefix)) {}
  void forward(Stream& s, Scratch scratch, Tensor x, Output& output) const {
    gated_mlp(s, w_, x, scratch, output.y);
    output.waits = Output::Waits::Y;
  }

 private:
  GatedMlpWeights w_;
};

class MixtureOfExperts {
 public:
  MixtureOfExperts(Loader& loader, const std::string& prefix);
  void forward(Stream& s, Scratch scratch, Tensor x, Output& output) const;

 private:
  std::vector<GatedMlpWeights> experts_;
  MoeWeights w_;  // its experts are set when used, so that a layer may be moved
};

// R = R + PLE(R, tokens)    (spec 2.8)
class NgramEmbedding {
 public:
  NgramEmbedding(Loader& loader, int layer);
  void forward(Stream& s, const Batch& batch, Scratch scratch, Tensor residual) const;
  void settle(Stream& s, const RowSpans& spans, Scratch scratch) const;  // spans of no rows: folds

 private:
  std::int64_t hidden_;
  float eps_;
  ConvSpec conv_;
  Weight key_, value_;
  Tensor key_gain_, query_gain_, conv_gain_;
  Tensor conv_weight_;
  ConvState conv_state_;
};

class Layer {
 public:
  enum class Place { Main, Head };  // the head's layer is attention, with no n-grams
  Layer(Loader& loader, const std::string& prefix, int index, Place place, Tensor rope_table);
  // Reads what waits in `output` as part of the residual, and leaves its own there to wait.
  void forward(Stream& s, const Batch& batch, Scratch scratch, Tensor residual, Output& output) const;
  void write(Stream& s, Output& output, Tensor residual) const;          // what waits; nothing may
  void settle(Stream& s, const RowSpans& spans, Scratch scratch) const;  // spans of no rows: folds

 private:
  void read(Stream& s, Scratch scratch, const Junction& junction, Tensor residual, Output& output, Tensor x) const;

  std::int64_t hidden_;
  std::optional<NgramEmbedding> ngram_;
  Junction mixer_junction_;
  std::variant<GatedDeltaNet, GatedAttention> mixer_;
  Junction mlp_junction_;
  std::variant<DenseMlp, MixtureOfExperts> mlp_;
};

}  // namespace rondo
