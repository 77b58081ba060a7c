#include "api/structure.h"

#include <fmt/format.h>

#include <utility>

#include "engine/grammar_rule.h"

namespace rondo {

namespace {

using grammar::Source;

std::optional<Source> read_json_schema_format(RequestFields& format) {
  const json::Object* given = format.object("json_schema");
  if (given == nullptr) {
    format.refuse("json_schema", fmt::format("{} is missing", format.path_of("json_schema")));
    return std::nullopt;
  }
  RequestFields fields(*given, format.path_of("json_schema"));
  fields.text("name");
  fields.text("description");
  fields.boolean("strict");
  std::optional<Source> source;
  if (const json::Value* schema = fields.find("schema")) source = Source::json_schema(*schema);
  if (!source) fields.refuse("schema", fmt::format("{} is missing", fields.path_of("schema")));
  fields.refuse_unread();
  if (fields.refusal()) format.refuse(*fields.refusal());
  return source;
}

std::optional<Source> read_response_format(RequestFields& fields) {
  const json::Object* given = fields.object("response_format");
  if (given == nullptr) return std::nullopt;
  RequestFields format(*given, "response_format");
  const std::string type = format.text("type").value_or("");
  std::optional<Source> source;
  if (type == "json_object") {
    source = Source::json_object();
  } else if (type == "json_schema") {
    source = read_json_schema_format(format);
  } else if (type != "text") {
    format.refuse("type", fmt::format("response_format.type must be text, json_object or json_schema, not '{}'", type));
  }
  format.refuse_unread();
  if (format.refusal()) fields.refuse(*format.refusal());
  return source;
}

std::optional<Source> read_structured_outputs(RequestFields& fields) {
  const json::Object* given = fields.object("structured_outputs");
  if (given == nullptr) return std::nullopt;
  RequestFields outputs(*given, "structured_outputs");
  std::vector<Source> sources;
  if (const json::Value* schema = outputs.find("json")) {
    if (schema->is_string()) {
      const Result<json::Value> parsed = parse_json(schema->get_string());
      if (!parsed) outputs.refuse("json", fmt::format("structured_outputs.json: {}", parsed.error().message));
      if (parsed) sources.push_back(Source::json_schema(*parsed));
    } else {
      sources.push_back(Source::json_schema(*schema));
    }
  }
  if (auto pattern = outputs.text("regex")) sources.push_back(Source::regex(*std::move(pattern)));
  if (auto text = outputs.text("grammar")) sources.push_back(Source::ebnf(*std::move(text)));
  if (const json::Array* texts = outputs.array("choice")) sources.push_back(Source::choice(*texts));
  if (outputs.boolean("json_object").value_or(false)) sources.push_back(Source::json_object());
  outputs.refuse_unread();
  if (outputs.refusal()) {
    fields.refuse(*outputs.refusal());
  } else if (sources.size() != 1) {
    fields.refuse("structured_outputs",
                  "structured_outputs takes exactly one of json, regex, choice, grammar and json_object");
  }
  return sources.size() == 1 ? std::optional(std::move(sources[0])) : std::nullopt;
}

}  // namespace

std::optional<Structure> read_structure(RequestFields& fields) {
  std::optional<Source> format = read_response_format(fields);
  std::optional<Source> outputs = read_structured_outputs(fields);
  if (format && outputs) {
    fields.refuse("structured_outputs", "response_format and structured_outputs both ask for a form: send one of them");
    return std::nullopt;
  }
  if (format) return Structure{*std::move(format), "response_format"};
  if (outputs) return Structure{*std::move(outputs), "structured_outputs"};
  return std::nullopt;
}

std::optional<Structure> with_tools(std::optional<Structure> format, const ToolUse& tools) {
  if (tools.choice == ToolChoice::None || tools.callable == nullptr || tools.callable->empty()) return format;
  std::vector<grammar::ToolFunction> functions;
  bool any_strict = false;
  for (const Tool& tool : *tools.callable) {
    functions.push_back({tool.name, tool.parameters, tool.strict});
    any_strict = any_strict || tool.strict;
  }
  using grammar::Calls;
  const Calls calls = tools.parallel ? Calls::Several : Calls::One;
  if (tools.choice == ToolChoice::Required) return Structure{Source::tool_calls(functions, calls), "tools"};
  if (format) return Structure{Source::either(format->source, Source::tool_calls(functions, calls)), format->field};
  if (tools.parallel && !any_strict) return std::nullopt;
  return Structure{Source::tool_calls(functions, tools.parallel ? Calls::TextThenSeveral : Calls::TextThenOne),
                   "tools"};
}

std::optional<Structure> read_output_format(RequestFields& output_config) {
  const json::Object* given = output_config.object("format");
  if (given == nullptr) return std::nullopt;
  RequestFields format(*given, output_config.path_of("format"));
  const std::string type = format.text("type").value_or("");
  if (type != "json_schema") {
    format.refuse("type", fmt::format("{} must be json_schema, not '{}'", format.path_of("type"), type));
  }
  const json::Value* schema = format.find("schema");
  if (schema == nullptr) format.refuse("schema", fmt::format("{} is missing", format.path_of("schema")));
  format.refuse_unread();
  if (format.refusal()) output_config.refuse(*format.refusal());
  if (schema == nullptr) return std::nullopt;
  return Structure{Source::json_schema(*schema), output_config.path_of("format")};
}

ApiResult<std::shared_ptr<const grammar::Grammar>> compile_structure(const Structure& structure,
                                                                     const ServedModel& model, const Request& request,
                                                                     bool thinking) {
  const auto refuse = [&](ErrorCode code, std::string_view why) {
    return refusal(ApiError{code, fmt::format("{}: {}", structure.field, why), structure.field, ""});
  };
  if (model.grammars == nullptr) return refuse(ErrorCode::Unsupported, model.why_no_grammars);
  if (request.end_ids.empty()) {
    return refuse(ErrorCode::InvalidArgument,
                  "a form has an end, so ignore_eos and a model without end tokens exclude it");
  }
  if (thinking && !model.think_end_id) {
    return refuse(ErrorCode::Unsupported, "the prompt opens a thought, and this model has no token that ends one");
  }
  auto compiled = model.grammars->get(structure.source);
  if (!compiled) return refuse(compiled.error().code, compiled.error().message);
  return *std::move(compiled);
}

std::shared_ptr<TokenRule> make_grammar_rule(std::shared_ptr<const grammar::Grammar> compiled, const ServedModel& model,
                                             const Request& request, bool thinking) {
  return std::make_shared<GrammarRule>(std::move(compiled), model.grammars->vocabulary(), request.end_ids,
                                       thinking ? model.think_end_id : std::nullopt);
}

}  // namespace rondo
