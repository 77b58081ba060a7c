#include "engine/inbox.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace rondo {

void Submission::fail(Error error) const try {
  sink->on_failed(std::move(error));
} catch (const std::exception& thrown) {
  log_error("request {} was not told of its failure: {}", id.value, thrown.what());
}

void Submission::end(EndEvent event) const try {
  sink->on_end(std::move(event));
} catch (const std::exception& thrown) {
  log_error("request {} was not told of its end: {}", id.value, thrown.what());
}

bool Inbox::post(InboxMessage message) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
  }
  posted_.notify_one();
  return true;
}

std::vector<InboxMessage> Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return std::exchange(messages_, {});
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
