// POST /v1/chat/completions, the way out: engine events to OpenAI's JSON, whole or as server-sent events.
//
// A streamed reply is: an event with the role, events with delta.reasoning_content or delta.content, one with
// finish_reason, one with usage if asked (its choices are empty), "[DONE]". `rondo` rides the last of them. Each event
// is valid UTF-8 by itself. A failure after the stream began is an event with the error object, then "[DONE]".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/error.h"
#include "api/served_model.h"
#include "api/think_split.h"
#include "base/json.h"
#include "engine/request.h"

namespace rondo {

// What a reply says of itself, known before its first token.
struct ReplyFacts {
  std::string id;  // "chatcmpl-..."
  std::int64_t created = 0;
  std::string model;
  std::int64_t seed = 0;
  std::string arithmetic;
  bool thinking = false;  // the prompt ended inside an open <think>
  std::optional<std::int32_t> think_end_id;
  bool include_usage = false;
};

// Counts how many of a reply's tokens were reasoning: those up to </think>.
class ReasoningCount {
 public:
  explicit ReasoningCount(std::optional<std::int32_t> think_end_id) : think_end_id_(think_end_id) {}
  // is_reasoning: whether the split was thinking before or after the text that came with these ids.
  void add(std::span<const std::int32_t> ids, bool is_reasoning);
  int tokens() const { return tokens_; }

 private:
  std::optional<std::int32_t> think_end_id_;
  int tokens_ = 0;
  bool closed_ = false;
};

json::Object render_usage(const Usage& usage, int reasoning_tokens);
json::Object render_rondo(const EndEvent& end, std::int64_t seed, const std::string& arithmetic);
std::string_view finish_reason_name(FinishReason reason);

// Of a streamed reply: one event, and the one that ends it.
std::string server_sent_event(const json::Object& document);
constexpr std::string_view kDone = "data: [DONE]\n\n";

class WholeReply {
 public:
  explicit WholeReply(ReplyFacts facts);
  void push(const TextEvent& event);
  std::string finish(const EndEvent& end);  // the body

 private:
  void append(ThinkSplit::Pieces pieces);
  ReplyFacts facts_;
  ThinkSplit split_;
  ReasoningCount reasoning_count_;
  std::string reasoning_;
  std::string content_;
};

class StreamedReply {
 public:
  explicit StreamedReply(ReplyFacts facts);
  // Each returns whole server-sent events, possibly none.
  std::string begin() const;
  std::string push(const TextEvent& event);
  std::string finish(const EndEvent& end);
  static std::string fail(const ApiError& error);

 private:
  std::string pieces(const ThinkSplit::Pieces& pieces) const;
  std::string delta(json::Object delta) const;
  json::Object chunk(json::Array choices) const;
  ReplyFacts facts_;
  ThinkSplit split_;
  ReasoningCount reasoning_count_;
};

}  // namespace rondo
