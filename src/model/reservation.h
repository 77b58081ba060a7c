// Reservation: a network with everything it needs in memory, all of it reserved before the first row and none of it
// growing.
#pragma once

#include <memory>

#include "model/network.h"

namespace rondo {

constexpr int kHeadBufferRows = 64;  // hidden states a slot keeps for the head before the oldest go

// What a forward works in and what it leaves behind.
struct Workspace {
  Tensor ids;         // i32 [max_rows]
  Tensor ngram_rows;  // i64 [max_rows, heads]
  Tensor hidden;      // f32 [max_rows, hidden_width] of the last forward
  Tensor logits;      // f32 [max_logit_rows, vocab]
  Tensor candidates;  // bytes [threads, vocab * sizeof(Candidate)]: room to draw in
  Tensor seen;        // i32 [threads, vocab / 32]: a bit a token, likewise
  // With a head:
  Tensor waiting;       // f32 [slots, kHeadBufferRows, hidden_width] committed rows it has yet to read
  Tensor head_in;       // f32 [max_rows, hidden_width] of its last pass
  Tensor head_out;      // f32 [max_rows, hidden_width]
  Tensor chain;         // f32 [slots, hidden_width] what each drafting stream's next level reads
  Tensor draft_logits;  // f32 [slots, draft_vocab]
};

class Reservation {
 public:
  // Counts, reserves and fills; with `network()` ready to run. source outlives it.
  static Result<std::unique_ptr<Reservation>> make(const WeightSource& source, ThreadPool& pool,
                                                   const ModelOptions& options);
  static MemoryPlan plan(const WeightSource& source, ThreadPool& pool, const ModelOptions& options);

  const Network& network() const { return *network_; }
  const Workspace& workspace() const { return workspace_; }
  const MemoryPlan& memory_plan() const { return plan_; }
  Scratch scratch() { return Scratch(scratch_buffer_, &scratch_peak_bytes_); }
  std::span<float> kv_floats() const {
    return {reinterpret_cast<float*>(kv_.data()), kv_.size_bytes() / sizeof(float)};
  }
  const Past& past() const { return past_; }
  // Place of one state of the prefix cache: [the slot tensors' rows, one after the other | waiting rows].
  std::span<float> state(int index) const;
  std::uint64_t kv_bytes() const { return kv_.size_bytes(); }
  std::uint64_t slot_bytes() const { return slots_.size_bytes(); }
  std::uint64_t state_bytes() const { return state_floats_ * sizeof(float); }

  static int max_logit_rows(const ModelOptions& options);

 private:
  Reservation() = default;
  MemoryPlan plan_;
  Buffer weights_, kv_, slots_, tables_, states_, workspace_buffer_, scratch_buffer_;
  Past past_;
  std::uint64_t state_floats_ = 0;
  std::size_t scratch_peak_bytes_ = 0;
  Workspace workspace_;
  std::unique_ptr<Network> network_;
};

}  // namespace rondo
