#include "api/completions_request.h"

#include <fmt/format.h>

#include <utility>

#include "api/completions_reply.h"
#include "api/tokenize.h"
#include "text/utf8.h"

namespace rondo {

namespace {

constexpr std::string_view kPromptForms =
    "prompt must be a string, an array of strings, an array of token ids, or an array of such arrays";

// Reads the prompts one by one; `echoes` gets the text of each.
class PromptReader {
 public:
  PromptReader(RequestFields& fields, const ServedModel& model, const PromptBuilder& prompts)
      : fields_(fields), model_(model), prompts_(prompts) {}

  void read(CompletionsRequest& request) {
    const json::Value* prompt = fields_.find("prompt");
    if (prompt == nullptr) return fields_.refuse("prompt", "prompt is missing");
    if (!prompt->is_array()) return read_one(*prompt, request);
    const json::Array& array = prompt->get_array();
    if (array.empty()) return fields_.refuse("prompt", "prompt must hold at least one prompt or token id");
    if (array[0].is_number()) return read_ids(array, request);
    if (array.size() > kMaxChoices) {
      return fields_.refuse("prompt",
                            fmt::format("prompt takes at most {} prompts, not {}", kMaxChoices, array.size()));
    }
    for (const json::Value& each : array) read_one(each, request);
  }

 private:
  void read_one(const json::Value& prompt, CompletionsRequest& request) {
    if (fields_.refusal()) return;
    if (prompt.is_array()) return read_ids(prompt.get_array(), request);
    if (!prompt.is_string()) return fields_.refuse("prompt", std::string(kPromptForms));
    request.prompts.push_back(prompts_.encode(prompt.get_string()));
    request.echoes.emplace_back(prompt.get_string());
  }

  void read_ids(const json::Array& array, CompletionsRequest& request) {
    std::vector<std::int32_t> ids = read_token_ids(fields_, "prompt", array, model_);
    request.echoes.push_back(replace_invalid_utf8(prompts_.decode(ids)));
    request.prompts.push_back(std::move(ids));
  }

  RequestFields& fields_;
  const ServedModel& model_;
  const PromptBuilder& prompts_;
};

void read_choices(RequestFields& fields, CompletionsRequest& request) {
  request.num_choices = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  const auto choices = static_cast<std::int64_t>(request.prompts.size()) * request.num_choices;
  if (choices > kMaxChoices) {
    fields.refuse("n", fmt::format("{} prompts with n = {} make {} choices; at most {} are answered at once",
                                   request.prompts.size(), request.num_choices, choices, kMaxChoices));
  }
  // As many candidates as choices is what happens anyway.
  if (fields.integer("best_of", 1, kMostTokens).value_or(request.num_choices) != request.num_choices) {
    fields.refuse("best_of", "best_of is not supported, except equal to n: send n and choose among the choices",
                  ErrorCode::Unsupported);
  }
}

void read_echo(RequestFields& fields, CompletionsRequest& request) {
  request.num_top_logprobs = static_cast<int>(fields.integer("logprobs", 0, kMaxTopLogprobs).value_or(-1));
  const bool echo = fields.boolean("echo").value_or(false);
  if (!echo) request.echoes.clear();
  if (echo && request.num_top_logprobs >= 0) {
    fields.refuse("logprobs", "logprobs together with echo are not supported: the prompt's tokens are not scored",
                  ErrorCode::Unsupported);
  }
}

// Defined by the public API, or by servers like this one, and not done here.
void refuse_the_rest(RequestFields& fields) {
  if (!fields.text("suffix").value_or("").empty()) {
    fields.refuse("suffix", "suffix is not supported: this model continues text and does not fill gaps",
                  ErrorCode::Unsupported);
  }
  if (fields.number("repetition_penalty", -1e9, 1e9).value_or(1) != 1) {
    fields.refuse("repetition_penalty", "repetition_penalty is not supported, except 1", ErrorCode::Unsupported);
  }
  fields.text("user");  // a label
  fields.refuse_unread();
}

}  // namespace

ApiResult<CompletionsRequest> parse_completions(std::string_view body, const ServedModel& model,
                                                const PromptBuilder& prompts, std::int64_t fresh_seed) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  CompletionsRequest request;
  check_model(fields, model);
  PromptReader(fields, model, prompts).read(request);
  read_choices(fields, request);
  read_echo(fields, request);
  if (const auto most = fields.integer("max_tokens", 1, kMostTokens)) request.max_tokens = static_cast<int>(*most);
  read_drafts(fields, request);
  read_cache(fields, request);
  read_sampling(fields, model, fresh_seed, request);
  read_stop(fields, "stop", request);
  read_stream_options(fields, request);
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.structure = read_structure(fields);
  refuse_the_rest(fields);
  if (fields.refusal()) return refusal(*fields.refusal());
  return request;
}

ApiResult<PreparedReply> prepare_completions(std::string_view body, const ServedModel& model,
                                             const PromptBuilder& prompts, const ReplyStamp& stamp) {
  ApiResult<CompletionsRequest> parsed = parse_completions(body, model, prompts, stamp.fresh_seed);
  if (!parsed) return refusal(std::move(parsed).error());
  PreparedReply reply;
  reply.delivery = parsed->delivery;
  for (std::vector<std::int32_t>& prompt : parsed->prompts) {
    ApiResult<Request> request = to_request(*parsed, std::move(prompt), model, "prompt");
    if (!request) return refusal(std::move(request).error());
    std::shared_ptr<const grammar::Grammar> form;
    if (parsed->structure) {
      const auto compiled = compile_structure(*parsed->structure, model, *request, false);
      if (!compiled) return refusal(compiled.error());
      form = *compiled;
    }
    for (int i = 0; i < parsed->num_choices; ++i) {
      request->draw.seed = choice_seed(parsed->seed, i);
      reply.requests.push_back(*request);
      if (form != nullptr) reply.requests.back().rule = make_grammar_rule(form, model, *request, false);
    }
  }
  CompletionsFacts facts;
  facts.id = "cmpl-" + stamp.id;
  facts.created = stamp.created;
  facts.model = model.name;
  facts.seed = parsed->seed;
  facts.arithmetic = model.arithmetic;
  facts.num_choices = static_cast<int>(reply.requests.size());
  facts.choices_a_prompt = parsed->num_choices;
  facts.echoes = std::move(parsed->echoes);
  facts.has_logprobs = parsed->num_top_logprobs >= 0;
  facts.include_usage = parsed->include_usage;
  facts.prompts = &prompts;
  reply.writer = make_completions_writer(std::move(facts), reply.delivery);
  return reply;
}

}  // namespace rondo
