#include "api/chat_choice.h"

#include <algorithm>
#include <utility>

#include "api/openai_reply.h"
#include "api/token_name.h"

namespace rondo {

namespace {

constexpr float kLeastLogprob = -9999;  // OpenAI's own floor: JSON has no infinity

json::Object render_token(const PromptBuilder& prompts, std::int32_t id, float logprob) {
  const std::string bytes = prompts.decode(std::span(&id, 1));
  json::Array numbers;
  for (const char byte : bytes) numbers.emplace_back(static_cast<unsigned char>(byte));
  json::Object out;
  out["token"] = token_name(bytes);
  out["logprob"] = std::max(logprob, kLeastLogprob);
  out["bytes"] = std::move(numbers);
  return out;
}

}  // namespace

ChatChoice::ChatChoice(ChatChoiceForm form)
    : form_(std::move(form)), parser_(form_.form), reasoning_count_(form_.think_end_id) {}

ReplyParts ChatChoice::push(const TextEvent& event) {
  const bool was_thinking = parser_.is_thinking();
  ReplyParts parts = parser_.push(event.text);
  // A thought may begin and end within one event, when many tokens came together.
  const bool thought = std::any_of(parts.begin(), parts.end(),
                                   [](const ReplyPart& part) { return part.kind == ReplyPart::Kind::Reasoning; });
  reasoning_count_.add(event.ids, was_thinking || parser_.is_thinking() || thought);
  if (form_.has_logprobs) {
    for (std::size_t i = 0; i < event.logprobs.size(); ++i) add_logprobs(event.ids[i], event.logprobs[i]);
  }
  return parts;
}

ReplyParts ChatChoice::finish(const EndEvent& end) {
  ReplyParts parts = parser_.push(end.text);
  for (ReplyPart& part : parser_.finish()) parts.push_back(std::move(part));
  const bool is_cut = !parts.empty() && parts.back().kind == ReplyPart::Kind::CallCut;
  const bool called = end.reason == FinishReason::Stop && parser_.num_calls() > 0 && !is_cut;
  finish_reason_ = called ? "tool_calls" : finish_reason_name(end.reason);
  return parts;
}

void ChatChoice::add_logprobs(std::int32_t id, const RowLogprobs& row) {
  json::Object token = render_token(*form_.prompts, id, row.chosen);
  json::Array top;
  for (int i = 0; i < row.num_top; ++i) top.push_back(render_token(*form_.prompts, row.top_ids[i], row.top[i]));
  token["top_logprobs"] = std::move(top);
  logprobs_.push_back(std::move(token));
}

json::Value ChatChoice::take_logprobs() {
  if (!form_.has_logprobs) return nullptr;
  json::Object out;
  out["content"] = std::exchange(logprobs_, {});
  out["refusal"] = nullptr;
  return out;
}

}  // namespace rondo
