// The `messages` of a chat request, checked and put into the one form that chat templates are given.
//
// Roles: system (also spelled developer), user, assistant, tool. Content: a string, or text parts joined; an
// assistant's may be null, which templates see as "". tool_calls keep their shape, with `arguments` parsed when given
// as a string. Also passed on: reasoning_content, name, tool_call_id. Everything else is refused by name.
#pragma once

#include "api/error.h"
#include "base/json.h"

namespace rondo {

ApiResult<json::Array> normalise_messages(const json::Array& messages);

}  // namespace rondo
