#include "grammar/json_schema.h"

#include <set>
#include <utility>

#include "grammar/schema_reader.h"

namespace rondo::grammar {

Result<ExprId> read_json_schema(Rules& rules, std::string_view schema) {
  TRY(json::Value root, parse_json(schema));
  return SchemaReader(rules, std::move(root), rules.empty()).read();
}

Result<std::vector<ToolParameter>> read_tool_parameters(Rules& rules, const json::Object& schema, ExprId bare_text,
                                                        Strictness strictness) {
  SchemaReader reader(rules, schema, bare_text);
  std::vector<ToolParameter> parameters;
  const json::Value* listed = schema.if_contains("properties");
  const json::Value* required = schema.if_contains("required");
  const json::Object properties = listed != nullptr && listed->is_object() ? listed->get_object() : json::Object{};
  const json::Array names = required != nullptr && required->is_array() ? required->get_array() : json::Array{};
  std::set<std::string_view> required_names;
  for (const json::Value& name : names) {
    if (name.is_string()) required_names.insert(name.get_string());
  }
  for (const auto& member : properties) {
    const std::string path = child_path("#/properties", member.key());
    Result<ExprId> value = reader.read_bare(member.value(), path);
    if (!value && strictness == Strictness::Strict) return tl::unexpected(value.error());
    parameters.push_back({member.key(), value.value_or(bare_text), required_names.contains(member.key())});
  }
  for (const json::Value& name : names) {
    if (!name.is_string() || properties.contains(name.get_string())) continue;
    parameters.push_back({std::string(name.get_string()), bare_text, true});
  }
  return parameters;
}

}  // namespace rondo::grammar
