#include "grammar/schema_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace rondo::grammar {

namespace {

constexpr int kMostDepth = 100;             // schemas inside schemas, merged ones included
constexpr std::size_t kMostReads = 50'000;  // schemas looked at

constexpr std::string_view kKnown[] = {"type",
                                       "enum",
                                       "const",
                                       "anyOf",
                                       "oneOf",
                                       "allOf",
                                       "$ref",
                                       "properties",
                                       "required",
                                       "additionalProperties",
                                       "items",
                                       "prefixItems",
                                       "minItems",
                                       "maxItems",
                                       "minLength",
                                       "maxLength",
                                       "pattern",
                                       "format",
                                       "minimum",
                                       "maximum",
                                       "exclusiveMinimum",
                                       "exclusiveMaximum"};

}  // namespace

Result<ExprId> SchemaReader::read() {
  TRY(const ExprId root, read_schema(doc_.root(), "#", 0));
  TRY_VOID(read_called());
  return root;
}

Result<ExprId> SchemaReader::read_bare(const json::Value& schema, const std::string& path) {
  writing_ = Writing::Bare;
  Result<ExprId> value = read_schema(schema, path, 0);
  const Result<void> called = value ? read_called() : Result<void>();
  writing_ = Writing::Json;
  if (value && called) return value;
  open_.clear();
  rules_at_.clear();
  return tl::unexpected(value ? called.error() : value.error());
}

// Reads rules that were called; not by recursion, as they may be many.
Result<void> SchemaReader::read_called() {
  while (!open_.empty()) {
    const Called called = std::move(open_.back());
    open_.pop_back();
    writing_ = called.writing;
    const Result<ExprId> body = read_schema(*called.target.schema, called.target.path, 0);
    writing_ = Writing::Json;
    if (!body) return tl::unexpected(body.error());
    rules_.define(called.rule, *body);
  }
  return {};
}

Result<ExprId> SchemaReader::read_inner(const json::Value& value, const std::string& path, int depth) {
  const Writing outer = std::exchange(writing_, Writing::Json);
  Result<ExprId> inner = read_schema(value, path, depth + 1);
  writing_ = outer;
  return inner;
}

Result<ExprId> SchemaReader::read_schema(const json::Value& value, const std::string& path, int depth) {
  if (depth > kMostDepth) return unsupported(path, fmt::format("schemas nest deeper than {}", kMostDepth));
  if (++num_reads_ > kMostReads) return unsupported(path, fmt::format("more than {} schemas in all", kMostReads));
  if (value.is_bool()) return value.get_bool() ? any_value() : nothing();
  if (!value.is_object()) return wrong(path, "a schema is an object, true or false");
  const Schema& schema = value.get_object();
  TRY_VOID(check_keywords(schema, path));
  if (schema.contains("$ref")) return read_reference(schema, path, depth);
  if (schema.contains("allOf")) return read_all_of(schema, path, depth);
  for (const std::string_view keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return read_any_of(schema, keyword, path, depth);
  }
  if (schema.contains("const") || schema.contains("enum")) return read_values(schema, path);
  return read_types(schema, path, depth);
}

Result<void> SchemaReader::check_keywords(const Schema& schema, const std::string& path) {
  for (const auto& member : schema) {
    const std::string_view key = member.key();
    if (is_note(key) || std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
    const bool asks_for_nothing = key == "uniqueItems" && member.value().is_bool() && !member.value().get_bool();
    if (!asks_for_nothing) return unsupported(child_path(path, key), fmt::format("'{}' is not supported", key));
  }
  return {};
}

}  // namespace rondo::grammar
