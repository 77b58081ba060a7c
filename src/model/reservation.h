// Reservation: a network with everything it needs in memory, all of it reserved before the first row and none of it
// growing.
#pragma once

#include <memory>

#include "model/network.h"

namespace rondo {

constexpr int kHeadBufferRows = 64;  // hidden states a slot keeps for the head before the oldest go

// What the host says of a batch. There are two of it, as the host writes it and as the ops read it, laid out alike; on
// a CPU they are one.
struct Staged {
  Tensor ids;          // i32 [max_rows]
  Tensor rows;         // i32 [max_logit_rows] whose logits are wanted
  Tensor draws;        // bytes [max_logit_rows * sizeof(DrawKey)] how those rows draw, on a GPU
  Tensor span_of_row;  // i32 [max_rows]
  Tensor spans;        // bytes [slots * sizeof(RowSpan)]
  Tensor blocks;  // i32 [slots * blocks of the context] the spans' tables, one after the other; last, as few are used
  // What is above goes to a GPU in one copy. What rows are shaped with before they are drawn there, each by itself and
  // where there is any:
  Tensor shifts;  // bytes [slots * Shifts::kMost * sizeof(Shift)]
  Tensor masks;   // i32 [max_logit_rows, vocab / 32] a bit a token
  // And what the n-gram table has for the rows, which the host reads where the table lies: it need not fit a GPU.
  Tensor ngram_vectors;  // f32 [max_rows, embed_dim]
};

// What a forward works in and what it leaves behind.
struct Workspace {
  Staged host, device;
  Tensor hidden;     // f32 [max_rows, hidden_width] of the last forward
  Tensor logits;     // f32 [max_logit_rows, vocab]
  Tensor drawn;      // bytes [max_logit_rows * sizeof(DrawnRow)] on a GPU
  Tensor likely;     // bytes [max_logit_rows * sizeof(LikelyRow)] the likeliest tokens of rows that want them, on a GPU
  Tensor told;       // bytes [max_logit_rows * sizeof(ToldRow)] what logprobs need, likewise
  Tensor draw_room;  // bytes: what drawing on a GPU works in
  // Of the host:
  Tensor candidates;   // bytes [threads, vocab * sizeof(Candidate)]: room to draw in
  Tensor shaped;       // f32 [threads, vocab], likewise
  Tensor seen;         // i32 [threads, vocab / 32]: a bit a token, likewise
  Tensor drawn_here;   // `drawn`, downloaded
  Tensor likely_here;  // `likely`, downloaded
  Tensor told_here;    // `told`, downloaded
  Tensor logits_here;  // f32 [vocab] a row, downloaded
  Tensor places;       // i32 [vocab], all 0: where a token is in a list of shifts, while that is made
  Tensor ngram_rows;   // i64 [max_rows, heads] of the n-gram table
  // With a head:
  Tensor waiting;       // f32 [slots, kHeadBufferRows, hidden_width] committed rows it has yet to read
  Tensor head_in;       // f32 [max_rows, hidden_width] of its last pass
  Tensor head_out;      // f32 [max_rows, hidden_width]
  Tensor chain;         // f32 [slots, hidden_width] what each drafting stream's next level reads
  Tensor draft_logits;  // f32 [slots, draft_vocab]
};

class Reservation {
 public:
  // Counts, reserves and fills; with `network()` ready to run. source outlives it. NotFound where options.isa is a
  // GPU's and there is none.
  static Result<std::unique_ptr<Reservation>> make(const WeightSource& source, ThreadPool& pool,
                                                   const ModelOptions& options, const Progress& progress = {});
  static MemoryPlan plan(const WeightSource& source, ThreadPool& pool, const ModelOptions& options);

  Stream stream(ThreadPool& pool) const { return stream_on(pool, isa_, queue_); }
  const Network& network() const { return *network_; }
  // What the table has for the first `rows` of workspace().ngram_rows; before the batch is staged. None without a
  // table.
  Tensor stage_ngrams(Stream& s, int rows) const;
  // The first `rows` ids of workspace().host, and these spans, as a batch the ops can read. What it says is good until
  // the next call.
  Batch stage(Stream& s, int rows, std::span<const RowSpan> spans) const;
  // workspace().host may be written again: what was staged before has been read.
  void begin_staging(Stream& s) const { s.wait_for_mark(); }
  const Workspace& workspace() const { return workspace_; }
  const MemoryPlan& memory_plan() const { return plan_; }
  Scratch scratch() { return Scratch(scratch_buffer_, &scratch_peak_bytes_); }
  const Past& past() const { return past_; }
  // Place of one state of the prefix cache: [the slot tensors' rows, one after the other | waiting rows].
  std::span<float> state(int index) const;
  std::uint64_t kv_bytes() const { return kv_.size_bytes(); }
  std::uint64_t slot_bytes() const { return slots_.size_bytes(); }
  std::uint64_t state_bytes() const { return state_floats_ * sizeof(float); }

  static int max_logit_rows(const ModelOptions& options);

 private:
  Reservation() = default;
  Isa isa_ = Isa::Reference;
  std::shared_ptr<CudaQueue> queue_;  // before the buffers: they are of its GPU
  MemoryPlan plan_;
  Buffer staged_host_, staged_device_, host_buffer_;
  Buffer weights_, kv_, slots_, tables_, states_, workspace_buffer_, scratch_buffer_;
  Past past_;
  std::uint64_t state_floats_ = 0;
  std::size_t scratch_peak_bytes_ = 0;
  Workspace workspace_;
  std::unique_ptr<Network> network_;
};

}  // namespace rondo
