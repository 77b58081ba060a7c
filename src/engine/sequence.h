// Sequence: one request's timeline of tokens, from its prompt to its end, with its blocks, slot, text and drafts.
//
// `ids` holds the prompt and every token since; the first `filled` of them have been through the model and are
// committed. What is left are the *pending rows*: of the prompt while it is being filled, then the one token chosen
// last. Drafts are not in `ids`: they are guesses at what comes after, held until a round verifies them. Stop strings,
// end tokens and length are looked at on every token, in order, as it is accepted: how many came in one round does not
// matter. Nothing grows after admission.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/draft_odds.h"
#include "engine/inbox.h"
#include "engine/request.h"
#include "engine/stop_matcher.h"
#include "text/tokenizer.h"

namespace rondo {

// What a sequence guesses comes after its pending token, for the next round.
struct HeldDrafts {
  std::vector<std::int32_t> tokens;
  std::vector<float> probabilities;  // the head's, of each
  std::vector<float> survival;       // chance that it and all before it are kept
  void clear() {
    tokens.clear();
    probabilities.clear();
    survival.clear();
  }
};

class Sequence {
 public:
  Sequence(Submission submission, const Tokenizer* tokenizer, int slot, std::vector<std::int32_t> blocks,
           int max_drafts, int vocab_size, Clock::Time now);

  RequestId id() const { return submission_.id; }
  int slot() const { return slot_; }
  std::span<const std::int32_t> blocks() const { return blocks_; }
  const DrawSettings& draw() const { return submission_.request.draw; }
  int num_top_logprobs() const { return submission_.request.num_top_logprobs; }
  int next_pos() const { return filled_; }
  std::span<const std::int32_t> pending_rows() const {
    return std::span(ids_).subspan(static_cast<std::size_t>(filled_));
  }
  std::span<const std::int32_t> generated() const {
    return std::span(ids_).subspan(submission_.request.prompt_ids.size());
  }
  bool is_finished() const { return finish_.has_value(); }
  FinishReason finish_reason() const { return *finish_; }  // once finished

  // Drafts.
  bool drafts() const { return max_drafts_ > 0; }
  int draft_limit() const;  // drafts of the next window at most: its depth, and never past max_tokens
  HeldDrafts held;
  StreamHistory history;
  double parked_ms = 0;  // time since it last drafted

  Clock::Time arrived() const { return submission_.arrived; }
  Clock::Time last_token_time{};  // of the round that brought its last tokens

  // The window: pending rows, then the first num_drafts held drafts; fewer when its rule forbids one. With a rule, a
  // mask for each drawn row. Both good until the next call.
  std::span<const std::int32_t> window(int num_drafts);
  std::span<const TokenMask> masks() const { return masks_; }

  void commit(int rows) { filled_ += rows; }
  void count_round(int drafted, int accepted);
  // The token the model drew after the last row. Nothing is accepted after the token that finishes the sequence.
  void accept(std::int32_t token, const RowLogprobs* logprobs, Clock::Time now);

  void send_text();                // what the tokens accepted since the last call may show
  void send_end(Clock::Time now);  // once finished
  void fail(Error error) { submission_.sink->on_failed(std::move(error)); }

 private:
  const Request& request() const { return submission_.request; }
  int num_generated() const { return static_cast<int>(generated().size()); }
  void show(std::int32_t token);
  void build_masks(std::size_t num_pending);

  Submission submission_;
  int slot_;
  int max_drafts_;
  std::vector<std::int32_t> blocks_;
  std::vector<std::int32_t> ids_;
  int filled_ = 0;
  std::vector<std::int32_t> window_;
  std::vector<std::uint32_t> mask_words_;  // [1 + max_drafts, vocab / 32] with a rule
  std::vector<TokenMask> masks_;
  std::size_t mask_size_ = 0;
  std::optional<Detokenizer> detokenizer_;
  StopMatcher stops_;
  std::string shown_;  // text not sent yet
  std::string piece_;  // of one token
  std::vector<RowLogprobs> logprobs_;
  std::size_t sent_ids_;  // ids_ before this have been sent
  std::optional<FinishReason> finish_;
  Usage usage_;
  Clock::Time admitted_, first_token_;
};

}  // namespace rondo
