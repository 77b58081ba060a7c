// Model: the contract between engine and model, all in rows and positions; it knows no request.
//
// A *slot* is the place of one sequence's recurrent state; its KV lives in blocks the engine assigns. The engine calls,
// round by round: prefill (prompt rows), verify (one forward over every window), commit (how many rows of each window
// stay). Positions are checked strictly: a slot's next row must be the one after its last committed row, and a window
// must be committed before the slot is used again; anything else is a CHECK. A slot starts anew at position 0.
//
// Row law: a row's bits depend on its own sequence alone. One arithmetic: a prompt row = a decoded row, however it was
// sliced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ckpt/checkpoint.h"
#include "device/memory.h"
#include "device/stream.h"
#include "ops/sample/draw.h"

namespace rondo {

// Known once the model is loaded.
struct ModelFacts {
  std::string arithmetic;  // backend and instruction set: "cpu/avx512"
  int vocab_size = 0;
  int context_tokens = 0;  // of one sequence
  int max_streams = 0;     // slots
  int max_rows = 0;        // of one forward, over all its slices or windows
  int max_drafts = 0;      // uncertain rows of one window
  int block_tokens = 0;    // positions a KV block
  int num_blocks = 0;
  int grid = 1;                            // prompt form lies on multiples of this; 1 = one arithmetic
  bool has_head = false;                   // an MTP head is loaded
  std::uint64_t bytes_per_token = 0;       // KV and index keys
  std::uint64_t bytes_per_stream = 0;      // recurrent state and logs
  std::uint64_t weight_bytes_per_row = 0;  // read for one row: what a forward of one row cannot be faster than
};

// Prompt rows: all of them stay, no token is drawn.
struct Slice {
  int slot;
  int start_pos;
  std::span<const std::int32_t> ids;
  std::span<const std::int32_t> blocks;  // KV block of each block_tokens positions up to the last row
};

// One sequence's rows in a verify forward: `certain` rows that stay (the last of them is the pending token), then
// drafts.
struct Window {
  int slot;
  int start_pos;
  std::span<const std::int32_t> ids;
  int certain;
  std::span<const std::int32_t> blocks;
  DrawSettings draw;
};

// Rows of the slot's last window that stay, the certain ones included.
struct Kept {
  int slot;
  int rows;
};

struct ModelOptions {
  int context_tokens = 4096;
  int max_streams = 1;
  int max_rows = 256;  // the widest forward; prompts are cut to it
  int max_drafts = 8;
  Isa isa = best_isa();
};

// done and total bytes of what is being done.
using Progress = std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)>;

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelFacts& facts() const = 0;
  virtual const MemoryPlan& plan() const = 0;

  virtual void prefill(std::span<const Slice> slices) = 0;
  // For each window in turn, the token drawn after its last certain row and after each draft: 1 + drafts tokens a
  // window. The span is good until the next call.
  virtual std::span<const std::int32_t> verify(std::span<const Window> windows) = 0;
  virtual void commit(std::span<const Kept> kept) = 0;
  virtual void release(int slot) = 0;
};

// The plan by line item, before anything is reserved or read.
MemoryPlan plan_memory(const WeightSource& source, ThreadPool& pool, const ModelOptions& options);

// Reads the weights in, reserves and touches everything of the plan. source and pool outlive the model. InvalidArgument
// when the options cannot be (a context beyond the model's own, no row); Io when the memory is not to be had.
Result<std::unique_ptr<Model>> load_model(const WeightSource& source, ThreadPool& pool, const ModelOptions& options,
                                          const Progress& progress);

}  // namespace rondo
