// POST /v1/chat/completions, from body to writer.
#pragma once

#include <string_view>

#include "api/reply_writer.h"

namespace rondo {

ApiResult<PreparedReply> prepare_chat_reply(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& stamp);

}  // namespace rondo
