#include "tests/server/fake_runner.h"

#include <utility>

namespace rondo {

namespace {
constexpr std::chrono::seconds kPatience{20};
}

EndEvent end_of(FinishReason reason, int completion_tokens) {
  EndEvent end;
  end.reason = reason;
  end.token_sha = "sha";
  end.usage.prompt_tokens = 3;
  end.usage.completion_tokens = completion_tokens;
  return end;
}

Result<RequestId> FakeRunner::submit(Request request, std::shared_ptr<EventSink> sink) {
  std::unique_lock lock(mutex_);
  if (refusal_) return failure(*refusal_, "refused by the fake");
  const RequestId id{next_id_++};
  if (answer_) {
    const std::string text = *answer_;
    lock.unlock();
    say(*sink, text, {1});
    sink->on_end(end_of(FinishReason::Stop));
    return id;
  }
  open_[id.value] = sink;
  unseen_.push_back({id, std::move(request), std::move(sink)});
  changed_.notify_all();
  return id;
}

void FakeRunner::cancel(RequestId id) {
  std::unique_lock lock(mutex_);
  cancelled_.insert(id.value);
  const auto found = open_.find(id.value);
  const std::shared_ptr<EventSink> sink = found == open_.end() ? nullptr : found->second;
  open_.erase(id.value);
  changed_.notify_all();
  lock.unlock();
  if (sink) sink->on_failed({ErrorCode::Cancelled, "cancelled"});
}

EngineStatus FakeRunner::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void FakeRunner::answer_at_once(std::string text) {
  const std::lock_guard lock(mutex_);
  answer_ = std::move(text);
}

void FakeRunner::refuse_with(ErrorCode code) {
  const std::lock_guard lock(mutex_);
  refusal_ = code;
}

void FakeRunner::set_status(EngineStatus status) {
  const std::lock_guard lock(mutex_);
  status_ = status;
}

std::optional<FakeRunner::Submitted> FakeRunner::wait_for_request() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [&] { return !unseen_.empty(); })) return std::nullopt;
  Submitted first = std::move(unseen_.front());
  unseen_.erase(unseen_.begin());
  return first;
}

bool FakeRunner::wait_for_cancel(RequestId id) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return cancelled_.contains(id.value); });
}

bool FakeRunner::is_cancelled(RequestId id) const {
  const std::lock_guard lock(mutex_);
  return cancelled_.contains(id.value);
}

void FakeRunner::fail_all(const Error& error) {
  std::unique_lock lock(mutex_);
  const auto open = std::exchange(open_, {});
  lock.unlock();
  for (const auto& [id, sink] : open) sink->on_failed(error);
}

bool FakeRunner::all_are_over() const {
  const std::lock_guard lock(mutex_);
  return open_.empty();
}

void FakeRunner::end(const Submitted& submitted, FinishReason reason) {
  {
    const std::lock_guard lock(mutex_);
    open_.erase(submitted.id.value);
  }
  submitted.sink->on_end(end_of(reason));
}

}  // namespace rondo
