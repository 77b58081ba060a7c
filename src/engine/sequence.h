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
#include "cache/prefix_cache.h"
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

// Where the fill of a prompt stops so that its state can be saved.
struct SavePoint {
  int tokens;
  PrefixKind kind;
};

class Sequence {
 public:
  // Broken off from the start where its rule throws while it takes its memory.
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
  FinishReason finish_reason() const { return *finish_; }  // once finished, and not broken
  std::span<const std::int32_t> prompt() const { return request().prompt_ids; }
  std::span<const std::int32_t> filled_ids() const { return std::span(ids_).first(static_cast<std::size_t>(filled_)); }
  bool is_filling() const { return generated().empty(); }
  bool is_broken() const { return broken_.has_value(); }
  bool is_finished() const { return finish_.has_value() || broken_.has_value(); }

  // The prefix cache.
  bool uses_cache() const { return request().use_prefix_cache; }
  void resume_at(int tokens, PrefixRef from);  // its first rows are there already
  const PrefixRef& resumed_from() const { return resumed_from_; }
  // The fill is to stop there; forgotten when it has gone past, and when there are too many already.
  void save_at(SavePoint point);
  std::optional<SavePoint> next_save() const;  // the first that is still to come
  bool saves_after(int tokens) const { return !save_points_.empty() && save_points_.back().tokens > tokens; }
  std::optional<SavePoint> take_due_save();  // where it stands now; asked once

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
  void break_off(Error error);     // finished by a failure of its own: send_end will say so
  double waited_ms(Clock::Time now) const { return ms_between(submission_.arrived, now); }
  double deadline_ms() const { return request().deadline_ms; }
  void fail(Error error) const { submission_.fail(std::move(error)); }

 private:
  const Request& request() const { return submission_.request; }
  int num_generated() const { return static_cast<int>(generated().size()); }
  void reserve_rule(int max_drafts, int vocab_size);
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
  std::optional<Error> broken_;
  PrefixRef resumed_from_;
  std::vector<SavePoint> save_points_;  // rising
  Usage usage_;
  Clock::Time admitted_, first_token_;
};

}  // namespace rondo
