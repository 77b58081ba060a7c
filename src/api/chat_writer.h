// POST /v1/chat/completions, the way out: engine events to OpenAI's JSON, whole or as server-sent events.
//
// A streamed reply is: an event for each choice with the role; events with delta.reasoning_content, delta.content or
// delta.tool_calls; one for each choice with finish_reason; one with usage if asked (its choices are empty); "[DONE]".
// `rondo` rides the last of them. A call is first an event with its id and name, then events with pieces of its
// arguments. Logprobs ride the next event of their choice. Each event is valid UTF-8 by itself. A failure after the
// stream began is an event with the error object, then "[DONE]".
//
// finish_reason: "tool_calls" when the reply ended by itself and its calls are whole, else "stop" or "length".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/reply_writer.h"
#include "api/tool.h"

namespace rondo {

// What a reply says of itself, known before its first token.
struct ChatFacts {
  std::string id;  // of its own; the reply's is "chatcmpl-" and this, its calls' "call_" and this
  std::int64_t created = 0;
  std::string model;
  std::int64_t seed = 0;
  std::string arithmetic;
  int num_choices = 1;
  bool thinking = false;  // the prompt ended inside an open <think>
  std::optional<std::int32_t> think_end_id;
  std::shared_ptr<const std::vector<Tool>> tools;  // that may be called
  bool has_logprobs = false;
  bool include_usage = false;              // in a streamed reply
  const PromptBuilder* prompts = nullptr;  // outlives the reply
};

std::unique_ptr<ReplyWriter> make_chat_writer(ChatFacts facts, Delivery delivery);

}  // namespace rondo
