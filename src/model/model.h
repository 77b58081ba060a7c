// Model: the contract between engine and model, all in rows and positions; it knows no request.
//
// A *slot* is the place of one sequence's recurrent state; its KV lives in blocks the engine assigns. Round by round
// the engine calls verify (one forward over every window), commit (how many rows of each window stay), draft_first and
// draft_next (the drafting pass: absorb, then level by level); prompts go through prefill. Positions are checked
// strictly: a slot's next row must be the one after its last committed row, and a window must be committed before the
// slot is used again; anything else is a CHECK. A slot starts anew at position 0.
//
// The head reads rows the target has committed: their hidden states wait in a buffer of the slot until a drafting pass
// absorbs them. A full buffer lets its oldest rows go; the head's cache then begins after them (drafts get worse, text
// does not change).
//
// save keeps a slot's exact state, restore brings it back in another slot, where it goes on as if its rows had just run
// there: recurrent state, convolution windows and n-gram history by copy, KV and index keys by reference to their
// blocks as far as these are final, the rest of them by copy.
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
  int grid = 1;  // 1 = one arithmetic. Else whole cells of `grid` positions of a prompt have a form of their own:
                 // slices begin on the grid and end on it or in the prompt's last, incomplete cell; states are saved on
                 // it, while the prompt is filled
  bool has_head = false;               // an MTP head is loaded
  std::uint64_t bytes_per_token = 0;   // KV and index keys
  std::uint64_t bytes_per_stream = 0;  // recurrent state and logs
  int num_states = 0;                  // places for saved states; 0 = save and restore are not to be called
  std::uint64_t bytes_per_state = 0;
  int draft_vocab_size = 0;  // ids the head scores
  int head_buffer_rows =
      0;  // hidden states a slot keeps for the head; a window with more certain rows than this is refused
  std::uint64_t weight_bytes_per_row = 0;  // read for one row: a forward of one row cannot be faster than this
};

// Prompt rows: all of them stay, no token is drawn.
struct Slice {
  int slot;
  int start_pos;
  std::span<const std::int32_t> ids;
  std::span<const std::int32_t> blocks;  // KV block of each block_tokens positions up to the last row
  bool feeds_head;  // the head reads these rows too, all but the last, whose next token is not known yet
};

// One sequence's rows in a verify forward: `certain` rows that stay (the last of them is the pending token), then
// drafts.
struct Window {
  int slot;
  int start_pos;
  std::span<const std::int32_t> ids;
  int certain;
  std::span<const std::int32_t> blocks;
  const DrawSettings* draw;
  std::span<const std::int32_t>
      generated;                     // every token the sequence generated so far, the pending one included; drafts not
  std::span<const TokenMask> masks;  // of each drawn row: 1 + drafts of them, or none at all
  int num_top_logprobs;              // -1 = no logprobs
};

// What verify drew: for each window in turn, the token after its last certain row and after each draft, 1 + drafts
// tokens a window. logprobs: as many, filled where the window asked. Good until the next call.
struct Verified {
  std::span<const std::int32_t> tokens;
  std::span<const RowLogprobs> logprobs;
};

// Rows of the slot's last window that stay, the certain ones included, and the token that follows the last of them.
struct Kept {
  int slot;
  int rows;
  std::int32_t next_token;
  bool feeds_head;  // keep the rows' hidden states for the head
};

// A sequence that drafts in this pass.
struct DraftStream {
  int slot;
  const DrawSettings* draw;
  std::span<const std::int32_t> generated;  // as in Window
  std::span<const std::int32_t> blocks;
};

// What save kept. Positions before shared_tokens (a multiple of block_tokens) are final, for target and head: their
// blocks may stand in other sequences' tables, too, and nobody writes them again. Those of the blocks after them, up to
// `tokens`, stay as they are as long as the block is held, but the sequence goes on writing behind them.
struct SavedState {
  int tokens = 0;  // committed rows
  int shared_tokens = 0;
  bool has_head = false;  // the head has followed: a sequence that feeds it may go on from here
};

