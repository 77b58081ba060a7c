#include "api/openai_messages.h"

#include <fmt/format.h>

#include "api/request_fields.h"

namespace rondo {

namespace {

const json::Object* object_at(RequestFields& parent, const json::Array& array, std::size_t i, const std::string& path) {
  if (array[i].is_object()) return &array[i].get_object();
  parent.refuse(ApiError{ErrorCode::InvalidArgument,
                         fmt::format("{} must be an object, not {}", path, kind_in_words(array[i])), path, ""});
  return nullptr;
}

std::string join_parts(RequestFields& message, const json::Array& parts) {
  std::string joined;
  for (std::size_t i = 0; i < parts.size() && !message.refusal(); ++i) {
    const std::string path = fmt::format("{}[{}]", message.path_of("content"), i);
    const json::Object* part = object_at(message, parts, i, path);
    if (part == nullptr) break;
    RequestFields fields(*part, path);
    const std::optional<std::string> type = fields.text("type");
    if (!type) fields.refuse("type", fmt::format("{}.type is missing", path));
    if (type && *type != "text") {
      fields.refuse("type",
                    fmt::format("{}: parts of type '{}' are not supported: this model reads text only", path, *type),
                    ErrorCode::Unsupported);
    }
    const std::optional<std::string> text = fields.text("text");
    if (!text) fields.refuse("text", fmt::format("{}.text is missing", path));
    fields.refuse_unread();
    if (fields.refusal()) message.refuse(*fields.refusal());
    if (text) joined += *text;
  }
  return joined;
}

json::Value read_content(RequestFields& message, bool may_be_null) {
  const json::Value* content = message.find("content");
  if (content == nullptr) {
    if (!may_be_null) message.refuse("content", fmt::format("{} is missing", message.path_of("content")));
    return json::Value("");
  }
  if (content->is_string()) return *content;
  if (content->is_array()) return json::Value(join_parts(message, content->get_array()));
  message.refuse("content", fmt::format("{} must be a string or an array of parts, not {}", message.path_of("content"),
                                        kind_in_words(*content)));
  return json::Value("");
}

// A string is parsed; "" is what clients send for a call without arguments.
json::Value read_arguments(RequestFields& function) {
  const json::Value* arguments = function.find("arguments");
  if (arguments == nullptr) return json::Object();
  if (arguments->is_object()) return *arguments;
  if (arguments->is_string()) {
    if (arguments->get_string().empty()) return json::Object();
    const Result<json::Value> parsed = parse_json(arguments->get_string());
    if (parsed && parsed->is_object()) return *parsed;
  }
  function.refuse("arguments",
                  fmt::format("{} must be a JSON object, or a string that holds one", function.path_of("arguments")));
  return json::Object();
}

json::Object read_function(RequestFields& call) {
  json::Object out;
  const json::Object* function = call.object("function");
  if (function == nullptr) {
    call.refuse("function", fmt::format("{} is missing", call.path_of("function")));
    return out;
  }
  RequestFields fields(*function, call.path_of("function"));
  const std::optional<std::string> name = fields.text("name");
  if (!name) fields.refuse("name", fmt::format("{} is missing", fields.path_of("name")));
  out["name"] = name.value_or("");
  out["arguments"] = read_arguments(fields);
  fields.refuse_unread();
  if (fields.refusal()) call.refuse(*fields.refusal());
  return out;
}

json::Array read_tool_calls(RequestFields& message, const json::Array& calls) {
  json::Array out;
  for (std::size_t i = 0; i < calls.size() && !message.refusal(); ++i) {
    const std::string path = fmt::format("{}[{}]", message.path_of("tool_calls"), i);
    const json::Object* call = object_at(message, calls, i, path);
    if (call == nullptr) break;
    RequestFields fields(*call, path);
    json::Object read;
    if (const auto id = fields.text("id")) read["id"] = *id;
    const std::string type = fields.text("type").value_or("function");
    if (type != "function") {
      fields.refuse("type", fmt::format("{}: tool calls of type '{}' are not supported", path, type),
                    ErrorCode::Unsupported);
    }
    read["type"] = type;
    fields.integer("index", 0, 1 << 20);  // as streamed deltas have it; the order says the same
    read["function"] = read_function(fields);
    fields.refuse_unread();
    if (fields.refusal()) message.refuse(*fields.refusal());
    out.push_back(std::move(read));
  }
  return out;
}

std::string read_role(RequestFields& message) {
  const std::optional<std::string> role = message.text("role");
  if (!role) {
    message.refuse("role", fmt::format("{} is missing", message.path_of("role")));
    return "";
  }
  if (*role == "developer") return "system";
  if (*role != "system" && *role != "user" && *role != "assistant" && *role != "tool") {
    message.refuse("role", fmt::format("{} must be system, developer, user, assistant or tool, not '{}'",
                                       message.path_of("role"), *role));
  }
  return *role;
}

json::Object read_message(RequestFields& message) {
  json::Object out;
  const std::string role = read_role(message);
  out["role"] = role;
  const bool is_assistant = role == "assistant";
  out["content"] = read_content(message, is_assistant);
  if (const auto name = message.text("name")) out["name"] = *name;
  if (is_assistant) {
    if (const auto reasoning = message.text("reasoning_content")) out["reasoning_content"] = *reasoning;
    if (const json::Array* calls = message.array("tool_calls"); calls != nullptr && !calls->empty()) {
      out["tool_calls"] = read_tool_calls(message, *calls);
    }
    // A client may send a reply's message back as it came: nothing was cited.
    if (const json::Array* annotations = message.array("annotations"); annotations && !annotations->empty()) {
      message.refuse("annotations", message.path_of("annotations") + " are not supported", ErrorCode::Unsupported);
    }
  }
  if (role == "tool") {
    if (const auto id = message.text("tool_call_id")) out["tool_call_id"] = *id;
  }
  message.refuse_unread();
  return out;
}

}  // namespace

ApiResult<json::Array> normalise_messages(const json::Array& messages) {
  if (messages.empty()) {
    return refusal({ErrorCode::InvalidArgument, "messages must hold at least one message", "messages", ""});
  }
  json::Array out;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string path = fmt::format("messages[{}]", i);
    if (!messages[i].is_object()) {
      return refusal({ErrorCode::InvalidArgument,
                      fmt::format("{} must be an object, not {}", path, kind_in_words(messages[i])), path, ""});
    }
    RequestFields message(messages[i].get_object(), path);
    out.push_back(read_message(message));
    if (message.refusal()) return refusal(*message.refusal());
  }
  return out;
}

}  // namespace rondo
