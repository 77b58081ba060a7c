#include "api/openai_reply.h"

namespace rondo {

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

std::string end_stream(const ApiError& error) {
  return "data: " + render_openai_error(error) + "\n\n" + std::string(kDone);
}

}  // namespace rondo
