// StatusBoard: what other threads may know of the engine. The engine thread puts its numbers up after every turn; the
// board keeps them as they stood at the end of each of the last seconds, so that a reader can tell how fast things
// went. Nobody waits for anybody.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/seqlock.h"
#include "engine/counters.h"

namespace rondo {

// What the engine has in hand, and what it has done.
struct EngineReading {
  int running = 0;  // sequences being filled or decoded
  int filling = 0;  // of those, with no token yet
  int queued = 0;
  int blocks_held = 0;  // of the KV cache, by sequences
  int blocks_kept = 0;  // by the prefix cache alone: given up when sequences need them
  int states_kept = 0;  // in the prefix cache
  EndCounters ended;
  RoundCounters work;
};

class StatusBoard {
 public:
  static constexpr int kSeconds = 60;
  static constexpr int kRecentSeconds = 10;

  explicit StatusBoard(Clock::Time now);

  void publish(Clock::Time now, const EngineReading& reading);  // engine thread; no lock, no allocation

  struct View {
    EngineReading latest;
    RoundCounters recent;                                       // of the last kRecentSeconds, and of the running second
    std::array<std::uint32_t, kSeconds> tokens_by_second = {};  // oldest first; the last is the running second's so far
  };
  View read(Clock::Time now) const;  // any thread

 private:
  static constexpr int kKept = 64;  // above kSeconds: a reader looks one second further back than it shows
  struct Second {
    std::int64_t second;
    EngineReading reading;
  };
  static std::int64_t second_of(Clock::Time now);
  static std::size_t place(std::int64_t second) { return static_cast<std::size_t>(second) % kKept; }
  RoundCounters at_end_of(std::int64_t second, const Second& newest) const;

  std::array<Seqlock<Second>, kKept> seconds_;  // no gap among them up to newest_
  std::atomic<std::int64_t> newest_;
  const std::int64_t first_;
};

}  // namespace rondo
