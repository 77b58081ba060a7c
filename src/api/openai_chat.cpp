#include "api/openai_chat.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "api/openai_messages.h"
#include "engine/thinking_budget.h"

namespace rondo {

namespace {

bool never(const json::Value&) { return false; }
bool is_one(const json::Value& value) { return value.is_number() && value.to_number<double>() == 1; }
bool is_empty_array(const json::Value& value) { return value.is_array() && value.get_array().empty(); }
bool is_text(const json::Value& value, std::string_view text) {
  return value.is_string() && std::string_view(value.get_string()) == text;
}
bool is_medium(const json::Value& value) { return is_text(value, "medium"); }
bool chooses_no_function(const json::Value& value) { return is_text(value, "none") || is_text(value, "auto"); }
bool is_text_only(const json::Value& value) {
  return value.is_array() && value.get_array().size() == 1 && is_text(value.get_array()[0], "text");
}

// What the public API defines and this server does not do: refused by name unless the value asks for nothing.
struct RefusedField {
  std::string_view name;
  bool (*asks_for_nothing)(const json::Value&);
  std::string_view why;
};
constexpr RefusedField kRefusedFields[] = {
    {"functions", is_empty_array, "functions are not supported: use tools"},
    {"function_call", chooses_no_function, "function_call is not supported: use tool_choice"},
    {"repetition_penalty", is_one, "repetition_penalty is not supported, except 1"},
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
}

void read_messages(RequestFields& fields, json::Object& variables) {
  const json::Array* messages = fields.array("messages");
  if (messages == nullptr) return fields.refuse("messages", "messages is missing");
  ApiResult<json::Array> normalised = normalise_messages(*messages);
  if (!normalised) return fields.refuse(std::move(normalised).error());
  variables["messages"] = *std::move(normalised);
}

void read_effort(RequestFields& fields, const ServedModel& model, json::Object& variables) {
  const std::optional<std::string> effort = fields.text("reasoning_effort");
  if (!effort) return;
  const bool thinks = *effort != "none";
  if (!model.reads_enable_thinking && !(thinks && model.reads_reasoning_effort)) {
    return fields.refuse("reasoning_effort",
                         "reasoning_effort is not supported: this model's template does not know it",
                         ErrorCode::Unsupported);
  }
  if (model.reads_enable_thinking) variables["enable_thinking"] = thinks;
  if (!thinks) return;
  if (model.reads_reasoning_effort) {
    variables["reasoning_effort"] = *effort;
  } else if (*effort != "medium") {
    fields.refuse(
        "reasoning_effort",
        fmt::format("reasoning_effort '{}' is not supported: this model's thought has no grades. 'none' turns "
                    "it off, 'medium' on, and thinking_budget bounds it",
                    *effort),
        ErrorCode::Unsupported);
  }
}

void read_logprobs(RequestFields& fields, ChatRequest& chat) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const std::optional<std::int64_t> top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (top.value_or(0) > 0 && !wanted) fields.refuse("top_logprobs", "top_logprobs needs logprobs: true");
  if (wanted) chat.num_top_logprobs = static_cast<int>(top.value_or(0));
}

void read_thinking_budget(RequestFields& fields, const ServedModel& model, ChatRequest& chat) {
  const std::optional<std::int64_t> budget = fields.integer("thinking_budget", 0, kMostTokens);
  if (!budget) return;
  if (model.think_closing.empty()) {
    fields.refuse("thinking_budget", "thinking_budget is not supported: this model has no token </think>",
                  ErrorCode::Unsupported);
  }
  chat.thinking_budget = static_cast<int>(*budget);
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

// A choice's own: a rule moves with its reply.
std::shared_ptr<TokenRule> make_rule(const PreparedChat& prepared, const Request& request,
                                     const std::shared_ptr<const grammar::Grammar>& form, const ServedModel& model) {
  std::shared_ptr<TokenRule> rule;
  if (form != nullptr) rule = make_grammar_rule(form, model, request, prepared.thinking);
  if (!prepared.chat.thinking_budget || !prepared.thinking) return rule;
  return std::make_shared<ThinkingBudget>(*prepared.chat.thinking_budget, model.think_closing, *model.think_end_id,
                                          std::move(rule));
}

}  // namespace

ApiResult<ChatRequest> parse_chat(std::string_view body, const ServedModel& model, std::int64_t fresh_seed) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  ChatRequest chat;
  check_model(fields, model);
  chat.tools = read_conversation(fields, model, chat.variables);
  chat.variables["add_generation_prompt"] = true;
  read_max_tokens(fields, chat);
  read_drafts(fields, chat);
  read_cache(fields, chat);
  read_sampling(fields, model, fresh_seed, chat);
  chat.num_choices = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  read_logprobs(fields, chat);
  read_thinking_budget(fields, model, chat);
  read_stop(fields, "stop", chat);
  read_stream_options(fields, chat);
  chat.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  chat.structure = read_structure(fields);
  check_labels(fields);
  refuse_what_is_not_supported(fields);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  return chat;
}

