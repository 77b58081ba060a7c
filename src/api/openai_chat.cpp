#include "api/openai_chat.h"

#include <fmt/format.h>

#include <utility>

#include "api/openai_messages.h"

namespace rondo {

namespace {

bool never(const json::Value&) { return false; }
bool is_false(const json::Value& value) { return value.is_bool() && !value.get_bool(); }
bool is_zero(const json::Value& value) { return value.is_number() && value.to_number<double>() == 0; }
bool is_one(const json::Value& value) { return value.is_number() && value.to_number<double>() == 1; }
bool is_empty_array(const json::Value& value) { return value.is_array() && value.get_array().empty(); }
bool is_text(const json::Value& value, std::string_view text) {
  return value.is_string() && std::string_view(value.get_string()) == text;
}
bool is_medium(const json::Value& value) { return is_text(value, "medium"); }
// Without tools there is none to choose.
bool chooses_no_tool(const json::Value& value) { return is_text(value, "none") || is_text(value, "auto"); }
bool is_text_only(const json::Value& value) {
  return value.is_array() && value.get_array().size() == 1 && is_text(value.get_array()[0], "text");
}
bool is_plain_text_format(const json::Value& value) {
  if (!value.is_object() || value.get_object().size() != 1) return false;
  const json::Value* type = value.get_object().if_contains("type");
  return type != nullptr && is_text(*type, "text");
}

// What the public API defines and this server does not do: refused by name unless the value asks for nothing.
struct RefusedField {
  std::string_view name;
  bool (*asks_for_nothing)(const json::Value&);
  std::string_view why;
};
constexpr RefusedField kRefusedFields[] = {
    {"tools", is_empty_array, "tools are not supported yet"},
    {"functions", is_empty_array, "functions are not supported"},
    {"tool_choice", chooses_no_tool, "tool_choice is not supported yet"},
    {"function_call", chooses_no_tool, "function_call is not supported"},
    {"response_format", is_plain_text_format, "response_format is not supported yet, except {\"type\":\"text\"}"},
    {"logprobs", is_false, "logprobs are not supported yet"},
    {"top_logprobs", is_zero, "top_logprobs are not supported yet"},
    {"repetition_penalty", is_one, "repetition_penalty is not supported, except 1"},
    {"n", is_one, "n is not supported yet, except 1"},
    {"thinking_budget", never, "thinking_budget is not supported yet"},
    {"reasoning_effort", never, "reasoning_effort is not supported; see chat_template_kwargs"},
    {"verbosity", is_medium, "verbosity is not supported, except \"medium\""},
    {"modalities", is_text_only, "modalities are not supported, except [\"text\"]"},
    {"audio", never, "audio is not supported"},
    {"prediction", never, "prediction is not supported: the model drafts for itself"},
    {"web_search_options", never, "web_search_options is not supported"},
    {"moderation", never, "moderation is not supported"},
};

// Labels: the public API has them for its own books; here they are checked and have no effect.
constexpr std::string_view kTextLabels[] = {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
                                            "service_tier"};

void refuse_what_is_not_supported(RequestFields& fields) {
  for (const RefusedField& field : kRefusedFields) {
    const json::Value* value = fields.find(field.name);
    if (value == nullptr || field.asks_for_nothing(*value)) continue;
    fields.refuse(field.name, std::string(field.why), ErrorCode::Unsupported);
  }
}

void check_labels(RequestFields& fields) {
  for (const std::string_view label : kTextLabels) fields.text(label);
  fields.object("metadata");
  fields.boolean("store");
  fields.boolean("parallel_tool_calls");  // there are no tools to call
}

void read_messages(RequestFields& fields, json::Object& variables) {
  const json::Array* messages = fields.array("messages");
  if (messages == nullptr) return fields.refuse("messages", "messages is missing");
  ApiResult<json::Array> normalised = normalise_messages(*messages);
  if (!normalised) return fields.refuse(std::move(normalised).error());
  variables["messages"] = *std::move(normalised);
}

void read_template_kwargs(RequestFields& fields, json::Object& variables) {
  const json::Object* kwargs = fields.object("chat_template_kwargs");
  if (kwargs == nullptr) return;
  for (const auto& member : *kwargs) {
    const std::string_view key = member.key();
    if (key == "messages" || key == "tools" || key == "add_generation_prompt") {
      const std::string path = fmt::format("chat_template_kwargs.{}", key);
      return fields.refuse(path, fmt::format("{} cannot be set: the server sets it", path));
    }
    variables[key] = member.value();
  }
}

void read_max_tokens(RequestFields& fields, ChatRequest& chat) {
  const std::optional<std::int64_t> old_name = fields.integer("max_tokens", 1, kMostTokens);
  const std::optional<std::int64_t> new_name = fields.integer("max_completion_tokens", 1, kMostTokens);
  if (old_name && new_name && *old_name != *new_name) {
    fields.refuse("max_tokens", "max_tokens and max_completion_tokens differ: send one of them");
  }
  if (new_name) chat.max_tokens = static_cast<int>(*new_name);
  if (old_name && !new_name) chat.max_tokens = static_cast<int>(*old_name);
}

}  // namespace

ApiResult<ChatRequest> parse_chat(std::string_view body, const ServedModel& model, std::int64_t fresh_seed) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  ChatRequest chat;
  check_model(fields, model);
  read_conversation(fields, chat.variables);
  chat.variables["add_generation_prompt"] = true;
  read_max_tokens(fields, chat);
  read_drafts(fields, chat);
  read_cache(fields, chat);
  read_sampling(fields, model, fresh_seed, chat);
  read_stop(fields, "stop", chat);
  read_stream_options(fields, chat);
  chat.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  check_labels(fields);
  refuse_what_is_not_supported(fields);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  return chat;
}

void read_conversation(RequestFields& fields, json::Object& variables) {
  read_messages(fields, variables);
  read_template_kwargs(fields, variables);
}

ApiResult<BuiltPrompt> build_prompt(const PromptBuilder& prompts, const json::Object& variables) {
  Result<BuiltPrompt> prompt = prompts.build(variables);
  if (prompt) return *std::move(prompt);
  ApiError error = to_api_error(std::move(prompt).error());
  error.param = "messages";
  return refusal(std::move(error));
}

ApiResult<PreparedChat> prepare_chat(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                     std::int64_t fresh_seed) {
  ApiResult<ChatRequest> chat = parse_chat(body, model, fresh_seed);
  if (!chat) return refusal(std::move(chat).error());
  ApiResult<BuiltPrompt> prompt = build_prompt(prompts, chat->variables);
  if (!prompt) return refusal(std::move(prompt).error());
  PreparedChat prepared;
  prepared.thinking = prompt->thinking;
  ApiResult<Request> request = to_request(*chat, std::move(prompt->ids), model, "messages");
  if (!request) return refusal(std::move(request).error());
  prepared.chat = *std::move(chat);
  prepared.request = *std::move(request);
  return prepared;
}

}  // namespace rondo
