// What `run` and `chat` have in common: flags for how a reply is drawn, and the engine's events as they come.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "api/reply_settings.h"
#include "api/served_model.h"
#include "server/event_queue.h"

namespace rondo {

// nullopt: the model's own; of seed: a fresh one.
struct ReplyFlags {
  std::optional<int> max_tokens;
  std::optional<float> temperature, top_p, min_p;
  std::optional<int> top_k;
  std::optional<std::int64_t> seed;
};

// -n --temperature --top-k --top-p --min-p --seed
void add_reply_flags(CLI::App& app, ReplyFlags& flags);
ReplySettings to_settings(const ReplyFlags& flags, const GenerationDefaults& defaults);

// One request's events, on the thread that asks for them, in order.
class Replies {
 public:
  Replies() : queue_(std::make_shared<EventQueue>(std::numeric_limits<std::size_t>::max(), [this] { notify(); })) {}
  std::shared_ptr<EventSink> sink() { return queue_; }
  EventQueue::Taken wait();
  std::optional<EventQueue::Taken> wait_for(std::chrono::milliseconds at_most);  // nullopt: nothing came

 private:
  void notify();
  std::mutex mutex_;
  std::condition_variable came_;
  bool has_news_ = false;  // under mutex_
  std::shared_ptr<EventQueue> queue_;
};

}  // namespace rondo
