// Arrays: the listed items, then others by `items`. Objects: their properties in the schema's order, then others by
// additionalProperties.

#include <fmt/format.h>

#include "grammar/schema_reader.h"

namespace rondo::grammar {

namespace {

constexpr std::size_t kMostProperties = 1'000;  // of one object

}  // namespace

// An expression that may be repeated without being written out each time.
ExprId SchemaReader::as_rule(ExprId body, const std::string& path) {
  const RuleId rule = rules_.add_rule("schema, at " + path + ": the schema");
  rules_.define(rule, body);
  return rules_.call(rule);
}

Result<ExprId> SchemaReader::read_array(const Schema& schema, const std::string& path, int depth) {
  TRY(const CountBounds count, read_count_bounds(schema, "minItems", "maxItems", path));
  const json::Value* first_items = schema.if_contains("prefixItems");
  std::vector<ExprId> first;
  if (first_items != nullptr) {
    if (!first_items->is_array()) return wrong(child_path(path, "prefixItems"), "prefixItems is an array of schemas");
    for (const json::Value& item : first_items->get_array()) {
      const std::string at = child_path(child_path(path, "prefixItems"), fmt::format("{}", first.size()));
      TRY(const ExprId expr, read_inner(item, at, depth));
      first.push_back(expr);
    }
  }
  std::optional<ExprId> others;
  if (const json::Value* items = schema.if_contains("items")) {
    if (items->is_array())
      return unsupported(child_path(path, "items"), "an array of items is not supported; prefixItems is");
    if (!items->is_bool() || items->get_bool()) {
      TRY(const ExprId expr, read_inner(*items, child_path(path, "items"), depth));
      others = as_rule(expr, child_path(path, "items"));
    }
  } else if (first_items == nullptr) {
    others = json_.any_value();
  }
  return json_.array_of(first, others, count.least, count.most);
}

Result<ExprId> SchemaReader::read_object(const Schema& schema, const std::string& path, int depth) {
  const json::Value* listed = schema.if_contains("properties");
  const json::Value* required = schema.if_contains("required");
  const json::Value* additional = schema.if_contains("additionalProperties");
  if (listed != nullptr && !listed->is_object())
    return wrong(child_path(path, "properties"), "properties is an object of schemas");
  if (required != nullptr && !required->is_array())
    return wrong(child_path(path, "required"), "required is an array of names");
  const bool requires_any = required != nullptr && !required->get_array().empty();
  if (listed == nullptr && additional == nullptr && !requires_any) return json_.any_object();

  std::optional<ExprId> other_value;
  if (additional != nullptr && !(additional->is_bool() && !additional->get_bool())) {
    TRY(const ExprId expr, read_inner(*additional, child_path(path, "additionalProperties"), depth));
    other_value = as_rule(expr, child_path(path, "additionalProperties"));
  }
  TRY(const std::vector<JsonText::Member> properties, read_properties(schema, other_value, path, depth));
  std::optional<ExprId> other;
  if (other_value) other = rules_.sequence({other_names(schema), rules_.bytes("\""), json_.colon(), *other_value});
  return json_.object_of(properties, other);
}

Result<std::vector<JsonText::Member>> SchemaReader::read_properties(const Schema& schema,
                                                                    std::optional<ExprId> other_value,
                                                                    const std::string& path, int depth) {
  std::vector<JsonText::Member> properties;
  json::Array names;
  const json::Value* required = schema.if_contains("required");
  if (required != nullptr) names = required->get_array();
  std::map<std::string, bool, std::less<>> is_required;  // name -> met
  for (const json::Value& name : names) {
    if (!name.is_string()) return wrong(child_path(path, "required"), "required is an array of names");
    is_required.emplace(name.get_string(), false);
  }
  if (const json::Value* listed = schema.if_contains("properties")) {
    for (const auto& member : listed->get_object()) {
      const std::string at = child_path(child_path(path, "properties"), member.key());
      const auto found = is_required.find(std::string_view(member.key()));
      if (found != is_required.end()) found->second = true;
      TRY(const ExprId value, read_inner(member.value(), at, depth));
      properties.push_back({property(member.key(), value), found != is_required.end()});
    }
  }
  for (const auto& [name, met] : is_required) {
    if (met) continue;
    if (!other_value && schema.contains("additionalProperties")) {
      return wrong(child_path(path, "required"),
                   fmt::format("'{}' is required, but no property may have that name", name));
    }
    properties.push_back({property(name, other_value ? *other_value : json_.any_value()), true});
  }
  if (properties.size() > kMostProperties) {
    return unsupported(child_path(path, "properties"),
                       fmt::format("an object of more than {} properties is not supported", kMostProperties));
  }
  return properties;
}

ExprId SchemaReader::property(std::string_view name, ExprId value) {
  return rules_.sequence({rules_.bytes(fixed_spelling(name) + "\""), json_.colon(), value});
}

// Names that are none of those the schema lists, so that none comes twice.
ExprId SchemaReader::other_names(const Schema& schema) {
  std::vector<ExprId> taken;
  const auto add = [&](std::string_view name) { taken.push_back(rules_.bytes(fixed_spelling(name))); };
  if (const json::Value* listed = schema.if_contains("properties")) {
    for (const auto& member : listed->get_object()) add(member.key());
  }
  if (const json::Value* required = schema.if_contains("required")) {
    for (const json::Value& name : required->get_array()) add(name.get_string());
  }
  const ExprId any = json_.fixed_chars(0, kNoLimit);
  return taken.empty() ? any : rules_.without(any, rules_.choice(taken));
}

}  // namespace rondo::grammar
