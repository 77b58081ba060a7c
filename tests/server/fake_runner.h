// FakeRunner: an engine that does what the test says, when it says so.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/request_runner.h"
#include "tests/api/fake_prompts.h"

namespace rondo {

// A text event with ids of its own.
inline void say(EventSink& sink, std::string_view text, const std::vector<std::int32_t>& ids) {
  sink.on_text({.text = text, .ids = ids, .logprobs = {}});
}

class FakeRunner final : public RequestRunner {
 public:
  struct Submitted {
    RequestId id;
    Request request;
    std::shared_ptr<EventSink> sink;
  };

  Result<RequestId> submit(Request request, std::shared_ptr<EventSink> sink) override;
  void cancel(RequestId id) override;
  EngineStatus status() const override;
  int context_tokens() const override { return 4096; }

  // What the test does. The waits give up after 20 s.
  void answer_at_once(std::string text);  // every request from here on
  void refuse_with(ErrorCode code);       // likewise
  void set_status(EngineStatus status);
  std::optional<Submitted> wait_for_request();
  bool wait_for_cancel(RequestId id);
  bool is_cancelled(RequestId id) const;
  void fail_all(const Error& error);  // what an engine does that is stopped
  bool all_are_over() const;          // every request ended, failed or was cancelled
  void end(const Submitted& submitted, FinishReason reason);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::shared_ptr<EventSink>> open_;
  std::vector<Submitted> unseen_;
  std::set<std::uint64_t> cancelled_;
  std::optional<std::string> answer_;
  std::optional<ErrorCode> refusal_;
  EngineStatus status_;
};

EndEvent end_of(FinishReason reason, int completion_tokens = 1);

}  // namespace rondo
