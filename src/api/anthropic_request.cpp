#include "api/anthropic_request.h"

#include <fmt/format.h>

#include <utility>

#include "api/anthropic_messages.h"
#include "api/anthropic_reply.h"
#include "api/anthropic_tools.h"
#include "api/openai_chat_reply.h"

namespace rondo {

namespace {

bool asks_for_nothing(const json::Value& value) {
  return (value.is_array() && value.get_array().empty()) || (value.is_object() && value.get_object().empty()) ||
         (value.is_bool() && !value.get_bool());
}

// What the public API defines and this server does not do: refused by name.
struct RefusedField {
  std::string_view name;
  std::string_view why;
};
constexpr RefusedField kRefusedFields[] = {
    {"container", "container is not supported: nothing is run here"},
    {"mcp_servers", "mcp_servers are not supported: this server calls no others"},
    {"context_management", "context_management is not supported: the conversation is taken as it is sent"},
    {"inference_geo", "inference_geo is not supported: the model runs where this server does"},
    {"diagnostics", "diagnostics are not supported"},
    {"output_format", "output_format is not supported: see output_config"},
};

void refuse_what_is_not_supported(RequestFields& fields) {
  for (const RefusedField& field : kRefusedFields) {
    const json::Value* value = fields.find(field.name);
    if (value != nullptr && !asks_for_nothing(*value)) {
      fields.refuse(field.name, std::string(field.why), ErrorCode::Unsupported);
    }
  }
  if (const auto speed = fields.text("speed"); speed && *speed != "standard") {
    fields.refuse("speed", "speed is not supported, except \"standard\"", ErrorCode::Unsupported);
  }
}

void check_labels(RequestFields& fields) {
  fields.object("metadata");
  for (const std::string_view label : {"service_tier", "user_profile_id", "workspace_id"}) fields.text(label);
}

void read_budget(RequestFields& thinking, const ServedModel& model, ChatRequest& chat) {
  const std::optional<std::int64_t> budget = thinking.integer("budget_tokens", 1, kMostTokens);
  if (!budget) return thinking.refuse("budget_tokens", "thinking.budget_tokens is missing");
  if (model.think_closing.empty()) {
    return thinking.refuse("budget_tokens", "thinking.budget_tokens is not supported: this model has no token </think>",
                           ErrorCode::Unsupported);
  }
  if (chat.max_tokens && *budget >= *chat.max_tokens) {
    return thinking.refuse("budget_tokens", fmt::format("thinking.budget_tokens must be less than max_tokens, which is "
                                                        "{}, not {}",
                                                        *chat.max_tokens, *budget));
  }
  chat.thinking_budget = static_cast<int>(*budget);
}

void read_display(RequestFields& thinking) {
  const std::optional<std::string> display = thinking.text("display");
  if (!display || *display == "summarized") return;
  thinking.refuse(
      "display",
      fmt::format("thinking.display '{}' is not supported, except \"summarized\", which here is the thought "
                  "itself",
                  *display),
      ErrorCode::Unsupported);
}

void read_thinking(RequestFields& fields, const ServedModel& model, ChatRequest& chat) {
  std::string type = "disabled";
  if (const json::Object* given = fields.object("thinking")) {
    RequestFields thinking(*given, "thinking");
    type = thinking.text("type").value_or("");
    if (type == "enabled") read_budget(thinking, model, chat);
    if (type == "enabled" || type == "adaptive") read_display(thinking);
    if (type != "enabled" && type != "adaptive" && type != "disabled") {
      thinking.refuse("type", fmt::format("thinking.type must be enabled, adaptive or disabled here, not '{}'", type));
    }
    thinking.refuse_unread();
    if (thinking.refusal()) return fields.refuse(*thinking.refusal());
  }
  const bool thinks = type != "disabled";
  if (model.reads_enable_thinking) {
    chat.variables["enable_thinking"] = thinks;
  } else if (thinks && !model.think_end_id) {
    fields.refuse("thinking", "thinking is not supported: this model's template does not know it",
                  ErrorCode::Unsupported);
  }
}

void read_output_config(RequestFields& fields, const ServedModel& model, ChatRequest& chat) {
  const json::Object* given = fields.object("output_config");
  if (given == nullptr) return;
  RequestFields config(*given, "output_config");
  const std::optional<std::string> effort = config.text("effort");
  if (effort && model.reads_reasoning_effort) {
    chat.variables["reasoning_effort"] = *effort;
  } else if (effort && *effort != "high") {  // the API's own default
    config.refuse(
        "effort",
        fmt::format("output_config.effort '{}' is not supported, except \"high\": this model's thought has no "
                    "grades",
                    *effort),
        ErrorCode::Unsupported);
  }
  chat.structure = read_output_format(config);
  config.refuse_unread();
  if (config.refusal()) fields.refuse(*config.refusal());
}

// What the prompt is made of, and so what count_tokens takes.
void read_prompt_fields(RequestFields& fields, const ServedModel& model, MessagesRequest& request) {
  ChatRequest& chat = request.chat;
  check_model(fields, model);
  read_cache_control(fields, request.has_cache_control);
  AnthropicConversation conversation = read_anthropic_conversation(fields);
  request.has_cache_control = request.has_cache_control || conversation.has_cache_control;
  chat.variables["messages"] = std::move(conversation.messages);
  chat.begun_reply = std::move(conversation.begun_reply);
  chat.tools = read_anthropic_tools(fields, request.has_cache_control);
  show_tools(fields, model, chat.tools, chat.variables);
  chat.variables["add_generation_prompt"] = true;
  read_thinking(fields, model, chat);
  read_output_config(fields, model, chat);
  read_template_kwargs(fields, chat.variables);
  refuse_what_is_not_supported(fields);
}

ApiResult<MessagesRequest> parse_prompt_alone(std::string_view body, const ServedModel& model) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  MessagesRequest request;
  read_prompt_fields(fields, model, request);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  return request;
}

}  // namespace

