// tools and tool_choice of Anthropic's API, as the ToolUse that every protocol's calls are made by.
//
// Client tools only: the tools that Anthropic's own servers run are refused by their type.
#pragma once

#include "api/openai_tools.h"
#include "api/request_fields.h"

namespace rondo {

// A refusal stays in `fields`; has_cache_control is set when a tool is marked.
ToolUse read_anthropic_tools(RequestFields& fields, bool& has_cache_control);

}  // namespace rondo
