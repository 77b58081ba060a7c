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
#include "api/structure.h"
#include "base/json.h"
#include "engine/request.h"

namespace rondo {

struct ChatRequest : ReplySettings {
  json::Object variables;   // of the chat template: messages, tools, add_generation_prompt, chat_template_kwargs
  std::string begun_reply;  // text that the reply continues; empty = it begins afresh
  ToolUse tools;
  std::optional<Structure> structure;  // the form its text must have
  std::optional<int> thinking_budget;  // tokens of a thought that the prompt opens
};

// fresh_seed: for a request that names none; 53 bits, so that every JSON reader keeps it.
ApiResult<ChatRequest> parse_chat(std::string_view body, const ServedModel& model, std::int64_t fresh_seed);

// What a conversation gives its template: messages, tools, reasoning_effort, chat_template_kwargs. A refusal stays in
// `fields`.
ToolUse read_conversation(RequestFields& fields, const ServedModel& model, json::Object& variables);
// Two parts of that, for the other protocol.
void read_template_kwargs(RequestFields& fields, json::Object& variables);
void show_tools(RequestFields& fields, const ServedModel& model, const ToolUse& use, json::Object& variables);

// A template that cannot render them is a refusal in its words.
ApiResult<BuiltPrompt> build_prompt(const PromptBuilder& prompts, const json::Object& variables,
                                    std::string_view begun_reply = {});

// The template, the tokenizer and to_request.
struct PreparedChat {
  ChatRequest chat;
  std::vector<Request> requests;  // one a choice
  bool thinking = false;          // BuiltPrompt's
};
ApiResult<PreparedChat> prepare_requests(ChatRequest chat, const ServedModel& model, const PromptBuilder& prompts);
// All of it: what a worker thread does with a body.
ApiResult<PreparedChat> prepare_chat(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                     std::int64_t fresh_seed);

}  // namespace rondo
