// What a schema is made of: $ref, allOf, anyOf and oneOf.

#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema_reader.h"

namespace rondo::grammar {

namespace {

constexpr std::size_t kMostMerged = 1'000'000;  // values in schemas put together by merging
constexpr int kMostHops = 100;                  // from $ref to $ref

std::size_t num_values(const json::Value& value) {
  std::size_t n = 1;
  if (value.is_array()) {
    for (const json::Value& each : value.get_array()) n += num_values(each);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) n += num_values(member.value());
  }
  return n;
}

json::Object without(const json::Object& schema, std::string_view keyword) {
  json::Object rest = schema;
  rest.erase(keyword);
  return rest;
}

bool is_bare_reference(const json::Value& value) {
  if (!value.is_object()) return false;
  const json::Value* reference = value.get_object().if_contains("$ref");
  return reference != nullptr && reference->is_string() && only_notes(without(value.get_object(), "$ref"));
}

}  // namespace

Result<json::Object> SchemaReader::merge(const Schema& a, const Schema& b, const std::string& path) {
  TRY(Schema merged, doc_.merge(a, b, path));
  num_merged_ += num_values(json::Value(merged));
  if (num_merged_ > kMostMerged) return unsupported(path, "its parts, put together, are too large");
  return merged;
}

// A recursive schema is a rule that calls itself.
Result<ExprId> SchemaReader::read_reference(const Schema& schema, const std::string& path, int depth) {
  const json::Value& reference = schema.at("$ref");
  const std::string ref_path = child_path(path, "$ref");
  if (!reference.is_string()) return wrong(ref_path, "a $ref is a string");
  TRY(SchemaAt target, doc_.resolve(reference.get_string(), ref_path));
  const Schema rest = without(schema, "$ref");
  if (only_notes(rest)) return call_rule(std::move(target));
  if (!target.schema->is_object()) return unsupported(ref_path, "what it points at is no object to add to");
  TRY(const Schema merged, merge(target.schema->get_object(), rest, path));
  return read_schema(json::Value(merged), path, depth + 1);
}

ExprId SchemaReader::call_rule(SchemaAt target) {
  const auto [found, is_new] = rules_at_.try_emplace({target.path, writing_}, RuleId{});
  if (is_new) {
    found->second = rules_.add_rule("schema, at " + target.path + ": the schema");
    open_.push_back({found->second, std::move(target), writing_});
  }
  return rules_.call(found->second);
}

Result<ExprId> SchemaReader::read_all_of(const Schema& schema, const std::string& path, int depth) {
  const json::Value& parts = schema.at("allOf");
  const std::string parts_path = child_path(path, "allOf");
  if (!parts.is_array() || parts.get_array().empty()) return wrong(parts_path, "allOf is an array of schemas");
  Schema merged = without(schema, "allOf");
  std::size_t i = 0;
  for (const json::Value& part : parts.get_array()) {
    const std::string part_path = child_path(parts_path, fmt::format("{}", i++));
    TRY(const json::Value* whole, whole_part(part, part_path));
    if (whole->is_bool() && whole->get_bool()) continue;
    if (!whole->is_object()) return unsupported(part_path, "a part of allOf must be an object");
    TRY(Schema next, merge(merged, whole->get_object(), part_path));
    merged = std::move(next);
  }
  return read_schema(json::Value(merged), path, depth + 1);
}

// What a part that is a $ref and nothing else stands for.
Result<const json::Value*> SchemaReader::whole_part(const json::Value& part, const std::string& path) const {
  const json::Value* whole = &part;
  for (int hops = 0; is_bare_reference(*whole); ++hops) {
    if (hops == kMostHops) return wrong(path, "a $ref that leads back to itself");
    TRY(const SchemaAt target, doc_.resolve(whole->get_object().at("$ref").get_string(), path));
    whole = target.schema;
  }
  return whole;
}

Result<ExprId> SchemaReader::read_any_of(const Schema& schema, std::string_view keyword, const std::string& path,
                                         int depth) {
  const json::Value& parts = schema.at(keyword);
  const std::string parts_path = child_path(path, keyword);
  if (!parts.is_array() || parts.get_array().empty()) {
    return wrong(parts_path, fmt::format("{} is an array of schemas", keyword));
  }
  if (keyword == "oneOf") TRY_VOID(check_exclusive(parts.get_array(), parts_path));
  const Schema rest = without(schema, keyword);
  std::vector<ExprId> alternatives;
  for (const json::Value& part : parts.get_array()) {
    const std::string part_path = child_path(parts_path, fmt::format("{}", alternatives.size()));
    json::Value whole = part;
    if (!only_notes(rest) && !part.is_bool()) {
      if (!part.is_object()) return wrong(part_path, "a schema is an object, true or false");
      TRY(Schema merged, merge(rest, part.get_object(), part_path));
      whole = std::move(merged);
    } else if (!only_notes(rest) && part.get_bool()) {
      whole = rest;
    }
    TRY(const ExprId alternative, read_schema(whole, part_path, depth + 1));
    alternatives.push_back(alternative);
  }
  return rules_.choice(alternatives);
}

Result<void> SchemaReader::check_exclusive(const json::Array& parts, const std::string& path) const {
  constexpr std::size_t kMostParts = 64;
  if (parts.size() > kMostParts) return unsupported(path, fmt::format("oneOf of more than {} parts", kMostParts));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (doc_.exclude(parts[i], parts[j])) continue;
      return unsupported(path,
                         fmt::format("a value may fit both part {} and part {}: only parts that differ in type, or in "
                                     "a required property of fixed value, are supported; anyOf takes any",
                                     j, i));
    }
  }
  return {};
}

}  // namespace rondo::grammar
