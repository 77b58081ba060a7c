// RoundCounters: what the engine's rounds have done since the start, the one source of /stats and /metrics. Each number
// only rises, so two readings tell what happened between them.
#pragma once

#include <cstdint>

#include "base/histogram.h"
#include "engine/draft_odds.h"

namespace rondo {

struct RoundCounters {
  std::uint64_t rounds = 0, verify_passes = 0, head_passes = 0;
  std::uint64_t windows = 0;  // streams served, summed over the rounds
  std::uint64_t rows = 0;     // of verify forwards
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
  std::uint64_t drafted[kMaxDepth] = {};   // verified at that depth (0 = the first)
  std::uint64_t accepted[kMaxDepth] = {};  // of those, kept
  std::uint64_t prefix_hits = 0;           // prompts of which a part was in the prefix cache,
  std::uint64_t cached_tokens = 0;         // and how much: not among prompt_tokens, which were computed
  std::uint64_t states_saved = 0;          // into the prefix cache
  double planned_ms = 0, real_ms = 0;      // of rounds
  double fill_ms = 0;                      // slices of prompts, between rounds
  // Rounds without prompt rows, where tokens a second mean something: their tokens, their time, that time once for each
  // stream in them; and what one stream got that had them to itself.
  std::uint64_t decode_tokens = 0, lone_tokens = 0;
  double decode_ms = 0, decode_stream_ms = 0, lone_ms = 0;
  Histogram first_token;     // arrival at the engine to the first token; one a request
  Histogram between_tokens;  // every later token: the time since its stream's last round, shared by that round's tokens

  // What happened since an earlier reading.
  RoundCounters since(const RoundCounters& earlier) const;
};

// How requests ended; with those running and waiting they add up to those taken in.
struct EndCounters {
  std::uint64_t stop = 0, length = 0, cancelled = 0, failed = 0;
};

}  // namespace rondo
