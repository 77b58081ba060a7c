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
#include "engine/request_runner.h"

namespace rondo {

class Clock;
class DecisionLog;
class Model;
class RoundCosts;
class Tokenizer;
struct CostTables;
struct RoundCounters;

struct EngineOptions {
  int max_queued = 256;    // requests waiting; one more is QueueFull
  int logged_rounds = 64;  // how far back the decision log reaches
  double stall_ms = 100;   // a prompt being filled holds up whoever decodes no longer than this, between two rounds
  int least_shared_tokens = 16;  // SchedulerOptions
  int step_tokens = 512;
};

class Engine final : public RequestRunner {
 public:
  // tokenizer may be null: then events carry ids and no text. costs: as the model timed them; not priced = the unpriced
  // rule. Model, tokenizer and clock outlive the engine.
  Engine(Model& model, const Tokenizer* tokenizer, CostTables costs, const Clock& clock, EngineOptions options);
  ~Engine() override;

  Result<RequestId> submit(Request request, std::shared_ptr<EventSink> sink) override;
  void cancel(RequestId id) override;

  void run(std::stop_token stop);  // the engine thread; on stop every open request gets on_failed(Unavailable)
  EngineStatus status() const override;
  int context_tokens() const override;

  // For who runs the engine on a thread of his own: one turn without waiting. False when there was nothing to do.
  bool turn();
  const DecisionLog& log() const;         // engine thread
  const RoundCounters& counters() const;  // engine thread
  RoundCosts& costs();                    // engine thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rondo
