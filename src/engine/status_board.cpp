#include "engine/status_board.h"

#include <algorithm>

namespace rondo {

RoundCounters RoundCounters::since(const RoundCounters& earlier) const {
  RoundCounters out = *this;
  out.rounds -= earlier.rounds;
  out.verify_passes -= earlier.verify_passes;
  out.head_passes -= earlier.head_passes;
  out.windows -= earlier.windows;
  out.rows -= earlier.rows;
  out.prompt_tokens -= earlier.prompt_tokens;
  out.completion_tokens -= earlier.completion_tokens;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    out.drafted[depth] -= earlier.drafted[depth];
    out.accepted[depth] -= earlier.accepted[depth];
  }
  out.prefix_hits -= earlier.prefix_hits;
  out.cached_tokens -= earlier.cached_tokens;
  out.states_saved -= earlier.states_saved;
  out.planned_ms -= earlier.planned_ms;
  out.real_ms -= earlier.real_ms;
  out.fill_ms -= earlier.fill_ms;
  out.decode_tokens -= earlier.decode_tokens;
  out.decode_ms -= earlier.decode_ms;
  out.decode_stream_ms -= earlier.decode_stream_ms;
  out.lone_tokens -= earlier.lone_tokens;
  out.lone_ms -= earlier.lone_ms;
  out.first_token = first_token.since(earlier.first_token);
  out.between_tokens = between_tokens.since(earlier.between_tokens);
  return out;
}

std::int64_t StatusBoard::second_of(Clock::Time now) {
  return std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
}

StatusBoard::StatusBoard(Clock::Time now) : newest_(second_of(now)), first_(second_of(now)) { publish(now, {}); }

void StatusBoard::publish(Clock::Time now, const EngineReading& reading) {
  const std::int64_t second = second_of(now), newest = newest_.load(std::memory_order_relaxed);
  if (second > newest) {  // seconds in which nothing was put up ended as the one before them
    EngineReading last = seconds_[place(newest)].load().reading;
    for (std::int64_t gap = std::max(newest + 1, second - kKept + 1); gap < second; ++gap)
      seconds_[place(gap)].store({gap, last});
  }
  seconds_[place(second)].store({second, reading});
  newest_.store(second, std::memory_order_release);
}

// Before the first second nothing was done; after the newest one nothing was done either.
RoundCounters StatusBoard::at_end_of(std::int64_t second, const Second& newest) const {
  if (second < first_) return {};
  if (second >= newest.second) return newest.reading.work;
  const Second found = seconds_[place(second)].load();
  return found.second == second ? found.reading.work : newest.reading.work;  // overtaken while it was read
}

StatusBoard::View StatusBoard::read(Clock::Time now) const {
  const Second newest = seconds_[place(newest_.load(std::memory_order_acquire))].load();
  const std::int64_t second = std::max(second_of(now), newest.second);
  View view;
  view.latest = newest.reading;
  view.recent = newest.reading.work.since(at_end_of(second - kRecentSeconds - 1, newest));
  std::uint64_t before = at_end_of(second - kSeconds, newest).completion_tokens;
  for (int i = 0; i < kSeconds; ++i) {
    const std::uint64_t after = at_end_of(second - kSeconds + 1 + i, newest).completion_tokens;
    view.tokens_by_second[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(std::max(after, before) - before);
    before = std::max(after, before);
  }
  return view;
}

}  // namespace rondo
