#include "engine/sequence.h"

#include <algorithm>

#include "base/check.h"
#include "base/sha256.h"

namespace rondo {

Sequence::Sequence(Submission submission, const Tokenizer* tokenizer, int slot, std::vector<std::int32_t> blocks,
                   Time now)
    : submission_(std::move(submission)),
      slot_(slot),
      blocks_(std::move(blocks)),
      ids_(submission_.request.prompt_ids),
      stops_(submission_.request.stop_strings),
      sent_ids_(ids_.size()),
      admitted_(now),
      first_token_(now),
      last_token_(now) {
  ids_.reserve(ids_.size() + static_cast<std::size_t>(request().max_tokens));
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, request().skip_special);
  usage_.prompt_tokens = static_cast<int>(request().prompt_ids.size());
}

void Sequence::count_round(int drafted, int accepted) {
  ++usage_.rounds;
  usage_.drafted += drafted;
  usage_.accepted += accepted;
}

void Sequence::accept(std::int32_t token, Time now) {
  CHECK(!is_finished());
  if (num_generated() == 0) first_token_ = now;
  last_token_ = now;
  ids_.push_back(token);
  ++usage_.completion_tokens;
  const auto& ends = request().end_ids;
  if (std::find(ends.begin(), ends.end(), token) != ends.end()) {
    finish_ = FinishReason::Stop;
    return;
  }
  show(token);
  if (stops_.found()) {
    finish_ = FinishReason::Stop;
  } else if (num_generated() >= request().max_tokens) {
    finish_ = FinishReason::Length;
  }
}

void Sequence::show(std::int32_t token) {
  if (detokenizer_) stops_.push(detokenizer_->push(token), shown_);
}

void Sequence::send_text() {
  TextEvent event{std::exchange(shown_, {}), {ids_.begin() + static_cast<std::ptrdiff_t>(sent_ids_), ids_.end()}};
  sent_ids_ = ids_.size();
  if (!event.text.empty() || !event.ids.empty()) submission_.sink->on_text(std::move(event));
}

void Sequence::send_end(Time now) {
  CHECK(is_finished());
  const auto ms = [](Time from, Time to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
  EndEvent event;
  event.reason = *finish_;
  if (detokenizer_ && !stops_.found()) {
    stops_.push(detokenizer_->finish(), event.text);
    stops_.finish(event.text);
  }
  event.stop_string = stops_.found();
  event.token_sha = token_sha(std::span(ids_).subspan(request().prompt_ids.size()));
  event.usage = usage_;
  event.timings = {ms(submission_.arrived, admitted_), ms(admitted_, first_token_), ms(first_token_, now)};
  submission_.sink->on_end(std::move(event));
}

}  // namespace rondo
