// Loader: weights by name as the modules want them, and the memory they and the sequences' state live in.
//
// The same walk over the modules runs twice: first with arenas that only count, which is the plan, then with the
// reserved buffers, which fills them. So the plan cannot forget what the model takes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ckpt/checkpoint.h"
#include "device/upload.h"
#include "model/model.h"
#include "ops/moe/moe.h"
#include "tensor/arena.h"

namespace rondo {

// The four kinds of memory that are reserved.
struct Arenas {
  Arena weights;  // vectors widened to f32, matrices that had to be re-laid; on a GPU every weight
  Arena kv;       // KV blocks, index keys
  Arena slots;    // recurrent state, logs
  Arena tables;   // rope
};

// Where the sequences' past lies, for who copies it.
struct Past {
  std::vector<Tensor> slots;   // [slots, ...] recurrent state, without what is logged
  std::vector<Tensor> blocks;  // [blocks, ...] KV and index keys
};

class Loader {
 public:
  // upload: to a GPU's memory; null where the ops read the host's.
  Loader(const WeightSource& source, const ModelOptions& options, Arenas& arenas, Upload* upload)
      : source_(source), options_(options), arenas_(arenas), upload_(upload) {}

  const ModelConfig& config() const { return source_.config(); }
  const ModelOptions& options() const { return options_; }
  const WeightSource& source() const { return source_; }
  Arenas& arenas() { return arenas_; }
  const Past& past() const { return past_; }
  Tensor slot_state(Shape shape);                // f32 [slots, ...] that a sequence's exact state is made of
  Tensor block_state(DType dtype, Shape shape);  // [blocks, ...]
  DType kv_dtype() const { return on_gpu() ? DType::BF16 : DType::F32; }

  Weight matrix(const std::string& name);  // [out, in], where it lies, or on the GPU
  Weight placed(const Weight& weight);     // the same for a weight of the source; one copy however often
  // A table made at load: write gets it as the host sees it.
  Tensor table(DType dtype, Shape shape, const std::function<void(Tensor)>& write);
  Tensor vector(const std::string& name);      // f32 [n]
  Tensor gain(const std::string& name);        // f32 [n]: 1 + w, as norm A stores it (or w, where the file added the 1)
  Tensor decay_rate(const std::string& name);  // f32 [n]: -exp(A_log)
  Tensor conv_weight(const std::string& name);  // f32 [kernel, channels] from [channels, 1, kernel]
  // [rows.size(), in]: the named matrix's rows in that order (qwen3_next's interleaved projections), in its format.
  // Rows that shared scales have their own.
  Weight matrix_rows(const std::string& name, const std::vector<std::int64_t>& rows);
  GatedMlpWeights gated_mlp(const std::string& prefix);            // prefix.{gate,up,down}_proj.weight
  Tensor tensor_scales(std::span<const GatedMlpWeights> experts);  // as MoeWeights wants them; none on a CPU
  std::uint64_t row_bytes() const { return row_bytes_; }
  void count_row_bytes(std::uint64_t bytes) { row_bytes_ += bytes; }

 private:
  bool on_gpu() const { return options_.isa == Isa::Sm90; }
  const std::uint8_t* copied(const std::uint8_t* from, std::uint64_t bytes);
  void make_up(const Weight& weight);
  const std::uint8_t* copied_rows(const std::uint8_t* from, std::int64_t row_bytes, std::size_t rows,
                                  const std::function<std::int64_t(std::size_t)>& row_of);
  void fill(const Arena& arena, Tensor out, const std::function<void(Tensor)>& write);
  template <class Convert>
  Tensor widened(const std::string& name, Convert convert);

  const WeightSource& source_;
  const ModelOptions& options_;
  Arenas& arenas_;
  Upload* upload_;
  std::uint64_t made_up_ = 0;
  std::map<const void*, Weight> placed_;  // by where the source has its codes
  Past past_;
  std::uint64_t row_bytes_ = 0;
};

}  // namespace rondo
