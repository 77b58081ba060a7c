// EventQueue: one request's events on their way from the engine thread to the connection that answers it.
//
// The engine thread pushes and never blocks; the io thread takes everything at once, so a slow reader finds many events
// joined into one. Bounded in bytes: past the limit the queue drops what it holds, says so to whoever takes next, and
// takes no more; the connection then ends the request, for a reply with a hole in it is worth nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"

namespace rondo {

class EventQueue final : public EventSink {
 public:
  // wake: called when there is something to take after a take() that left nothing; any thread; must not block.
  EventQueue(std::size_t max_bytes, std::function<void()> wake) : max_bytes_(max_bytes), wake_(std::move(wake)) {}

  void on_text(const TextEvent& event) override;
  void on_end(EndEvent event) override;
  void on_failed(Error error) override;

  struct Text {
    std::string text;
    std::vector<std::int32_t> ids;
    std::vector<RowLogprobs> logprobs;
    TextEvent event() const { return {.text = text, .ids = ids, .logprobs = logprobs}; }
  };
  struct Taken {
    std::optional<Text> text;     // every text event since the last take, joined
    std::optional<EndEvent> end;  // the reply is over
    std::optional<Error> failed;  // likewise
    bool overflowed = false;      // likewise: the reader was too slow
    bool is_last() const { return end || failed || overflowed; }
  };
  Taken take();
  bool has_overflowed() const;

 private:
  void note_and_wake(std::unique_lock<std::mutex> lock);
  const std::size_t max_bytes_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  Taken waiting_;                  // under mutex_
  std::size_t waiting_bytes_ = 0;  // under mutex_
  bool woken_ = false;             // under mutex_: wake_ was called since the last take
};

}  // namespace rondo