ApiResult<MessagesRequest> parse_messages(std::string_view body, const ServedModel& model, std::int64_t fresh_seed) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  MessagesRequest request;
  ChatRequest& chat = request.chat;
  const std::optional<std::int64_t> most = fields.integer("max_tokens", 1, kMostTokens);
  if (!most) fields.refuse("max_tokens", "max_tokens is missing");
  if (most) chat.max_tokens = static_cast<int>(*most);
  read_prompt_fields(fields, model, request);
  read_drafts(fields, chat);
  read_cache(fields, chat);
  read_sampling(fields, model, fresh_seed, chat);
  read_stop(fields, "stop_sequences", chat);
  if (fields.boolean("stream").value_or(false)) chat.delivery = Delivery::Streamed;
  chat.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  check_labels(fields);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  return request;
}

ApiResult<PreparedReply> prepare_messages(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                          const ReplyStamp& stamp) {
  ApiResult<MessagesRequest> parsed = parse_messages(body, model, stamp.fresh_seed);
  if (!parsed) return refusal(std::move(parsed).error());
  ApiResult<PreparedChat> prepared = prepare_requests(std::move(parsed->chat), model, prompts);
  if (!prepared) return refusal(std::move(prepared).error());
  MessageFacts facts;
  facts.chat = facts_of(*prepared, model, prompts, stamp);
  facts.prompt_tokens = static_cast<int>(prepared->requests[0].prompt_ids.size());
  facts.has_cache_control = parsed->has_cache_control;
  PreparedReply reply;
  reply.delivery = prepared->chat.delivery;
  reply.requests = std::move(prepared->requests);
  reply.writer = make_message_writer(std::move(facts), reply.delivery);
  return reply;
}

ApiResult<PreparedReply> prepare_count_tokens(std::string_view body, const ServedModel& model,
                                              const PromptBuilder& prompts, const ReplyStamp& /*stamp*/) {
  const ApiResult<MessagesRequest> parsed = parse_prompt_alone(body, model);
  if (!parsed) return refusal(parsed.error());
  const ApiResult<BuiltPrompt> prompt = build_prompt(prompts, parsed->chat.variables, parsed->chat.begun_reply);
  if (!prompt) return refusal(prompt.error());
  PreparedReply reply;
  reply.body = to_json(json::Object{{"input_tokens", prompt->ids.size()}});
  return reply;
}

}  // namespace rondo
