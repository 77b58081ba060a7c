#include "api/openai_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/openai_messages.h"
#include "api/request_fields.h"

namespace rondo {

namespace {

constexpr std::size_t kMaxStopStrings = 16;

bool never(const json::Value&) { return false; }
bool is_false(const json::Value& value) { return value.is_bool() && !value.get_bool(); }
bool is_zero(const json::Value& value) { return value.is_number() && value.to_number<double>() == 0; }
bool is_one(const json::Value& value) { return value.is_number() && value.to_number<double>() == 1; }
bool is_empty_array(const json::Value& value) { return value.is_array() && value.get_array().empty(); }
bool is_empty_object(const json::Value& value) { return value.is_object() && value.get_object().empty(); }
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
    {"logit_bias", is_empty_object, "logit_bias is not supported yet"},
    {"presence_penalty", is_zero, "presence_penalty is not supported yet, except 0"},
    {"frequency_penalty", is_zero, "frequency_penalty is not supported yet, except 0"},
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
  // Nothing is cached yet, as the reply's counters say; so this holds as it is.
  fields.boolean("cache");
}

void check_model(RequestFields& fields, const ServedModel& model) {
  const std::optional<std::string> name = fields.text("model");
  if (!name || *name == model.name) return;
  std::string known = fmt::format("'{}'", model.name);
  for (const std::string& alias : model.aliases) {
    if (alias == "*" || alias == *name) return;
    known += fmt::format(", '{}'", alias);
  }
  fields.refuse(ApiError{ErrorCode::NotFound, fmt::format("model '{}' is not served here; served: {}", *name, known),
                         "model", "model_not_found"});
}

void read_messages(RequestFields& fields, ChatRequest& chat) {
  const json::Array* messages = fields.array("messages");
  if (messages == nullptr) return fields.refuse("messages", "messages is missing");
  ApiResult<json::Array> normalised = normalise_messages(*messages);
  if (!normalised) return fields.refuse(std::move(normalised).error());
  chat.variables["messages"] = *std::move(normalised);
  chat.variables["add_generation_prompt"] = true;
}

void read_template_kwargs(RequestFields& fields, ChatRequest& chat) {
  const json::Object* kwargs = fields.object("chat_template_kwargs");
  if (kwargs == nullptr) return;
  for (const auto& member : *kwargs) {
    const std::string_view key = member.key();
    if (key == "messages" || key == "tools" || key == "add_generation_prompt") {
      const std::string path = fmt::format("chat_template_kwargs.{}", key);
      return fields.refuse(path, fmt::format("{} cannot be set: the server sets it", path));
    }
    chat.variables[key] = member.value();
  }
}

void read_drafts(RequestFields& fields, ChatRequest& chat) {
  const auto depth = fields.integer("draft_depth", 0, 1 << 20);
  if (depth) chat.max_draft_depth = static_cast<int>(*depth);
  if (!fields.boolean("draft").value_or(true)) chat.max_draft_depth = 0;
}

void read_max_tokens(RequestFields& fields, ChatRequest& chat) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const std::optional<std::int64_t> old_name = fields.integer("max_tokens", 1, kMost);
  const std::optional<std::int64_t> new_name = fields.integer("max_completion_tokens", 1, kMost);
  if (old_name && new_name && *old_name != *new_name) {
    fields.refuse("max_tokens", "max_tokens and max_completion_tokens differ: send one of them");
  }
  if (new_name) chat.max_tokens = static_cast<int>(*new_name);
  if (old_name && !new_name) chat.max_tokens = static_cast<int>(*old_name);
}

void read_sampling(RequestFields& fields, const GenerationDefaults& defaults, ChatRequest& chat,
                   std::int64_t fresh_seed) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  DrawSettings& draw = chat.draw;
  draw.temperature = static_cast<float>(fields.number("temperature", 0, 2).value_or(defaults.temperature));
  draw.top_p = static_cast<float>(fields.number("top_p", 0, 1).value_or(defaults.top_p));
  draw.min_p = static_cast<float>(fields.number("min_p", 0, 1).value_or(defaults.min_p));
  // -1 is another common spelling of "off".
  draw.top_k = static_cast<int>(std::max<std::int64_t>(0, fields.integer("top_k", -1, kMost).value_or(defaults.top_k)));
  chat.seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())
                  .value_or(fresh_seed);
  draw.seed = static_cast<std::uint64_t>(chat.seed);
}

