// RequestRunner: what the server needs of an engine, and no more, so that it can be tested without a model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/request.h"
#include "engine/status_board.h"

namespace rondo {

// What /health, /stats and /metrics read.
struct EngineStatus {
  double heartbeat_age_ms = 0;  // since the loop last came round (it comes round idle too, at least every second)
  bool stopped = false;
  int running = 0;  // sequences being filled or decoded
  int filling = 0;  // of those, with no token yet
  int queued = 0;
  int max_streams = 0;
  int blocks_kept = 0;                  // KV blocks that the prefix cache has beside them
  int states_kept = 0, num_states = 0;  // in the prefix cache
  int blocks_held = 0, num_blocks = 0;  // of the KV cache
  std::uint64_t requests = 0;           // submitted and not refused
  EndCounters ended;
  RoundCounters work;                                                      // since the start
  RoundCounters recent;                                                    // of the last StatusBoard::kRecentSeconds
  std::array<std::uint32_t, StatusBoard::kSeconds> tokens_by_second = {};  // oldest first, the running second's last
};

// Every call from any thread; none blocks for longer than a queue's lock.
class RequestRunner {
 public:
  virtual ~RequestRunner() = default;
  // The request's id, or why it can never run (TooLong with both numbers, InvalidArgument) or not now (QueueFull,
  // Unavailable). After an id, the sink gets exactly one on_end or on_failed, whatever happens.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<EventSink> sink) = 0;
  virtual void cancel(RequestId id) = 0;  // unknown or finished ids are nothing to do
  virtual EngineStatus status() const = 0;
  virtual int context_tokens() const = 0;  // the window of one sequence
};

}  // namespace rondo
