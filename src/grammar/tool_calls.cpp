#include "grammar/tool_calls.h"

#include <fmt/format.h>

#include <vector>

#include "base/json.h"
#include "grammar/grammar.h"
#include "grammar/json_schema.h"

namespace rondo::grammar {

namespace {

constexpr std::string_view kOpen = "<tool_call>", kValueEnd = "</parameter>";

ExprId text_without(Rules& rules, std::string_view part) {
  const ExprId any = rules.repeat(rules.chars(CharSet::all()), 0, kNoLimit);
  return rules.without(any, rules.sequence({any, rules.bytes(part), any}));
}

ExprId write_parameters(Rules& rules, const std::vector<ToolParameter>& parameters) {
  std::vector<ExprId> parts;
  for (const ToolParameter& parameter : parameters) {
    const ExprId whole = rules.sequence({rules.bytes(fmt::format("<parameter={}>\n", parameter.name)), parameter.value,
                                         rules.bytes(fmt::format("\n{}\n", kValueEnd))});
    parts.push_back(parameter.required ? whole : rules.optional(whole));
  }
  return rules.sequence(parts);
}

}  // namespace

Result<ExprId> read_tool_calls(Rules& rules, std::string_view text, const Vocabulary& vocabulary) {
  TRY(const json::Value source, parse_json(text, 96));
  const ExprId bare_text = text_without(rules, kValueEnd);
  std::vector<ExprId> functions;
  for (const json::Value& tool : source.at("tools").as_array()) {
    const std::string_view name = tool.at("name").as_string();
    const auto strictness = tool.at("strict").as_bool() ? Strictness::Strict : Strictness::Lenient;
    const auto parameters = read_tool_parameters(rules, tool.at("parameters").as_object(), bare_text, strictness);
    if (!parameters) {
      return failure(parameters.error().code, fmt::format("tool '{}': {}", name, parameters.error().message));
    }
    functions.push_back(
        rules.sequence({rules.bytes(fmt::format("{}>\n", name)), write_parameters(rules, *parameters)}));
  }
  const ExprId call =
      rules.sequence({rules.bytes(vocabulary.tag(kOpen)), rules.bytes("\n<function="), rules.choice(functions),
                      rules.bytes("</function>\n"), rules.bytes(vocabulary.tag("</tool_call>"))});
  const ExprId more = rules.sequence({rules.optional(rules.bytes("\n")), call});
  const ExprId several = rules.sequence({call, rules.repeat(more, 0, kNoLimit)});
  const ExprId any_text = text_without(rules, kOpen);  // one spelled out in letters would look like a call
  switch (static_cast<Calls>(source.at("calls").as_int64())) {
    case Calls::One: return call;
    case Calls::Several: return several;
    case Calls::TextThenOne: return rules.sequence({any_text, rules.optional(call)});
    case Calls::TextThenSeveral: break;
  }
  return rules.sequence({any_text, rules.optional(several)});
}

}  // namespace rondo::grammar