void read_stop(RequestFields& fields, ChatRequest& chat) {
  const json::Value* stop = fields.find("stop");
  if (stop == nullptr) return;
  const auto add = [&](const json::Value& value) {
    if (!value.is_string()) return fields.refuse("stop", "stop must be a string or an array of strings");
    if (value.get_string().empty()) return fields.refuse("stop", "stop strings must not be empty");
    chat.stop_strings.emplace_back(value.get_string());
  };
  if (!stop->is_array()) return add(*stop);
  if (stop->get_array().size() > kMaxStopStrings) {
    return fields.refuse(
        "stop", fmt::format("stop takes at most {} strings, not {}", kMaxStopStrings, stop->get_array().size()));
  }
  for (const json::Value& value : stop->get_array()) add(value);
}

void read_delivery(RequestFields& fields, ChatRequest& chat) {
  if (fields.boolean("stream").value_or(false)) chat.delivery = Delivery::Streamed;
  const json::Object* given = fields.object("stream_options");
  if (given == nullptr) return;
  if (chat.delivery != Delivery::Streamed) {
    return fields.refuse("stream_options", "stream_options is only allowed when stream is true");
  }
  RequestFields options(*given, "stream_options");
  chat.include_usage = options.boolean("include_usage").value_or(false);
  if (options.boolean("include_obfuscation").value_or(false)) {
    options.refuse("include_obfuscation", "stream_options.include_obfuscation is not supported",
                   ErrorCode::Unsupported);
  }
  options.refuse_unread();
  if (options.refusal()) fields.refuse(*options.refusal());
}

}  // namespace

ApiResult<ChatRequest> parse_chat(std::string_view body, const ServedModel& model, std::int64_t fresh_seed) {
  const Result<json::Value> document = parse_json(body);
  if (!document) return refusal(to_api_error(document.error()));
  if (!document->is_object()) {
    return refusal({ErrorCode::InvalidArgument,
                    fmt::format("the body must be a JSON object, not {}", kind_in_words(*document)), "", ""});
  }
  RequestFields fields(document->get_object(), "");
  ChatRequest chat;
  check_model(fields, model);
  read_messages(fields, chat);
  read_template_kwargs(fields, chat);
  read_max_tokens(fields, chat);
  read_drafts(fields, chat);
  read_sampling(fields, model.defaults, chat, fresh_seed);
  read_stop(fields, chat);
  read_delivery(fields, chat);
  chat.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  check_labels(fields);
  refuse_what_is_not_supported(fields);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  return chat;
}

ApiResult<Request> to_request(const ChatRequest& chat, BuiltPrompt prompt, const ServedModel& model) {
  const auto prompt_tokens = static_cast<std::int64_t>(prompt.ids.size());
  if (prompt_tokens == 0) return refusal({ErrorCode::InvalidArgument, "the prompt is empty", "messages", ""});
  const std::int64_t room = model.context_tokens - prompt_tokens;
  if (room < 1) {
    return refusal({ErrorCode::TooLong,
                    fmt::format("the prompt has {} tokens; with at least one for the reply it must fit the context of "
                                "{} tokens",
                                prompt_tokens, model.context_tokens),
                    "messages", ""});
  }
  if (chat.max_tokens && *chat.max_tokens > room) {
    return refusal(
        {ErrorCode::TooLong,
         fmt::format("the prompt has {} tokens and max_tokens asks for {} more: {} in all, but the context "
                     "is {} tokens",
                     prompt_tokens, *chat.max_tokens, prompt_tokens + *chat.max_tokens, model.context_tokens),
         "max_tokens", ""});
  }
  Request request;
  request.prompt_ids = std::move(prompt.ids);
  request.max_tokens =
      chat.max_tokens ? *chat.max_tokens : static_cast<int>(std::min<std::int64_t>(model.max_tokens, room));
  request.draw = chat.draw;
  if (!chat.ignore_eos) request.end_ids.assign(model.defaults.end_tokens.begin(), model.defaults.end_tokens.end());
  request.stop_strings = chat.stop_strings;
  request.max_draft_depth = chat.max_draft_depth;
  return request;
}

ApiResult<PreparedChat> prepare_chat(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                     std::int64_t fresh_seed) {
  ApiResult<ChatRequest> chat = parse_chat(body, model, fresh_seed);
  if (!chat) return refusal(std::move(chat).error());
  Result<BuiltPrompt> prompt = prompts.build(chat->variables);
  if (!prompt) {
    ApiError error = to_api_error(std::move(prompt).error());
    error.param = "messages";
    return refusal(std::move(error));
  }
  PreparedChat prepared;
  prepared.thinking = prompt->thinking;
  ApiResult<Request> request = to_request(*chat, *std::move(prompt), model);
  if (!request) return refusal(std::move(request).error());
  prepared.chat = *std::move(chat);
  prepared.request = *std::move(request);
  return prepared;
}

}  // namespace rondo
