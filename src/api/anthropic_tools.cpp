#include "api/anthropic_tools.h"

#include <fmt/format.h>

#include <utility>

#include "api/anthropic_messages.h"

namespace rondo {

namespace {

// What a tool may carry that this server does not do: refused unless it asks for nothing.
void refuse_tool_extras(RequestFields& tool) {
  const auto refuse = [&](std::string_view name, std::string_view why) {
    tool.refuse(name, fmt::format("{} is not supported{}", tool.path_of(name), why), ErrorCode::Unsupported);
  };
  if (tool.boolean("defer_loading").value_or(false)) refuse("defer_loading", ": there is no tool search here");
  if (const json::Array* examples = tool.array("input_examples"); examples != nullptr && !examples->empty()) {
    refuse("input_examples", ": put them into the description");
  }
  if (const json::Array* callers = tool.array("allowed_callers")) {
    const json::Array only_the_model = {"direct"};
    if (*callers != only_the_model) refuse("allowed_callers", ", except [\"direct\"]");
  }
  tool.boolean("eager_input_streaming");  // inputs are streamed as they come, always
}

json::Object translate_tool(RequestFields& tool, bool& has_cache_control) {
  json::Object function;
  const std::string type = tool.text("type").value_or("custom");
  if (type != "custom") {
    tool.refuse("type",
                fmt::format("{}: '{}' runs on Anthropic's own servers and is not supported: only tools of the client "
                            "are, with a name and an input_schema",
                            tool.path_of("type"), type),
                ErrorCode::Unsupported);
  }
  const std::optional<std::string> name = tool.text("name");
  if (!name) tool.refuse("name", fmt::format("{} is missing", tool.path_of("name")));
  function["name"] = name.value_or("");
  if (const auto description = tool.text("description")) function["description"] = *description;
  const json::Object* schema = tool.object("input_schema");
  if (schema == nullptr) {
    tool.refuse("input_schema", fmt::format("{} is missing", tool.path_of("input_schema")));
  } else {
    function["parameters"] = *schema;
  }
  if (const auto strict = tool.boolean("strict")) function["strict"] = *strict;
  read_cache_control(tool, has_cache_control);
  refuse_tool_extras(tool);
  tool.refuse_unread();
  return {{"type", "function"}, {"function", std::move(function)}};
}

json::Array translate_tools(RequestFields& fields, const json::Array& tools, bool& has_cache_control) {
  json::Array out;
  for (std::size_t i = 0; i < tools.size() && !fields.refusal(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    if (!tools[i].is_object()) {
      fields.refuse(ApiError{ErrorCode::InvalidArgument,
                             fmt::format("{} must be an object, not {}", path, kind_in_words(tools[i])), path, ""});
      break;
    }
    RequestFields tool(tools[i].get_object(), path);
    out.push_back(translate_tool(tool, has_cache_control));
    if (tool.refusal()) fields.refuse(*tool.refusal());
  }
  return out;
}

void translate_choice(RequestFields& fields, const json::Object& given, json::Object& out) {
  RequestFields choice(given, "tool_choice");
  const std::string type = choice.text("type").value_or("");
  if (type == "auto" || type == "none") {
    out["tool_choice"] = type;
  } else if (type == "any") {
    out["tool_choice"] = "required";
  } else if (type == "tool") {
    const std::optional<std::string> name = choice.text("name");
    if (!name) choice.refuse("name", "tool_choice.name is missing");
    out["tool_choice"] = {{"type", "function"}, {"function", {{"name", name.value_or("")}}}};
  } else {
    choice.refuse("type", fmt::format("tool_choice.type must be auto, any, tool or none, not '{}'", type));
  }
  if (type != "none") {
    out["parallel_tool_calls"] = !choice.boolean("disable_parallel_tool_use").value_or(false);
  }
  choice.refuse_unread();
  if (choice.refusal()) fields.refuse(*choice.refusal());
}

}  // namespace

ToolUse read_anthropic_tools(RequestFields& fields, bool& has_cache_control) {
  json::Object translated;
  if (const json::Array* tools = fields.array("tools")) {
    translated["tools"] = translate_tools(fields, *tools, has_cache_control);
  }
  if (const json::Object* choice = fields.object("tool_choice")) translate_choice(fields, *choice, translated);
  if (fields.refusal()) return {};
  RequestFields openai(translated, "");
  ToolUse use = read_tools(openai);
  if (openai.refusal()) fields.refuse(*openai.refusal());
  return use;
}

}  // namespace rondo
