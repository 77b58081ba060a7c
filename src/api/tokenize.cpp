#include "api/tokenize.h"

#include <fmt/format.h>

#include <utility>

#include "api/openai_chat.h"
#include "text/utf8.h"

namespace rondo {

namespace {

ApiResult<PreparedReply> ready(json::Object document) {
  PreparedReply reply;
  reply.body = to_json(document);
  return reply;
}

ApiResult<std::vector<std::int32_t>> encode_conversation(RequestFields& fields, const ServedModel& model,
                                                         const PromptBuilder& prompts) {
  json::Object variables;
  read_conversation(fields, model, variables);
  variables["add_generation_prompt"] = fields.boolean("add_generation_prompt").value_or(true);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  ApiResult<BuiltPrompt> prompt = build_prompt(prompts, variables);
  if (!prompt) return refusal(std::move(prompt).error());
  return std::move(prompt->ids);
}

ApiResult<std::vector<std::int32_t>> encode_either(RequestFields& fields, const ServedModel& model,
                                                   const PromptBuilder& prompts) {
  const std::optional<std::string> content = fields.text("content");
  if (!content && fields.find("messages") != nullptr) return encode_conversation(fields, model, prompts);
  if (!content) fields.refuse("content", "content is missing: a text, or messages");
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  return prompts.encode(*content);
}

}  // namespace

std::vector<std::int32_t> read_token_ids(RequestFields& fields, std::string_view name, const json::Array& array,
                                         const ServedModel& model) {
  std::vector<std::int32_t> ids;
  ids.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    const json::Value& value = array[i];
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() >= model.vocab_size) {
      fields.refuse(name, fmt::format("{}[{}] must be a token id from 0 to {}, not {}", fields.path_of(name), i,
                                      model.vocab_size - 1,
                                      value.is_number() ? to_json(value) : std::string(kind_in_words(value))));
      return {};
    }
    ids.push_back(static_cast<std::int32_t>(value.get_int64()));
  }
  return ids;
}

ApiResult<PreparedReply> prepare_tokenize(std::string_view body, const ServedModel& model, const PromptBuilder& prompts,
                                          const ReplyStamp& /*stamp*/) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  check_model(fields, model);
  ApiResult<std::vector<std::int32_t>> ids = encode_either(fields, model, prompts);
  if (!ids) return refusal(std::move(ids).error());
  json::Object out;
  out["tokens"] = json::Array(ids->begin(), ids->end());
  out["count"] = ids->size();
  return ready(std::move(out));
}

ApiResult<PreparedReply> prepare_detokenize(std::string_view body, const ServedModel& model,
                                            const PromptBuilder& prompts, const ReplyStamp& /*stamp*/) {
  const ApiResult<json::Object> document = parse_body(body);
  if (!document) return refusal(document.error());
  RequestFields fields(*document, "");
  check_model(fields, model);
  const json::Array* tokens = fields.array("tokens");
  if (tokens == nullptr) fields.refuse("tokens", "tokens is missing: an array of token ids");
  std::vector<std::int32_t> ids;
  if (tokens != nullptr) ids = read_token_ids(fields, "tokens", *tokens, model);
  fields.refuse_unread();
  if (fields.refusal()) return refusal(*fields.refusal());
  json::Object out;
  out["content"] = replace_invalid_utf8(prompts.decode(ids));
  return ready(std::move(out));
}

}  // namespace rondo
