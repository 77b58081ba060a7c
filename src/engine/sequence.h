// Sequence: one request's timeline of tokens, from its prompt to its end, with its blocks, slot and text.
//
// `ids` holds the prompt and every token since; the first `filled` of them have been through the model and are
// committed. What is left are the *pending rows*: of the prompt while it is being filled, then the one token chosen
// last. Stop strings, end tokens and length are looked at on every token, in order, as it is accepted: how many came in
// one round does not matter.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/inbox.h"
#include "engine/request.h"
#include "engine/stop_matcher.h"
#include "text/tokenizer.h"

namespace rondo {

class Sequence {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Sequence(Submission submission, const Tokenizer* tokenizer, int slot, std::vector<std::int32_t> blocks, Time now);

  RequestId id() const { return submission_.id; }
  int slot() const { return slot_; }
  std::span<const std::int32_t> blocks() const { return blocks_; }
  const DrawSettings& draw() const { return submission_.request.draw; }
  int next_pos() const { return filled_; }
  std::span<const std::int32_t> pending_rows() const {
    return std::span(ids_).subspan(static_cast<std::size_t>(filled_));
  }
  bool is_finished() const { return finish_.has_value(); }

  void commit(int rows) { filled_ += rows; }
  void count_round(int drafted, int accepted);
  // The token the model drew after the last row. Nothing is accepted after the token that finishes the sequence.
  void accept(std::int32_t token, Time now);

  void send_text();         // what the tokens accepted since the last call may show
  void send_end(Time now);  // once finished
  void fail(Error error) { submission_.sink->on_failed(std::move(error)); }

 private:
  const Request& request() const { return submission_.request; }
  int num_generated() const { return static_cast<int>(ids_.size() - request().prompt_ids.size()); }
  void show(std::int32_t token);

  Submission submission_;
  int slot_;
  std::vector<std::int32_t> blocks_;
  std::vector<std::int32_t> ids_;
  int filled_ = 0;
  std::optional<Detokenizer> detokenizer_;
  StopMatcher stops_;
  std::string shown_;     // text not sent yet
  std::size_t sent_ids_;  // ids_ before this have been sent
  std::optional<FinishReason> finish_;
  Usage usage_;
  Time admitted_, first_token_, last_token_;
};

}  // namespace rondo
