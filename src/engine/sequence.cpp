#include "engine/sequence.h"

#include <algorithm>

#include "base/check.h"
#include "base/sha256.h"

namespace rondo {

namespace {

constexpr std::size_t kTextRoom =
    4096;  // bytes of text that one round may bring: tokens are a few bytes, a rare one a few hundred

constexpr std::size_t kMostSavePoints = 64;

}  // namespace

Sequence::Sequence(Submission submission, const Tokenizer* tokenizer, int slot, std::vector<std::int32_t> blocks,
                   int max_drafts, int vocab_size, Clock::Time now)
    : submission_(std::move(submission)),
      slot_(slot),
      max_drafts_(std::clamp(request().max_draft_depth, 0, max_drafts)),
      blocks_(std::move(blocks)),
      ids_(request().prompt_ids),
      stops_(request().stop_strings),
      sent_ids_(ids_.size()),
      admitted_(now),
      first_token_(now) {
  const std::size_t prompt = ids_.size(), most_drafts = static_cast<std::size_t>(max_drafts);
  ids_.reserve(prompt + static_cast<std::size_t>(request().max_tokens));
  window_.reserve(prompt + most_drafts);
  for (auto* each : {&held.probabilities, &held.survival}) each->reserve(most_drafts);
  held.tokens.reserve(most_drafts);
  for (auto* each : {&shown_, &piece_}) each->reserve(kTextRoom);
  if (request().num_top_logprobs >= 0) logprobs_.reserve(1 + most_drafts);
  if (request().rule != nullptr) reserve_rule(max_drafts, vocab_size);
  save_points_.reserve(kMostSavePoints);
  if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, request().skip_special);
  usage_.prompt_tokens = static_cast<int>(prompt);
}

void Sequence::reserve_rule(int max_drafts, int vocab_size) try {
  const std::size_t most_masks = 1 + static_cast<std::size_t>(max_drafts);
  mask_size_ = (static_cast<std::size_t>(vocab_size) + 31) / 32;
  mask_words_.resize(most_masks * mask_size_);
  masks_.reserve(most_masks);
  request().rule->reserve(max_drafts);
} catch (const std::exception& error) {  // no memory for its states, say: the end of this request and of no other
  break_off({ErrorCode::Internal, error.what()});
}

void Sequence::resume_at(int tokens, PrefixRef from) {
  CHECK(filled_ == 0 && tokens < usage_.prompt_tokens);
  filled_ = usage_.cached_tokens = tokens;
  resumed_from_ = from;
}

void Sequence::save_at(SavePoint point) {
  if (save_points_.size() == kMostSavePoints || point.tokens <= filled_) return;
  const auto at = std::ranges::lower_bound(save_points_, point.tokens, {}, &SavePoint::tokens);
  if (at != save_points_.end() && at->tokens == point.tokens) {
    if (point.kind == PrefixKind::Branch) at->kind = point.kind;
    return;
  }
  save_points_.insert(at, point);
}

std::optional<SavePoint> Sequence::next_save() const {
  const auto at = std::ranges::upper_bound(save_points_, filled_, {}, &SavePoint::tokens);
  return at == save_points_.end() ? std::nullopt : std::optional(*at);
}

std::optional<SavePoint> Sequence::take_due_save() {
  while (!save_points_.empty() && save_points_.front().tokens < filled_) save_points_.erase(save_points_.begin());
  if (save_points_.empty() || save_points_.front().tokens != filled_) return std::nullopt;
  const SavePoint due = save_points_.front();
  save_points_.erase(save_points_.begin());
  return due;
}

void Sequence::break_off(Error error) {
  if (!broken_) broken_ = std::move(error);
}

int Sequence::draft_limit() const { return std::min(max_drafts_, request().max_tokens - num_generated() - 1); }

std::span<const std::int32_t> Sequence::window(int num_drafts) {
  CHECK(num_drafts >= 0 && num_drafts <= static_cast<int>(held.tokens.size()));
  const auto pending = pending_rows();
  window_.assign(pending.begin(), pending.end());
  window_.insert(window_.end(), held.tokens.begin(), held.tokens.begin() + num_drafts);
  if (request().rule != nullptr) build_masks(pending.size());
  return window_;
}

void Sequence::build_masks(std::size_t num_pending) {
  masks_.clear();
  for (std::size_t draft = 0; num_pending + draft <= window_.size(); ++draft) {
    const std::span<std::uint32_t> mask = std::span(mask_words_).subspan(draft * mask_size_, mask_size_);
    std::fill(mask.begin(), mask.end(), 0u);
    request().rule->allow_after(std::span(window_).subspan(num_pending, draft), mask);
    masks_.push_back(mask);
    if (num_pending + draft < window_.size() && !allows(mask, window_[num_pending + draft])) {
      window_.resize(num_pending + draft);  // the draft, and all after it, can never be
    }
  }
}

void Sequence::count_round(int drafted, int accepted) {
  ++usage_.rounds;
  usage_.drafted += drafted;
  usage_.accepted += accepted;
}

void Sequence::accept(std::int32_t token, const RowLogprobs* logprobs, Clock::Time now) {
  CHECK(!is_finished());
  if (num_generated() == 0) first_token_ = now;
  ids_.push_back(token);
  if (logprobs != nullptr) logprobs_.push_back(*logprobs);
  if (request().rule != nullptr) request().rule->accept(token);
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
  if (!detokenizer_) return;
  piece_.clear();
  detokenizer_->push(token, piece_);
  stops_.push(piece_, shown_);
}

void Sequence::send_text() {
  const auto ids = std::span<const std::int32_t>(ids_).subspan(sent_ids_);
  if (!shown_.empty() || !ids.empty()) submission_.sink->on_text({.text = shown_, .ids = ids, .logprobs = logprobs_});
  sent_ids_ = ids_.size();
  shown_.clear();
  logprobs_.clear();
}

void Sequence::send_end(Clock::Time now) {
  CHECK(is_finished());
  if (broken_) return submission_.fail(*broken_);
  EndEvent event;
  event.reason = *finish_;
  if (detokenizer_ && !stops_.found()) {
    stops_.push(detokenizer_->finish(), event.text);
    stops_.finish(event.text);
  }
  event.stop_string = stops_.found();
  event.token_sha = token_sha(generated());
  event.usage = usage_;
  event.timings = {ms_between(submission_.arrived, admitted_), ms_between(admitted_, first_token_),
                   ms_between(first_token_, now)};
  submission_.end(std::move(event));
}

}  // namespace rondo
