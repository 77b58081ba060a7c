// Engine: owns requests and time. The only writer of model and cache state; everything else talks to it by two queues:
// requests and cancels down (submit, cancel: any thread), events up (EventSink: on the engine thread).
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "engine/request.h"

namespace rondo {

class Model;
class Tokenizer;

struct EngineOptions {
  int max_queued = 256;  // requests waiting; one more is QueueFull
};

// What /health and /metrics read; any thread.
struct EngineStatus {
  double heartbeat_age_ms = 0;  // since the loop last came round (it comes round idle too, at least every second)
  bool stopped = false;
  int running = 0;  // sequences being filled or decoded
  int queued = 0;
  std::uint64_t prompt_tokens = 0, completion_tokens = 0, rounds = 0, requests = 0;
};

class Engine {
 public:
  // tokenizer may be null: then events carry ids and no text. Both outlive the engine.
  Engine(Model& model, const Tokenizer* tokenizer, EngineOptions options);
  ~Engine();

  // The request's id, or why it can never run (TooLong with both numbers, InvalidArgument) or not now (QueueFull).
  Result<RequestId> submit(Request request, std::shared_ptr<EventSink> sink);
  void cancel(RequestId id);  // unknown or finished ids are nothing to do

  void run(std::stop_token stop);  // the engine thread; on stop every open request gets on_failed(Unavailable)
  EngineStatus status() const;
  int context_tokens() const;  // the window of one sequence

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rondo
