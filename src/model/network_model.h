// NetworkModel: the contract of model/model.h over a network, on a CPU or a GPU: what differs is where a batch is
// staged and who draws. network_model.cpp has slots, windows and rows, draws.cpp the draws, drafting.cpp the drafting
// pass, states.cpp exact states, timing.cpp the costs timed at load.
#pragma once

#include <span>
#include <vector>

#include "model/reservation.h"
#include "ops/pointwise/pointwise.h"
#include "ops/sample/draw_rows.h"

namespace rondo {

class NetworkModel final : public Model {
 public:
  NetworkModel(std::unique_ptr<Reservation> reservation, const WeightSource& source, ThreadPool& pool,
               const ModelOptions& options);

  const ModelFacts& facts() const override { return facts_; }
  const MemoryPlan& plan() const override { return reservation_->memory_plan(); }
  void prefill(std::span<const Slice> slices) override;
  Verified verify(std::span<const Window> windows) override;
  void commit(std::span<const Kept> kept) override;
  std::span<const Drawn> draft_first(std::span<const DraftStream> streams) override;
  std::span<const Drawn> draft_next(std::span<const int> still_drafting) override;
  int waiting_rows(int slot) const override {
    return static_cast<int>(slots_[static_cast<std::size_t>(slot)].waiting_ids.size());
  }
  void release(int slot) override;
  SavedState save(int slot, int state) override;
  void restore(int slot, int state, std::span<const std::int32_t> from, std::span<const std::int32_t> to) override;
  void forget(int state) override;
  CostTables time_costs(std::span<const std::int32_t> text, double budget_ms) override;
  double waited_ms() const override { return stream_.waited_ms(); }

 private:
  // One sequence's place: where it stands, what its last window left to be decided, and what its head still has to
  // read.
  struct Slot {
    int next_pos = 0;
    int fold = 0;                           // logged rows that the next span folds in
    int open_rows = 0, open_certain = 0;    // of a window that awaits its commit; 0 = none
    int open_first_row = 0;                 // its first row in the last forward's hidden states
    std::vector<std::int32_t> recent;       // the last committed ids an n-gram can reach, oldest first
    std::vector<std::int32_t> open_ids;     // the open window's
    std::vector<std::int32_t> waiting_ids;  // the token after each row whose hidden state waits in the slot's buffer
    int head_first = 0;                     // positions before it are not in the head's cache
    int head_next = 0;                      // position of the first waiting row
    bool has_last = false;                  // one more row waits behind them, whose next token is not known yet
    int absorbed_last = 0;                  // none waits: where in the buffer the last row that was absorbed still lies
    std::int32_t draft_token = 0;           // the drafting pass: last token drafted
    int draft_pos = 0;                      // and the position of the row that reads it
  };

  // What a place of the prefix cache holds beside the floats in the reservation.
  struct State {
    SavedState saved;
    std::vector<std::int32_t> recent, waiting_ids;
    int head_first = 0, head_next = 0;
  };

  Slot& slot(int index) { return slots_[static_cast<std::size_t>(index)]; }
  int reach() const { return std::max(0, reservation_->network().ngram_size() - 1); }
  float* hidden_row(int row) const;
  float* waiting_row(int slot, int index) const;
  void copy_row(const float* from, float* to);  // when run_copies comes, together with others
  void run_copies();

  // network_model.cpp, draws.cpp
  void begin_batch();
  void add_rows(int slot_index, int start_pos, std::span<const std::int32_t> ids, int certain,
                std::span<const std::int32_t> blocks);
  void hash_history(const Slot& of, std::span<const std::int32_t> ids);
  void remember(Slot& to, std::span<const std::int32_t> ids) const;
  Batch stage_batch();
  void forward(const Batch& batch);
  std::span<const std::int32_t> stage_logit_rows(std::span<const std::int32_t> rows);
  void draw_tokens(std::span<const Window> windows);
  void draw_on_gpu(std::span<const Window> windows);
  void stage_draws(std::span<const Window> windows);
  void stage_drafts(std::span<const int> streams);
  DrawRow draft_row(std::size_t stream);
  void draw_drafts(std::span<const int> streams, Tensor logits);
  void queue_draws(Tensor logits, const std::int32_t* ids);
  std::span<const DrawnRow> fetch_draws(Tensor logits);
  std::span<const float> download_logits(Tensor row);
  std::span<Candidate> likeliest_of(std::size_t row);
  bool tell(std::size_t row, int num_top);
  RowShaping shaping() const;
  DrawRoom draw_room(int part) const;

  // states.cpp
  void settle(int slot_index);
  bool head_follows(const Slot& of) const;
  template <class Copy>
  void for_saved_rows(int slot_index, int state_index, Copy copy) const;
  float* head_rows_of(int state_index) const;
  void save_head(int slot_index, State& to, float* rows);
  void restore_head(int slot_index, const State& from, const float* rows);

  // drafting.cpp
  void keep_waiting(int slot_index, const float* hidden, std::int32_t next_token);
  void drop_oldest_waiting(int slot_index);
  void forget_waiting(int slot_index, int count);
  void absorb_waiting(const Slice& slice);
  void absorb_prompt(std::span<const Slice> slices);
  void add_head_row(const float* hidden, std::int32_t id);
  void add_head_span(int slot_index, int start_pos, int count, std::span<const std::int32_t> blocks);
  void head_forward(const Batch& batch);
  void run_head_batch();
  void absorb_ahead(const DraftStream& stream);
  void absorb_group(std::span<const DraftStream> streams, std::size_t begin, std::size_t end);
  void finish_level(std::span<const int> streams);

  // timing.cpp
  // Of the batch that is staged, for Stream::as_one: passes of as many rows in as many spans queue nearly the same.
  enum class Pass : std::uint64_t { Verify = 1, Head = 2 };
  std::uint64_t shape(Pass pass) const {
    return static_cast<std::uint64_t>(pass) << 62 | static_cast<std::uint64_t>(rows_) << 31 | spans_.size();
  }
  void make_graphs();
  double time_verify(int rows, int streams, int context, std::span<const std::int32_t> text);
  double time_absorb(int rows, int streams, std::span<const std::int32_t> text);
  double time_level(int streams);
  void stand_at(int position);
  std::span<const std::int32_t> timing_blocks(int slot_index) const;  // outlives the calls: a drafting pass keeps it
  void fill_caches();

  std::unique_ptr<Reservation> reservation_;
  ModelFacts facts_;
  Stream stream_;
  int index_block_;  // head_first is a multiple of it
  std::vector<Slot> slots_;
  std::vector<State> states_;
  std::vector<std::int32_t> history_;  // one sequence's recent ids and its new ones
  std::vector<RowSpan> spans_;
  int rows_ = 0;
  std::vector<std::int32_t> logit_rows_;
  std::vector<RowCopy> copies_;
  std::vector<std::int32_t> tokens_;
  std::vector<RowLogprobs> logprobs_;
  std::vector<std::int32_t> timing_blocks_;
  // the drafting pass
  std::vector<DraftStream> drafting_;
  std::vector<Drawn> drafts_;          // [streams of the pass] the last draft of each
  std::vector<std::int32_t> drafted_;  // [streams, max_drafts] all of them, for penalties
  std::vector<int> num_drafted_, absorb_rows_, group_ends_, head_rows_, all_streams_;
};

}  // namespace rondo
