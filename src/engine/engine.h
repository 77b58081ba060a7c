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

class Model;
class Tokenizer;

struct EngineOptions {
  int max_queued = 256;  // requests waiting; one more is QueueFull
};

class Engine final : public RequestRunner {
 public:
  // tokenizer may be null: then events carry ids and no text. Both outlive the engine.
  Engine(Model& model, const Tokenizer* tokenizer, EngineOptions options);
  ~Engine() override;

  Result<RequestId> submit(Request request, std::shared_ptr<EventSink> sink) override;
  void cancel(RequestId id) override;

  void run(std::stop_token stop);  // the engine thread; on stop every open request gets on_failed(Unavailable)
  EngineStatus status() const override;
  int context_tokens() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rondo
