// Scheduler: which requests are sequences, and which rows a round runs. Bookkeeping only: it touches no model, and
// nothing it decides can change what a sequence says.
//
// Admission. A request becomes a sequence when a slot and the blocks of its whole window (prompt + max_tokens) are to
// be had; blocks that only the prefix cache keeps are. First come first served, but a request whose blocks are not
// there lets others pass, a bounded number of them: then the rest wait behind it. A request whose prompt begins as that
// of a sequence still being filled waits until that one has come to where they part, and goes on from its state.
//
// A round takes every sequence that decodes, least recently served first. Of the rows that are left for prompts (all of
// a forward when nobody decodes, else as many as the stall bound allows) the sequence that has waited longest gets its
// share, then those that can start soonest. A short prompt joins the round with all its rows as certain rows; a longer
// one is filled by slices before it, cut where a state is to be saved.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "cache/block_pool.h"
#include "cache/prefix_cache.h"
#include "engine/sequence.h"
#include "model/model.h"

namespace rondo {

struct RoundPlan {
  struct Rows {
    Sequence* sequence;
    int count;       // of its pending rows: of a slice from the first, of a window those after the slice
    int drafts = 0;  // of a window: held drafts that are verified with them
  };
  std::vector<Rows> slices;   // prompt rows, nothing drawn; they run before the windows
  std::vector<Rows> windows;  // verified: a token is drawn after the last row
  bool empty() const { return slices.empty() && windows.empty(); }
  void clear() {
    slices.clear();
    windows.clear();
  }
};

struct SchedulerOptions {
  int least_shared_tokens = 16;  // a common beginning shorter than this is computed again
  int step_tokens = 512;         // states on the way through a prompt stand this far apart
};

class Scheduler {
 public:
  Scheduler(const ModelFacts& facts, const Tokenizer* tokenizer, SchedulerOptions options = {});

  void enqueue(Submission submission);
  struct Admitted {
    Sequence* sequence;
    std::optional<PrefixCache::Hit> hit;  // the state it goes on from: to be restored before anything else happens
  };
  std::optional<Admitted> admit_next(Clock::Time now);  // until there is none
  void reconsider() { reconsider_ = true; }             // something was saved: who waits for it may be admitted

  bool anyone_decodes() const;
  // prompt_rows: of the round at most, when anyone decodes.
  RoundPlan& plan_round(int prompt_rows);
  double mean_fill_context() const;  // positions behind those that are being filled

  Sequence* find(RequestId id) const;
  bool cancel_waiting(RequestId id);   // false: it does not wait
  void fail_expired(Clock::Time now);  // waiting ones are told; running ones are broken off
  void retire(Sequence* sequence);     // its slot and blocks are free again
  void fail_all(const Error& error);
  const std::list<std::unique_ptr<Sequence>>& running() const { return running_; }

  PrefixCache& cache() { return cache_; }
  const PrefixCache& cache() const { return cache_; }
  bool caches() const { return cache_.num_places() > 0; }
  int least_shared_tokens() const { return options_.least_shared_tokens; }
  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  int num_filling() const;  // of the running ones, with no token yet
  int num_blocks_held() const { return blocks_.num_held(); }
  int num_blocks_kept() const { return blocks_.num_kept(); }
  std::uint64_t num_ended() const { return num_ended_; }  // requests finished, cancelled or failed so far
  int blocks_for(const Request& request) const;
  int most_drafts(const Request& request) const;  // 0: its head is left alone

 private:
  struct Waiting {
    Submission submission;
    int passed_by = 0;  // later ones that were admitted while its blocks were not there
    int times_deferred = 0;
    RequestId leader;     // whose state it waits for,
    int meet_tokens = 0;  // which stands there
  };
  enum class Verdict { Admitted, NoBlocks, WaitsForLeader };

  Verdict consider(Waiting& waiting, Clock::Time now, Admitted& admitted);
  bool waits_for_leader(Waiting& waiting, int found_tokens);
  bool take_blocks(const Request& request, std::optional<PrefixCache::Hit>& hit, std::vector<std::int32_t>& blocks);
  void plan_saves(Sequence& sequence, int found_tokens);
  int on_grid(int tokens) const { return tokens / facts_.grid * facts_.grid; }
  void free_place(Sequence& sequence);
  void plan_decoding(int& window_rows);
  void plan_filling(int prompt_rows, int window_rows);
  int grant(Sequence& sequence, int rows, int& slice_rows, int& window_rows);
  int slice_end(const Sequence& sequence, int rows) const;

  const ModelFacts facts_;
  const Tokenizer* tokenizer_;
  const SchedulerOptions options_;
  BlockPool blocks_;
  PrefixCache cache_;
  std::vector<int>
      free_slots_;  // falling: the lowest goes first, so that a row of requests walks through memory in order
  std::deque<Waiting> waiting_;
  std::list<std::unique_ptr<Sequence>> running_;  // least recently served first
  bool reconsider_ = true;                        // whether anything has happened since nobody could be admitted
  RoundPlan plan_;
  std::vector<Sequence*> filling_;  // room for plan_filling
  std::uint64_t num_ended_ = 0;
};

}  // namespace rondo
