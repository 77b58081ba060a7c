#include "grammar/schema_doc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "grammar/char_classes.h"

namespace rondo::grammar {

namespace {

constexpr int kMostReferences = 32;  // after each other, with nothing between

const std::string_view kNotes[] = {"title",      "description", "default",   "examples",     "example",
                                   "$comment",   "$schema",     "$id",       "$defs",        "definitions",
                                   "deprecated", "readOnly",    "writeOnly", "discriminator"};

bool contains(const json::Array& values, const json::Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// enum, or const as an enum of one; nothing when it names no values.
std::optional<json::Array> values_of(const json::Object& schema) {
  if (const json::Value* only = schema.if_contains("const")) return json::Array{*only};
  const json::Value* values = schema.if_contains("enum");
  if (values != nullptr && values->is_array()) return values->get_array();
  return std::nullopt;
}

bool share_none(const json::Array& a, const json::Array& b) {
  return std::none_of(a.begin(), a.end(), [&](const json::Value& value) { return contains(b, value); });
}

bool requires_name(const json::Object& schema, std::string_view name) {
  const json::Value* required = schema.if_contains("required");
  return required != nullptr && required->is_array() && contains(required->get_array(), json::Value(name));
}

bool is_greater(const json::Value& a, const json::Value& b) {
  if (a.is_int64() && b.is_int64()) return a.get_int64() > b.get_int64();  // from 2^53 on doubles may be one
  return a.to_number<double>() > b.to_number<double>();
}

// Keywords of which the stricter one counts.
json::Value stricter(std::string_view keyword, const json::Value& a, const json::Value& b) {
  const bool is_least =
      keyword == "minimum" || keyword == "exclusiveMinimum" || keyword == "minLength" || keyword == "minItems";
  return is_greater(a, b) == is_least ? a : b;
}

const std::string_view kBounds[] = {"minimum", "exclusiveMinimum", "minLength", "minItems",
                                    "maximum", "exclusiveMaximum", "maxLength", "maxItems"};

json::Array union_of(const json::Array& a, const json::Array& b) {
  json::Array all = a;
  for (const json::Value& value : b) {
    if (!contains(all, value)) all.push_back(value);
  }
  return all;
}

bool closes_object(const json::Object& schema) {
  const json::Value* additional = schema.if_contains("additionalProperties");
  return additional != nullptr && !(additional->is_bool() && additional->get_bool());
}

json::Object properties_of(const json::Object& schema) {
  const json::Value* properties = schema.if_contains("properties");
  return properties != nullptr && properties->is_object() ? properties->get_object() : json::Object{};
}

// `items` of one is about all elements, and put beside `prefixItems` of the other it would be about those after them.
bool rules_on_first_items(const json::Object& one, const json::Object& other) {
  return one.contains("items") && !one.contains("prefixItems") && other.contains("prefixItems");
}

bool has_all_names(const json::Object& names, const json::Object& of) {
  return std::all_of(of.begin(), of.end(), [&](const auto& member) { return names.contains(member.key()); });
}

json::Value merge_properties(const json::Object& a, const json::Object& b) {
  json::Object all = a;
  for (const auto& member : b) {
    json::Value& place = all[member.key()];
    const bool is_new = place.is_null();
    if (is_new) {
      place = member.value();
    } else if (place != member.value()) {
      place = json::Object{{"allOf", json::Array{place, member.value()}}};
    }
  }
  return all;
}

// `type` of both as one array.
std::optional<json::Value> merge_types(const json::Value& a, const json::Value& b) {
  const auto names_of = [](const json::Value& type) { return type.is_array() ? type.get_array() : json::Array{type}; };
  json::Array both;
  for (const json::Value& one : names_of(a)) {
    for (const json::Value& other : names_of(b)) {
      if (!one.is_string() || !other.is_string()) return std::nullopt;
      const unsigned types = type_by_name(one.get_string()) & type_by_name(other.get_string());
      if (types != 0) both.push_back(types == kInteger ? json::Value("integer") : one);
    }
  }
  return json::Value(union_of({}, both));
}

}  // namespace

std::optional<std::string> decode_step(std::string_view step) {
  std::string decoded;
  for (std::size_t pos = 0; pos < step.size(); ++pos) {
    const char c = step[pos];
    if (c == '~' && pos + 1 < step.size() && (step[pos + 1] == '0' || step[pos + 1] == '1')) {
      decoded += step[++pos] == '0' ? '~' : '/';
    } else if (c == '%') {
      std::size_t at = pos + 1;
      const auto byte = read_hex(step, at, 2);
      if (!byte) return std::nullopt;
      decoded += static_cast<char>(*byte);
      pos = at - 1;
    } else {
      decoded += c;
    }
  }
  return decoded;
}

const json::Value* find_child(const json::Value& value, const std::string& step) {
  if (value.is_object()) return value.get_object().if_contains(step);
  if (!value.is_array() || step.empty() || step.size() > 6) return nullptr;
  if (!std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; })) return nullptr;
  return value.get_array().if_contains(static_cast<std::size_t>(std::stoi(step)));
}

