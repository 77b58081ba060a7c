// POST /v1/chat/completions, from body to writer.
#pragma once

#include <string_view>

#include "api/chat_writer.h"
#include "api/openai_chat.h"
#include "api/reply_writer.h"

namespace rondo {

// What any protocol's writer is told.
ChatFacts facts_of(const PreparedChat& prepared, const ServedModel& model, const PromptBuilder& prompts,
                   const ReplyStamp& stamp);

ApiResult<PreparedReply> prepare_chat_reply(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& stamp);

}  // namespace rondo
