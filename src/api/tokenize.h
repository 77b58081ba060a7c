// POST /tokenize and POST /detokenize: text or a conversation to token ids, and back. No engine.
//
//   {"content": text} or {"messages": [...]}  ->  {"tokens": [ids], "count": n}
//   {"tokens": [ids]}                         ->  {"content": text}
//
// `content` is encoded as a raw completion's prompt is: it may spell control tokens. `messages` go through the chat
// template with whatever a chat request may give it, so that count is the prompt_tokens of that request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/reply_writer.h"
#include "api/request_fields.h"

namespace rondo {

ApiResult<PreparedReply> prepare_tokenize(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                          const ReplyStamp& stamp);
ApiResult<PreparedReply> prepare_detokenize(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& stamp);

// The ids in `array`, which stands at `name` in the request; a refusal stays in `fields`.
std::vector<std::int32_t> read_token_ids(RequestFields& fields, std::string_view name, const json::Array& array,
                                         const ServedModel& model);

}  // namespace rondo
