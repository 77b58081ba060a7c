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
};

struct InboxMessage {
  RequestId id;
  std::optional<Submission> submission;  // none: cancel
};

class Inbox {
 public:
  bool post(InboxMessage message);  // false once closed: the message is not taken
  std::vector<InboxMessage> take();
  std::vector<InboxMessage> close();  // the last take: nothing can be posted after it
  // Until something is posted, `stop` is requested or the time is up.
  void wait(const std::stop_token& stop, std::chrono::milliseconds at_most);

 private:
  std::mutex mutex_;
  std::condition_variable_any posted_;
  std::vector<InboxMessage> messages_;  // under mutex_
  bool closed_ = false;                 // under mutex_
};

}  // namespace rondo
