#include "engine/inbox.h"

#include <utility>

namespace rondo {

bool Inbox::post(InboxMessage message) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
  }
  posted_.notify_one();
  return true;
}

std::vector<InboxMessage> Inbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

std::vector<InboxMessage> Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return std::exchange(messages_, {});
}

void Inbox::wait(const std::stop_token& stop, std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  posted_.wait_for(lock, stop, at_most, [this] { return !messages_.empty(); });
}

}  // namespace rondo