// Milliseconds, timed at load; indexed by rows or streams from 0 to the most there can be. Empty = not timed, `why`
// says why.
struct CostTables {
  int context_tokens[2] = {0, 0};
  std::vector<double> verify_ms[2];  // [rows] a shared forward, at each of the two context lengths
  std::vector<double> absorb_ms;     // [rows] the head over kept rows, to the first drafts
  std::vector<double> level_ms;      // [streams] one deeper level
  std::string why;                   // what was left out, in words; empty when all was timed as meant
  bool priced() const { return !verify_ms[0].empty(); }
};

struct ModelOptions {
  int context_tokens = 4096;
  int max_streams = 1;
  int max_rows = 256;  // the widest forward; prompts are cut to it
  int max_drafts = 8;
  Isa isa = best_isa();
  bool has_head = true;  // false: an MTP head is left out
  int cache_states = 0;  // of the prefix cache: places for states,
  int cache_blocks = 0;  // and KV blocks beyond the streams' own
  std::vector<std::int32_t>
      draft_extra;  // ids the draft vocabulary holds besides its first kDraftVocab: the added tokens
};
constexpr int kDraftVocab = 32'768;  // ids of a byte-level BPE come by frequency

// done and total bytes of what is being done.
using Progress = std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)>;

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelFacts& facts() const = 0;
  virtual const MemoryPlan& plan() const = 0;

  virtual void prefill(std::span<const Slice> slices) = 0;
  virtual Verified verify(std::span<const Window> windows) = 0;
  virtual void commit(std::span<const Kept> kept) = 0;

  // The head absorbs every stream's waiting rows in one pass and drafts one token for each; then, level by level, one
  // more for each stream named by its index in `streams` (ascending). Drafts are good until the next call.
  virtual std::span<const Drawn> draft_first(std::span<const DraftStream> streams) = 0;
  virtual std::span<const Drawn> draft_next(std::span<const int> still_drafting) = 0;
  virtual int waiting_rows(int slot) const = 0;  // rows draft_first would absorb

  virtual void release(int slot) = 0;

  // The slot's committed rows into place `state` (over what it held); no window may be open. A state saved after a
  // sequence's last window may be restored where another token follows than the one that was drawn.
  virtual SavedState save(int slot, int state) = 0;
  // Into a released slot. from: the blocks of the sequence that was saved; to: of the slot's from now on, the same ones
  // before shared_tokens and others after it, which get copies. Both reach to the last row.
  virtual void restore(int slot, int state, std::span<const std::int32_t> from, std::span<const std::int32_t> to) = 0;
  virtual void forget(int state) = 0;  // the place holds nothing

  // Times forwards and head levels on slots that hold nothing, at most for about `budget_ms`; once, before any
  // sequence.
  virtual CostTables time_costs(std::span<const std::int32_t> text, double budget_ms) = 0;

  // Milliseconds that calls have waited for a device so far; what else a round takes is the host's. 0 where the host
  // computes itself.
  virtual double waited_ms() const { return 0; }
};

// The plan by line item, before anything is reserved or read.
MemoryPlan plan_memory(const WeightSource& source, ThreadPool& pool, const ModelOptions& options);

// Sets cache_states and cache_blocks to what `bytes` hold, half of them states; 0 = no prefix cache. InvalidArgument,
// naming what is needed at least, when that is more.
Result<void> fit_cache(const WeightSource& source, ThreadPool& pool, std::uint64_t bytes, ModelOptions& options);

// Reads the weights in, reserves and touches everything of the plan. source and pool outlive the model. InvalidArgument
// when the options cannot be (a context beyond the model's own, no row); Io when the memory is not to be had.
Result<std::unique_ptr<Model>> load_model(const WeightSource& source, ThreadPool& pool, const ModelOptions& options,
                                          const Progress& progress);

}  // namespace rondo