ToolUse read_conversation(RequestFields& fields, const ServedModel& model, json::Object& variables) {
  read_messages(fields, variables);
  ToolUse tools = read_tools(fields);
  show_tools(fields, model, tools, variables);
  read_effort(fields, model, variables);
  read_template_kwargs(fields, variables);  // the last word is theirs
  return tools;
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

void show_tools(RequestFields& fields, const ServedModel& model, const ToolUse& use, json::Object& variables) {
  if (use.declared.empty()) return;
  if (!model.reads_tools) {
    fields.refuse("tools", "tools are not supported: this model's template does not show them to it",
                  ErrorCode::Unsupported);
  }
  variables["tools"] = use.declared;
}

ApiResult<BuiltPrompt> build_prompt(const PromptBuilder& prompts, const json::Object& variables,
                                    std::string_view begun_reply) {
  Result<BuiltPrompt> prompt = prompts.build(variables, begun_reply);
  if (prompt) return *std::move(prompt);
  ApiError error = to_api_error(std::move(prompt).error());
  error.param = "messages";
  return refusal(std::move(error));
}

ApiResult<PreparedChat> prepare_chat(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                     std::int64_t fresh_seed) {
  ApiResult<ChatRequest> chat = parse_chat(body, model, fresh_seed);
  if (!chat) return refusal(std::move(chat).error());
  return prepare_requests(*std::move(chat), model, prompts);
}

ApiResult<PreparedChat> prepare_requests(ChatRequest chat, const ServedModel& model, const PromptBuilder& prompts) {
  ApiResult<BuiltPrompt> prompt = build_prompt(prompts, chat.variables, chat.begun_reply);
  if (!prompt) return refusal(std::move(prompt).error());
  PreparedChat prepared;
  prepared.thinking = prompt->thinking;
  ApiResult<Request> request = to_request(chat, std::move(prompt->ids), model, "messages");
  if (!request) return refusal(std::move(request).error());
  if (!chat.tools.declared.empty() && chat.tools.choice == ToolChoice::None && model.tool_call_id) {
    request->draw.bias.push_back({*model.tool_call_id, -std::numeric_limits<float>::infinity()});
  }
  std::shared_ptr<const grammar::Grammar> form;
  if (const auto structure = with_tools(chat.structure, chat.tools)) {
    const auto compiled = compile_structure(*structure, model, *request, prepared.thinking);
    if (!compiled) return refusal(compiled.error());
    form = *compiled;
  }
  prepared.chat = std::move(chat);
  for (int i = 0; i < prepared.chat.num_choices; ++i) {
    Request& choice = prepared.requests.emplace_back(*request);
    choice.draw.seed = choice_seed(prepared.chat.seed, i);
    choice.rule = make_rule(prepared, choice, form, model);
  }
  return prepared;
}

}  // namespace rondo
