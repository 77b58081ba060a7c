// POST /v1/chat/completions, the way in: a JSON body to an engine request. Pure functions, no sockets.
//
// Every field of OpenAI's API, and of ours beside it, is honoured, a label without meaning here, or refused by name:
// openai_chat.cpp has the table of what is refused until it can be honoured. Unknown fields are refused too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "api/openai_tools.h"
#include "api/prompt_builder.h"
#include "api/reply_settings.h"
#include "api/served_model.h"
#include "base/json.h"
#include "engine/request.h"

namespace rondo {

struct ChatRequest : ReplySettings {
  json::Object variables;  // of the chat template: messages, tools, add_generation_prompt, chat_template_kwargs
  ToolUse tools;
  std::optional<int> thinking_budget;  // tokens of a thought that the prompt opens
};

// fresh_seed: for a request that names none; 53 bits, so that every JSON reader keeps it.
ApiResult<ChatRequest> parse_chat(std::string_view body, const ServedModel& model, std::int64_t fresh_seed);

// What a conversation gives its template: messages, tools, reasoning_effort, chat_template_kwargs. A refusal stays in
// `fields`.
ToolUse read_conversation(RequestFields& fields, const ServedModel& model, json::Object& variables);
// A template that cannot render them is a refusal in its words.
ApiResult<BuiltPrompt> build_prompt(const PromptBuilder& prompts, const json::Object& variables);

// parse_chat, the template and the tokenizer, to_request: what a worker thread does with a body.
struct PreparedChat {
  ChatRequest chat;
  std::vector<Request> requests;  // one a choice
  bool thinking = false;          // BuiltPrompt's
};
ApiResult<PreparedChat> prepare_chat(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                     std::int64_t fresh_seed);

}  // namespace rondo
