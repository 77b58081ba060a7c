#include "engine/inbox.h"

#include <utility>

namespace rondo {

void Inbox::post(InboxMessage message) {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  posted_.notify_one();
}

std::vector<InboxMessage> Inbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

void Inbox::wait(const std::stop_token& stop, std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  posted_.wait_for(lock, stop, at_most, [this] { return !messages_.empty(); });
}

}  // namespace rondo
