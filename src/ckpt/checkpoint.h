// Checkpoint: a Hugging Face folder as named tensors, every byte range checked before anyone may read it.
//
// Names are canonical: without the `model.` or `model.language_model.` prefix ("layers.0.mlp.gate.weight",
// "embed_tokens.weight", "lm_head.weight", "mtp.fc.weight"); the vision tower is left out. Tensors point into mapped
// files and live as long as the Checkpoint. A weight is never invented: what is missing or misshapen is a problem.
//
// Which files: those that model.safetensors.index.json names, or without an index every *.safetensors in the folder.
// Experts may be stacked ("experts.gate_up_proj", or "switch_mlp.up_proj.weight" as MLX has them) or one by one
// ("experts.7.up_proj.weight"), decided layer by layer; an n-gram table in shards or whole; expert_weights() and
// ngram_table() hide which. What format a matrix has is told by its dtype and the tensors beside it (ckpt/formats.h),
// matrix by matrix: what the config says of modules and formats is not needed, and often wrong. A head is there when
// any of its tensors is, and then all of them must be. Tensors that the model has no use for are listed as ignored.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ckpt/config.h"
#include "tensor/weight.h"

namespace rondo {

// What a tensor is for, which says how it may be stored.
enum class TensorClass {
  Matrix,   // [out, in]: any format of tensor/coded_view.h, decided by what the files hold; read in place
  Vector,   // norms, A_log, dt_bias, convolutions: BF16, F16 or F32, widened to float32 when loaded
  Integers  // n-gram hash buffers: I64; a file may leave them out, as ngram_hash() computes the same
};

struct TensorSpec {
  std::string name;  // canonical
  Shape shape;
  TensorClass tensor_class;
};

// Every tensor that a model of this config consists of, with stacked experts ("...mlp.experts.gate_up_proj"); with the
// head's when has_mtp. The one inventory: files are checked against it and synthetic weights are made from it.
std::vector<TensorSpec> inventory(const ModelConfig& config, bool has_mtp);

// Weights by canonical name: files on disk, or made from a seed.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const ModelConfig& config() const = 0;
  virtual bool has_mtp() const = 0;
  // The tensor, whose class, shape and alignment open() has checked. nullopt for names outside the inventory, for
  // quantised matrices, and for the three kinds that may be stored otherwise or not at all: stacked experts, table
  // shards, Integers.
  virtual std::optional<Tensor> find(std::string_view name) const = 0;
  // The same for matrices, in whatever format.
  virtual std::optional<Weight> find_weight(std::string_view name) const {
    const auto tensor = find(name);
    return tensor ? std::optional<Weight>(*tensor) : std::nullopt;
  }
  // Whether the zero-centred norms' gains are stored with the one added (MLX): of the head's tensors, or the others'.
  virtual bool gains_hold_one(bool /*of_head*/) const { return false; }
  // Matrices and tables have shapes and addresses of their own, but nothing may read them: whoever places them on a GPU
  // makes up contents there.
  virtual bool is_hollow() const { return false; }
};

// One routed expert of one layer, any layout: gate and up [expert_size, hidden], down [hidden, expert_size].
struct ExpertWeights {
  Weight gate, up, down;
};
// prefix: "layers.3.mlp" or "mtp.layers.0.mlp". CHECKs that the source holds it.
ExpertWeights expert_weights(const WeightSource& source, const std::string& prefix, int expert);

// The n-gram table of one layer as one matrix or several, in row order: [rows, embed_dim / heads], their rows adding up
// to ngram_hash().padded_rows. CHECKs that the source holds it.
std::vector<Weight> ngram_table(const WeightSource& source, int layer);

struct Problem {
  std::string file;     // name inside the folder
  std::string message;  // names the tensor or key
  ErrorCode code = ErrorCode::Corrupt;
};

class Checkpoint final : public WeightSource {
 public:
  // Opens whatever is there and lists every problem; Result's error only when the folder itself cannot be read or
  // config.json is missing or unusable (then nothing else can be judged).
  static Result<Checkpoint> inspect(const std::string& folder);
  // The same, but the first problem is the error: what run and serve use.
  static Result<Checkpoint> open(const std::string& folder);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint() override;

  const ModelConfig& config() const override;
  bool has_mtp() const override;  // by the tensors, not by the config
  std::optional<Tensor> find(std::string_view name) const override;
  std::optional<Weight> find_weight(std::string_view name) const override;
  bool gains_hold_one(bool of_head) const override;

  const std::vector<Problem>& problems() const;
  const GenerationDefaults& generation_defaults() const;
  bool has_tokenizer() const;      // tokenizer.json is there
  bool has_chat_template() const;  // chat_template.jinja, or chat_template in tokenizer_config.json
  const std::string& folder() const;
  std::uint64_t mapped_bytes() const;  // of all shards
  // Every tensor found, in the order of the files: for inspect.
  struct Entry {
    std::string name, file;
    DType dtype;
    Shape shape;
    std::uint64_t size_bytes;
    bool used;                 // by the model, and sound; else ignored, or what a problem is about
    std::string format;        // of a matrix with its scales, or the dtype; empty for what belongs to another entry
    std::uint64_t num_values;  // parameters it holds; 0 for scales, biases and hash buffers
  };
  std::vector<Entry> entries() const;
  std::vector<std::string> unread_files() const;  // *.safetensors that the index does not name

 private:
  struct Files;
  explicit Checkpoint(std::unique_ptr<Files> files);
  std::unique_ptr<Files> files_;
};

// Weights from a seed in a published shape, no file: for benches. Known names: qwen3.5-0.8b, qwen3.8-27b,
// qwen3.5-35b-a3b, qwen3.8-flash-next (whose n-gram table is a tenth of the published one: what a token reads of it is
// the same). InvalidArgument for another name, Io where there is no memory for it.
//
//   format    experts, shared expert, dense MLP    projections of attention and Gated DeltaNet, lm_head
//   Nvfp4     NVFP4                                 FP8 with one scale
//   Fp8       FP8 in blocks of 128 x 128            the same
//   Affine4   4 bits in groups of 64                the same
//
// What is not named there (router, in_proj_a and b, hyper-connections, indexer, n-grams, embedding) is bf16.
enum class SyntheticFormat { Bf16, Nvfp4, Fp8, Affine4 };
Result<SyntheticFormat> synthetic_format(std::string_view name);  // "bf16", "nvfp4", "fp8", "affine4"
struct SyntheticOptions {
  SyntheticFormat format = SyntheticFormat::Bf16;
  std::uint64_t seed = 1;
  int num_layers = 0;      // the first so many; 0 = all
  bool is_hollow = false;  // WeightSource::is_hollow: sizes no host has memory for
};
Result<ModelConfig> synthetic_config(std::string_view shape_name);
Result<std::unique_ptr<WeightSource>> make_synthetic(std::string_view shape_name, const SyntheticOptions& options);
// The same for any shape: each value depends on (seed, tensor's name, index) alone. CHECKs that there is memory.
std::unique_ptr<WeightSource> make_synthetic(const ModelConfig& config, bool has_mtp, std::uint64_t seed);

}  // namespace rondo