std::string child_path(const std::string& path, std::string_view key) {
  std::string child = path + "/";
  for (const char c : key) {
    if (c == '~' || c == '/') {
      child += c == '~' ? "~0" : "~1";
    } else {
      child += c;
    }
  }
  return child;
}

tl::unexpected<Error> refuse_schema(ErrorCode code, const std::string& path, std::string_view why) {
  return failure(code, fmt::format("schema, at {}: {}", path, why));
}

bool is_note(std::string_view keyword) {
  return keyword.substr(0, 2) == "x-" || std::find(std::begin(kNotes), std::end(kNotes), keyword) != std::end(kNotes);
}

bool only_notes(const json::Object& schema) {
  return std::all_of(schema.begin(), schema.end(), [](const auto& member) { return is_note(member.key()); });
}

SchemaAt SchemaDoc::find(std::string_view reference) const {
  SchemaAt found{&root_, "#"};
  for (std::size_t pos = 1; pos < reference.size() && found.schema != nullptr;) {
    const std::size_t end = std::min(reference.find('/', pos + 1), reference.size());
    const auto step = decode_step(reference.substr(pos + 1, end - pos - 1));
    found.schema = step ? find_child(*found.schema, *step) : nullptr;
    if (step) found.path = child_path(found.path, *step);
    pos = end;
  }
  return found;
}

Result<SchemaAt> SchemaDoc::resolve(std::string_view reference, const std::string& path) const {
  if (reference.empty() || reference[0] != '#' || (reference.size() > 1 && reference[1] != '/')) {
    return refuse_schema(ErrorCode::Unsupported, path,
                         "a $ref is # or #/... inside this schema; others are not supported");
  }
  SchemaAt found = find(reference);
  if (found.schema != nullptr) return found;
  return refuse_schema(ErrorCode::InvalidArgument, path, fmt::format("$ref '{}' points at nothing", reference));
}

Result<json::Object> SchemaDoc::merge(const json::Object& a, const json::Object& b, const std::string& path) const {
  json::Object merged = a;
  for (const auto& member : b) {
    const std::string_view key = member.key();
    const json::Value* mine = a.if_contains(key);
    if (mine == nullptr) {
      merged[key] = member.value();
      continue;
    }
    if (*mine == member.value() || is_note(key)) continue;
    json::Value& place = merged[key];
    const bool both_numbers = mine->is_number() && member.value().is_number();
    const bool both_arrays = mine->is_array() && member.value().is_array();
    if (both_numbers && std::find(std::begin(kBounds), std::end(kBounds), key) != std::end(kBounds)) {
      place = stricter(key, *mine, member.value());
    } else if (key == "required" && both_arrays) {
      place = union_of(mine->get_array(), member.value().get_array());
    } else if (key == "enum" && both_arrays) {
      json::Array left;
      for (const json::Value& value : mine->get_array()) {
        if (contains(member.value().get_array(), value)) left.push_back(value);
      }
      place = left;
    } else if (key == "properties" && mine->is_object() && member.value().is_object()) {
      place = merge_properties(mine->get_object(), member.value().get_object());
    } else if (key == "items") {
      place = json::Object{{"allOf", json::Array{*mine, member.value()}}};
    } else if (const auto types = key == "type" ? merge_types(*mine, member.value()) : std::nullopt) {
      place = *types;
    } else {
      return refuse_schema(ErrorCode::Unsupported, path,
                           fmt::format("'{}' is said twice, in a way that cannot be put in one", key));
    }
  }
  const json::Object names_a = properties_of(a), names_b = properties_of(b);
  if ((closes_object(a) && !has_all_names(names_a, names_b)) ||
      (closes_object(b) && !has_all_names(names_b, names_a))) {
    return refuse_schema(ErrorCode::Unsupported, path,
                         "one part has properties that additionalProperties of another part rules on");
  }
  if (rules_on_first_items(a, b) || rules_on_first_items(b, a)) {
    return refuse_schema(ErrorCode::Unsupported, path, "one part has prefixItems that items of another part rules on");
  }
  return merged;
}

