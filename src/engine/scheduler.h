// Scheduler: which requests are sequences, and which rows a round runs. Bookkeeping only: it touches no model, and
// nothing it decides can change what a sequence says.
//
// A request is admitted when a slot and the blocks of its whole window (prompt + max_tokens) are free, first come first
// served; until then it waits. A round takes the sequences least recently served first, as far as the rows go: a
// sequence that decodes has one pending row; a short prompt joins with all its rows as certain rows; a longer one is
// filled by slices before the round.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "cache/block_pool.h"
#include "engine/sequence.h"
#include "model/model.h"

namespace rondo {

struct RoundPlan {
  struct Rows {
    Sequence* sequence;
    int count;       // of its pending rows, from the first
    int drafts = 0;  // of a window: held drafts that are verified with them
  };
  std::vector<Rows> slices;   // prompt rows, nothing drawn
  std::vector<Rows> windows;  // verified: a token is drawn after the last row
  bool empty() const { return slices.empty() && windows.empty(); }
  void clear() {
    slices.clear();
    windows.clear();
  }
};

class Scheduler {
 public:
  Scheduler(const ModelFacts& facts, const Tokenizer* tokenizer);

  void enqueue(Submission submission) { waiting_.push_back(std::move(submission)); }
  void admit(Clock::Time now);
  RoundPlan& plan_round();
  // Ends a sequence or takes a waiting request out; its slot and blocks are free again. The slot that was freed, if
  // any.
  std::optional<int> cancel(RequestId id);
  std::optional<int> retire(Sequence* sequence);
  void fail_all(const Error& error);

  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  int num_filling() const;  // of the running ones, with no token yet
  int num_blocks_held() const { return blocks_.num_blocks() - blocks_.num_blank(); }
  std::uint64_t num_ended() const { return num_ended_; }  // requests finished, cancelled or failed so far
  int blocks_for(const Request& request) const;

 private:
  void free_place(Sequence& sequence);

  const ModelFacts facts_;
  const Tokenizer* tokenizer_;
  BlockPool blocks_;
  std::vector<int>
      free_slots_;  // falling: the lowest goes first, so that a row of requests walks through memory in order
  std::deque<Submission> waiting_;
  std::list<std::unique_ptr<Sequence>> running_;  // least recently served first
  RoundPlan plan_;
  std::uint64_t num_ended_ = 0;
};

}  // namespace rondo
