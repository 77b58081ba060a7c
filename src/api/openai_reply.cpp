#include "api/openai_reply.h"

#include <utility>

namespace rondo {

namespace {

json::Array only_choice(std::string_view key, json::Object value, json::Value finish_reason) {
  json::Object out;
  out["index"] = 0;
  out[key] = std::move(value);
  out["logprobs"] = nullptr;
  out["finish_reason"] = std::move(finish_reason);
  json::Array choices;
  choices.push_back(std::move(out));
  return choices;
}

json::Object delta_with(std::string_view key, std::string_view text) {
  json::Object delta;
  delta[key] = text;
  return delta;
}

}  // namespace

void ReasoningCount::add(std::span<const std::int32_t> ids, bool is_reasoning) {
  if (closed_ || !is_reasoning) return;
  for (const std::int32_t id : ids) {
    ++tokens_;
    if (id == think_end_id_) {
      closed_ = true;
      return;
    }
  }
}

json::Object render_usage(const Usage& usage, int reasoning_tokens) {
  json::Object out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json::Object prompt;
  prompt["cached_tokens"] = usage.cached_tokens;
  out["prompt_tokens_details"] = std::move(prompt);
  json::Object completion;
  completion["accepted_prediction_tokens"] = usage.accepted;
  completion["rejected_prediction_tokens"] = usage.drafted - usage.accepted;
  completion["reasoning_tokens"] = reasoning_tokens;
  out["completion_tokens_details"] = std::move(completion);
  return out;
}

json::Object render_rondo(const EndEvent& end, std::int64_t seed, const std::string& arithmetic) {
  json::Object out;
  out["token_sha"] = end.token_sha;
  out["rounds"] = end.usage.rounds;
  out["drafted"] = end.usage.drafted;
  out["accepted"] = end.usage.accepted;
  out["seed"] = seed;
  out["arithmetic"] = arithmetic;
  return out;
}

std::string_view finish_reason_name(FinishReason reason) { return reason == FinishReason::Stop ? "stop" : "length"; }

std::string server_sent_event(const json::Object& document) { return "data: " + to_json(document) + "\n\n"; }

WholeReply::WholeReply(ReplyFacts facts)
    : facts_(std::move(facts)), split_(facts_.thinking), reasoning_count_(facts_.think_end_id) {}

void WholeReply::append(ThinkSplit::Pieces pieces) {
  reasoning_ += pieces.reasoning;
  content_ += pieces.content;
}

void WholeReply::push(const TextEvent& event) {
  const bool was_thinking = split_.is_thinking();
  append(split_.push(event.text));
  reasoning_count_.add(event.ids, was_thinking || split_.is_thinking());
}

std::string WholeReply::finish(const EndEvent& end) {
  append(split_.push(end.text));
  append(split_.finish());
  json::Object message;
  message["role"] = "assistant";
  message["content"] = content_;
  message["refusal"] = nullptr;
  if (!reasoning_.empty()) message["reasoning_content"] = reasoning_;
  json::Object out;
  out["id"] = facts_.id;
  out["object"] = "chat.completion";
  out["created"] = facts_.created;
  out["model"] = facts_.model;
  out["choices"] = only_choice("message", std::move(message), json::Value(finish_reason_name(end.reason)));
  out["usage"] = render_usage(end.usage, reasoning_count_.tokens());
  out["rondo"] = render_rondo(end, facts_.seed, facts_.arithmetic);
  return to_json(out);
}

StreamedReply::StreamedReply(ReplyFacts facts)
    : facts_(std::move(facts)), split_(facts_.thinking), reasoning_count_(facts_.think_end_id) {}

json::Object StreamedReply::chunk(json::Array choices) const {
  json::Object out;
  out["id"] = facts_.id;
  out["object"] = "chat.completion.chunk";
  out["created"] = facts_.created;
  out["model"] = facts_.model;
  out["choices"] = std::move(choices);
  if (facts_.include_usage) out["usage"] = nullptr;  // the last one has it
  return out;
}

std::string StreamedReply::delta(json::Object delta) const {
  return server_sent_event(chunk(only_choice("delta", std::move(delta), nullptr)));
}

std::string StreamedReply::pieces(const ThinkSplit::Pieces& pieces) const {
  std::string out;
  if (!pieces.reasoning.empty()) out += delta(delta_with("reasoning_content", pieces.reasoning));
  if (!pieces.content.empty()) out += delta(delta_with("content", pieces.content));
  return out;
}

std::string StreamedReply::begin() const {
  json::Object first;
  first["role"] = "assistant";
  first["content"] = "";
  return delta(std::move(first));
}

std::string StreamedReply::push(const TextEvent& event) {
  const bool was_thinking = split_.is_thinking();
  std::string out = pieces(split_.push(event.text));
  reasoning_count_.add(event.ids, was_thinking || split_.is_thinking());
  return out;
}

std::string StreamedReply::finish(const EndEvent& end) {
  std::string out = pieces(split_.push(end.text));
  out += pieces(split_.finish());
  json::Object last = chunk(only_choice("delta", json::Object(), json::Value(finish_reason_name(end.reason))));
  if (facts_.include_usage) {
    out += server_sent_event(last);
    last = chunk(json::Array());
    last["usage"] = render_usage(end.usage, reasoning_count_.tokens());
  }
  last["rondo"] = render_rondo(end, facts_.seed, facts_.arithmetic);
  out += server_sent_event(last);
  out += kDone;
  return out;
}

std::string StreamedReply::fail(const ApiError& error) {
  return "data: " + render_openai_error(error) + "\n\n" + std::string(kDone);
}

}  // namespace rondo