const json::Object* SchemaDoc::look_through(const json::Value& schema) const {
  const json::Value* at = &schema;
  for (int i = 0; i < kMostReferences && at->is_object(); ++i) {
    const json::Value* reference = at->get_object().if_contains("$ref");
    if (reference == nullptr) return &at->get_object();
    at = reference->is_string() ? find(reference->get_string()).schema : nullptr;
    if (at == nullptr) return nullptr;
  }
  return nullptr;
}

bool SchemaDoc::exclude(const json::Value& a, const json::Value& b) const {
  const json::Object *left = look_through(a), *right = look_through(b);
  if (left == nullptr || right == nullptr) return false;
  const bool says_more = left->contains("anyOf") || left->contains("oneOf") || left->contains("allOf") ||
                         right->contains("anyOf") || right->contains("oneOf") || right->contains("allOf");
  if (says_more) return false;
  // Only what `type` and values say binds: {"properties": ...} alone lets any number pass.
  const auto bound_types = [](const json::Object& schema) -> unsigned {
    if (!schema.contains("type") && !values_of(schema)) return kAllTypes;
    return types_of(schema, "").value_or(kAllTypes);
  };
  const unsigned common = bound_types(*left) & bound_types(*right);
  if (common == 0) return true;
  const auto left_values = values_of(*left), right_values = values_of(*right);
  if (left_values && right_values) return share_none(*left_values, *right_values);
  if (common != kObject) return false;
  const json::Object names = properties_of(*left), others = properties_of(*right);
  return std::any_of(names.begin(), names.end(), [&](const auto& member) {
    const json::Value* other = others.if_contains(member.key());
    if (other == nullptr || !requires_name(*left, member.key()) || !requires_name(*right, member.key())) return false;
    const json::Object *one = look_through(member.value()), *two = look_through(*other);
    if (one == nullptr || two == nullptr) return false;
    const auto a_values = values_of(*one), b_values = values_of(*two);
    return a_values && b_values && share_none(*a_values, *b_values);
  });
}

unsigned type_of_value(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return kNull;
    case boost::json::kind::bool_: return kBoolean;
    case boost::json::kind::string: return kString;
    case boost::json::kind::array: return kArray;
    case boost::json::kind::object: return kObject;
    case boost::json::kind::double_: return value.get_double() == std::floor(value.get_double()) ? kInteger : kFraction;
    default: return kInteger;
  }
}

unsigned type_by_name(std::string_view name) {
  constexpr std::pair<std::string_view, unsigned> kNames[] = {
      {"null", kNull},     {"boolean", kBoolean}, {"integer", kInteger}, {"number", kInteger | kFraction},
      {"string", kString}, {"array", kArray},     {"object", kObject}};
  for (const auto& [known, type] : kNames) {
    if (known == name) return type;
  }
  return 0;
}

Result<unsigned> types_of(const json::Object& schema, const std::string& path) {
  if (const json::Value* type = schema.if_contains("type")) {
    const json::Array names = type->is_array() ? type->get_array() : json::Array{*type};
    unsigned types = 0;
    for (const json::Value& name : names) {
      const unsigned known = name.is_string() ? type_by_name(name.get_string()) : 0;
      if (known == 0) {
        return refuse_schema(ErrorCode::InvalidArgument, child_path(path, "type"),
                             "a type is null, boolean, integer, number, string, array or object, or an array of these");
      }
      types |= known;
    }
    return types;
  }
  if (const auto values = values_of(schema)) {
    unsigned types = 0;
    for (const json::Value& value : *values) types |= type_of_value(value);
    return types;
  }
  constexpr std::pair<std::string_view, unsigned> kAbout[] = {{"properties", kObject},
                                                              {"required", kObject},
                                                              {"additionalProperties", kObject},
                                                              {"items", kArray},
                                                              {"prefixItems", kArray},
                                                              {"minItems", kArray},
                                                              {"maxItems", kArray},
                                                              {"minLength", kString},
                                                              {"maxLength", kString},
                                                              {"pattern", kString},
                                                              {"format", kString},
                                                              {"minimum", kInteger | kFraction},
                                                              {"maximum", kInteger | kFraction},
                                                              {"exclusiveMinimum", kInteger | kFraction},
                                                              {"exclusiveMaximum", kInteger | kFraction}};
  unsigned types = 0;
  for (const auto& [keyword, about] : kAbout) {
    if (schema.contains(keyword)) types |= about;
  }
  return types == 0 ? static_cast<unsigned>(kAllTypes) : types;
}

}  // namespace rondo::grammar
