// Inbox: the queue down to the engine thread. Requests and cancels come in the order they were posted.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "engine/request.h"

namespace rondo {

struct Submission {
  RequestId id;
  Request request;
  std::shared_ptr<EventSink> sink;
  Clock::Time arrived;

  // Tells its owner. What the sink throws (no memory, say) is logged: it concerns nobody else.
  void fail(Error error) const;
  void end(EndEvent event) const;
};

struct InboxMessage {
  RequestId id;
  std::optional<Submission> submission;  // none: cancel
};

class Inbox {
 public:
  bool post(InboxMessage message);  // false, and nothing posted, once closed
  std::vector<InboxMessage> take();
  std::vector<InboxMessage> close();  // what was left; nobody waits in vain
  // Until something is posted, `stop` is requested or the time is up.
  void wait(const std::stop_token& stop, std::chrono::milliseconds at_most);

 private:
  std::mutex mutex_;
  std::condition_variable_any posted_;
  std::vector<InboxMessage> messages_;
  bool closed_ = false;
};

}  // namespace rondo
