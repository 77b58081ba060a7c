// tools, tool_choice and parallel_tool_calls of OpenAI's chat: which functions a reply may call, and whether it must.
//
// Functions only. A choice is "none", "auto" (the default with tools), "required", one function by name, or a list of
// allowed tools with a mode. All declared tools are shown to the model whatever the choice, so that a conversation that
// changes its choice keeps its prefix.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/request_fields.h"
#include "api/tool.h"
#include "base/json.h"

namespace rondo {

enum class ToolChoice { None, Auto, Required };

struct ToolUse {
  json::Array declared;                               // as the template is given them; empty = no tools
  std::shared_ptr<const std::vector<Tool>> callable;  // null or empty = nothing may be called
  ToolChoice choice = ToolChoice::None;
  bool parallel = true;  // more than one call in a reply
};

// A refusal stays in `fields`.
ToolUse read_tools(RequestFields& fields);

}  // namespace rondo
