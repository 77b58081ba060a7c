// What OpenAI's replies have in common, whatever the route: usage, `rondo`, finish_reason, server-sent events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/error.h"
#include "base/json.h"
#include "engine/request.h"

namespace rondo {

json::Object render_usage(const Usage& usage, int reasoning_tokens);
json::Object render_rondo(const EndEvent& end, std::int64_t seed, const std::string& arithmetic);
std::string_view finish_reason_name(FinishReason reason);

// Of a streamed reply: one event, the one that ends it, and the end of one that cannot go on.
std::string server_sent_event(const json::Object& document);
constexpr std::string_view kDone = "data: [DONE]\n\n";
std::string end_stream(const ApiError& error);

}  // namespace rondo
