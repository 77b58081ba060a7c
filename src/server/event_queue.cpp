#include "server/event_queue.h"

#include <utility>

namespace rondo {

void EventQueue::on_text(const TextEvent& event) {
  std::unique_lock lock(mutex_);
  if (waiting_.overflowed) return;
  waiting_bytes_ += event.text.size() + event.ids.size_bytes() + event.logprobs.size_bytes();
  if (waiting_bytes_ > max_bytes_) {
    waiting_.text.reset();
    waiting_.overflowed = true;
    woken_ = false;  // the reader may be stuck in a write: it must hear of this though it was woken before
  } else {
    if (!waiting_.text) waiting_.text.emplace();
    Text& text = *waiting_.text;
    text.text += event.text;
    text.ids.insert(text.ids.end(), event.ids.begin(), event.ids.end());
    text.logprobs.insert(text.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  }
  note_and_wake(std::move(lock));
}

void EventQueue::on_end(EndEvent event) {
  std::unique_lock lock(mutex_);
  waiting_.end = std::move(event);
  note_and_wake(std::move(lock));
}

void EventQueue::on_failed(Error error) {
  std::unique_lock lock(mutex_);
  waiting_.failed = std::move(error);
  note_and_wake(std::move(lock));
}

void EventQueue::note_and_wake(std::unique_lock<std::mutex> lock) {
  if (std::exchange(woken_, true)) return;
  lock.unlock();
  wake_();
}

EventQueue::Taken EventQueue::take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  waiting_bytes_ = 0;
  const bool overflowed = waiting_.overflowed;
  Taken taken = std::exchange(waiting_, Taken{});
  waiting_.overflowed = overflowed;
  return taken;
}

bool EventQueue::has_overflowed() const {
  const std::lock_guard lock(mutex_);
  return waiting_.overflowed;
}

}  // namespace rondo
