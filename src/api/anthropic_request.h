// POST /v1/messages and /v1/messages/count_tokens, the way in: Anthropic's JSON to the request that every chat makes.
//
// Every field of Anthropic's API, and of ours beside it, is honoured, a label without meaning here, or refused by name.
// Thinking is off unless the request turns it on, whatever the template's own default is.
#pragma once

#include <string_view>

#include "api/openai_chat.h"
#include "api/reply_writer.h"

namespace rondo {

struct MessagesRequest {
  ChatRequest chat;
  bool has_cache_control = false;  // the client marked what to cache: usage then tells cached tokens apart
};

ApiResult<MessagesRequest> parse_messages(std::string_view body, const ServedModel& model, std::int64_t fresh_seed);

ApiResult<PreparedReply> prepare_messages(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                          const ReplyStamp& stamp);

// {"input_tokens": n}: what usage.input_tokens of the same request would be, without a cache.
ApiResult<PreparedReply> prepare_count_tokens(std::string_view body, const ServedModel& model,
                                              const PromptBuilder& prompts, const ReplyStamp& stamp);

}  // namespace rondo
