// `system` and `messages` of Anthropic's API, checked and put into the one form that chat templates are given.
//
//   a text block           text of its message; blocks of one message are joined
//   thinking               the message's reasoning_content; its signature is not looked at
//   tool_use               one of the message's tool_calls, after its text
//   tool_result            a message of role tool; with is_error its text begins "Error: "
//
// Roles: user, assistant, and system where the template takes one there. A last message of the assistant's is no turn
// but the beginning of the reply. Blocks of other types are refused by name: the model reads text only.
#pragma once

#include <string>

#include "api/request_fields.h"
#include "base/json.h"

namespace rondo {

struct AnthropicConversation {
  json::Array messages;            // of the chat template
  std::string begun_reply;         // what the reply continues; empty = it begins afresh
  bool has_cache_control = false;  // somewhere the client marked what to cache
};

// Reads system and messages; a refusal stays in `fields`.
AnthropicConversation read_anthropic_conversation(RequestFields& fields);

// cache_control of a block, a tool or the request: checked, and noted. What is cached is decided without it.
void read_cache_control(RequestFields& fields, bool& has_cache_control);

}  // namespace rondo
