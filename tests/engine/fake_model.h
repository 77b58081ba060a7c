// FakeModel: a model for tests of the engine. Its next token is a hash of the whole history as it reads it back, the
// keyed position, the draw's settings, the penalties' view and the mask: any slip of position, rollback, row, block or
// key changes the text. What the contract forbids is a CHECK.
//
// A history is kept twice, as real models do: in the cells of KV blocks, and as a running hash in the slot that moves
// with committed rows only. Every forward holds one against the other. A cell knows how many slots and saved states
// rely on it: nobody may write to one that is relied upon. The same goes for the head's own cells.
#pragma once

#include <algorithm>

#include "model/model.h"
#include "tests/engine/fake_clock.h"

namespace rondo::test {

struct FakeOptions {
  int context_tokens = 64;
  int max_streams = 4;
  int max_rows = 32;
  int max_drafts = 8;
  int block_tokens = 4;
  int num_blocks = 0;        // 0: enough for every stream
  int num_states = 0;        // places of the prefix cache
  int grid = 1;              // above 1: rows of whole cells have another form
  int head_buffer_rows = 6;  // rows that wait for the head, at most
  bool has_head = true;
  double head_right = 0.8;             // on average; a draft's own chance is hashed around it
  std::vector<std::int32_t> alphabet;  // the ids it draws from; empty: all
  int vocab_size = 304;
  CostTables costs;  // what its calls take on the clock; empty: a millisecond each
};

// Of one draw, all that may change it.
struct FakeDraw {
  std::uint64_t history;  // hash of every token up to the row's own
  std::int64_t position;  // of the token drawn
  const DrawSettings* settings;
  std::span<const std::int32_t> generated, drafted;
  TokenMask mask;
};

class FakeModel final : public Model {
 public:
  FakeModel(FakeOptions options, FakeClock& clock);

  const ModelFacts& facts() const override { return facts_; }
  const MemoryPlan& plan() const override { return plan_; }
  void prefill(std::span<const Slice> slices) override;
  Verified verify(std::span<const Window> windows) override;
  void commit(std::span<const Kept> kept) override;
  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override;
  std::span<const Drawn> draft_next(std::span<const int> still_drafting) override;
  int waiting_rows(int slot) const override {
    return static_cast<int>(std::ranges::count_if(slots_[static_cast<std::size_t>(slot)].waiting,
                                                  [](const WaitingRow& row) { return row.next_token >= 0; }));
  }
  void release(int slot) override;
  SavedState save(int slot, int state) override;
  void restore(int slot, int state, std::span<const std::int32_t> from, std::span<const std::int32_t> to) override;
  void forget(int state) override;
  CostTables time_costs(std::span<const std::int32_t>, double) override { return options_.costs; }

  // The oracle, without slots or blocks.
  static std::uint64_t next_history(std::uint64_t history, std::int32_t token);
  std::int32_t drawn_token(const FakeDraw& draw) const;
  static RowLogprobs logprobs_of(std::uint64_t history, std::int32_t chosen, int num_top);

  int forwards = 0, head_passes = 0, windows_seen = 0, restores = 0;
  std::uint64_t rows_run = 0;
  void set_head_right(double chance) { options_.head_right = chance; }
  int num_held_slots() const;  // slots with any row
  bool nothing_is_relied_on() const;
  bool plant_neighbour = false;       // a fault: every draw hangs on the neighbouring slot, too
  bool plant_shared_too_far = false;  // a state says that the block it ends in may be shared
  bool plant_early_state = false;     // a state is taken before the last row
  int fails_at = -1;                  // the call (prefill, verify, commit, draft, save, restore; from 0) that throws
  int calls = 0;

 private:
  struct Cell {
    int position = -1;
    std::int32_t token = -1;
    std::uint64_t history = 0;  // up to it
    int readers = 0;            // slots and states that rely on it
  };
  struct WaitingRow {
    int position;
    std::uint64_t history;    // stands for its hidden state
    std::int32_t next_token;  // -1: not known yet, of the last
  };
  struct HeadCell {
    WaitingRow row{-1, 0, -1};
    int readers = 0;
  };
  // What a sequence is, apart from its cells; a state is a copy of it.
  struct Past {
    int next_pos = 0;
    std::uint64_t history = 0;  // of the committed rows
    std::vector<std::int32_t> blocks;
    int head_first = 0, head_next = 0;  // positions in the head's cells
    std::vector<WaitingRow> waiting;
  };
  struct Slot : Past {
    std::vector<std::uint64_t> open_history;  // after each row of a window that awaits its commit
    std::vector<std::int32_t> open_ids;
    int open_certain = 0;
    bool feeds_head = false, feeds_known = false;
    WaitingRow absorbed_last{-1, 0, -1};
    // the drafting pass
    std::uint64_t draft_history = 0;
    std::vector<std::int32_t> drafted;
  };
  struct State : Past {
    SavedState saved;
  };

  Slot& slot(int index);
  void call();
  void rely(const Past& on, int begin, int end, int more);
  void rely_head(const Past& on, int begin, int end, int more);
  void write_head(Slot& of, const WaitingRow& row);
  void absorb(Slot& of);
  std::uint64_t row_history(std::uint64_t history, std::int32_t token, bool in_cell) const;
  void begin_forward();
  void run_rows(int slot_index, int start_pos, std::span<const std::int32_t> ids, std::span<const std::int32_t> blocks,
                bool is_slice);
  std::uint64_t read_back(std::span<const std::int32_t> blocks, int end);
  std::size_t cell_index(std::span<const std::int32_t> blocks, int position) const;
  Cell& cell(std::span<const std::int32_t> blocks, int position);
  void set_feeds_head(Slot& of, bool feeds);
  void keep_waiting(Slot& of, WaitingRow row);
  Drawn guess(const DraftStream& stream, Slot& of);
  double cost(const std::vector<double>& ms, int index) const;

  FakeOptions options_;
  FakeClock& clock_;
  ModelFacts facts_;
  MemoryPlan plan_;
  std::vector<Slot> slots_;
  std::vector<State> states_;
  std::vector<Cell> cells_;
  std::vector<HeadCell> head_cells_;
  std::vector<int> used_;  // slots of this forward
  int rows_ = 0;
  std::vector<std::uint64_t> row_history_;  // after each row of this forward
  std::vector<std::int32_t> tokens_;
  std::vector<RowLogprobs> logprobs_;
  std::vector<DraftStream> drafting_;
  std::vector<Drawn> drafts_;
  std::vector<int> deepest_;  // streams that drafted at the last level
};

}  // namespace rondo::test
