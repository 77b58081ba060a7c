// Ladder: tokens a second of 1, 2, 4, ... streams at once, plain and drafted in turn on one engine, and whether every
// stream says what it says alone.
//
// A cell is one kind of prompt, one number of streams, one temperature. Stream i takes prompt i (mod their number) of
// its kind and seed i, so all streams differ. Alternating runs: plain, drafted, plain, drafted, ...; nothing else runs
// between the two of a pair, and the ratio is that of a pair.
//
// What is timed is decoding alone, over the time in which every stream decodes: from the end of the round that gave the
// last stream its first token (all prompts are in) to the end of the last round before one that ends a stream. Each of
// its rounds counts whole: verify, commit and drafting. Tokens of all streams over that time.
//
// What each stream says is compared, id by id, with what the same request says alone and undrafted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/bench_prompts.h"
#include "cli/scripted_model.h"
#include "engine/engine.h"
#include "engine/round.h"

namespace rondo {

// Where everything stood at the end of an engine turn; numbers since the start.
struct TurnMark {
  Clock::Time at;
  RoundCounters counters;
  std::uint64_t verify_passes = 0, head_passes = 0;  // as the model saw them
  double waited_ms = 0;                              // for the device
};

// The time in which every stream decodes, turn by turn.
class DecodeWindow {
 public:
  void note(const TurnMark& mark, bool all_began, bool any_ended);
  bool is_open() const { return began_ && !closed_; }
  double ms() const { return began_ ? ms_between(begin_.at, end_.at) : 0; }
  const TurnMark& begin() const { return begin_; }
  const TurnMark& end() const { return end_; }

 private:
  bool began_ = false, closed_ = false;
  TurnMark begin_, end_;
};

// The runs of one side of a cell: plain or drafted. Counters are sums over the decode windows.
struct LadderSide {
  std::vector<double> tok_s;  // of each run that had a decode window
  double ms = 0, waited_ms = 0;
  std::uint64_t rounds = 0, verify_passes = 0, head_passes = 0, levels = 0, tokens = 0;
  std::uint64_t drafted[kMaxDepth] = {}, accepted[kMaxDepth] = {};
  std::vector<double> planned_ms, real_ms;  // of each round
  int num_equal = 0, num_replies = 0;       // whole replies that are the lone undrafted one

  void add(const DecodeWindow& window);
};

struct LadderRow {
  std::string prompts;
  int streams = 0;
  double temperature = 0;
  LadderSide plain, drafted;
  std::vector<double> ratios;  // drafted over plain, a pair each
};

struct LadderOptions {
  int reply_tokens = 128;
  int pairs = 5;
  std::vector<std::int32_t> end_ids;  // what ends the reply of a kind that ends
};

class Ladder {
 public:
  // script: null when the head drafts for itself. model is what the engine runs: the script itself, when there is one.
  Ladder(CountingModel& model, ScriptedModel* script, CostTables costs, LadderOptions options);

  // pair: how many of the cell's pairs are done.
  using PairDone = std::function<void(int pair)>;
  Result<LadderRow> run_cell(const PromptKind& kind, int streams, double temperature, const PairDone& pair_done);
  bool drafts() const { return model_.facts().has_head; }

 private:
  struct Run {
    std::vector<std::vector<std::int32_t>> replies;  // of each stream
    DecodeWindow window;
    std::vector<double> planned_ms, real_ms;
  };
  Request request(const PromptKind& kind, int stream, double temperature, bool drafted) const;
  Result<Run> run(const PromptKind& kind, int first_stream, int num_streams, double temperature, bool drafted);
  Result<void> run_alone(const PromptKind& kind, int num_streams, double temperature);
  Result<void> run_side(const PromptKind& kind, int streams, double temperature, bool drafted, LadderSide& side);
  TurnMark mark() const;

  CountingModel& model_;
  ScriptedModel* script_;
  const LadderOptions options_;
  const SteadyClock clock_;
  Engine engine_;
  // Lone undrafted replies of the kind and temperature of the last cell, a stream each.
  std::string alone_kind_;
  double alone_temperature_ = -1;
  std::vector<std::vector<std::int32_t>> alone_;
};

}  // namespace rondo
