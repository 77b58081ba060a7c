// What a schema allows that has no parts left: values, or types with what is said of each.

#include <fmt/format.h>

#include "grammar/regex.h"
#include "grammar/schema_reader.h"
#include "grammar/string_formats.h"

namespace rondo::grammar {

Result<ExprId> SchemaReader::read_values(const Schema& schema, const std::string& path) {
  const bool has_const = schema.contains("const");
  const std::string values_path = child_path(path, has_const ? "const" : "enum");
  for (const auto& member : schema) {
    const std::string_view key = member.key();
    if (is_note(key) || key == "type" || key == "const" || key == "enum") continue;
    return unsupported(child_path(path, key), fmt::format("'{}' beside enum or const is not supported", key));
  }
  if (has_const && schema.contains("enum")) return unsupported(path, "enum and const together are not supported");
  const json::Value& given = schema.at(has_const ? "const" : "enum");
  if (!has_const && !given.is_array()) return wrong(values_path, "enum is an array of values");
  const json::Array values = has_const ? json::Array{given} : given.get_array();
  TRY(const unsigned types, types_of(schema, path));
  std::vector<ExprId> texts;
  for (const json::Value& value : values) {
    if ((type_of_value(value) & types) == 0) continue;
    const bool is_bare = writing_ == Writing::Bare && value.is_string();
    texts.push_back(is_bare ? rules_.bytes(value.get_string()) : json_.value(value));
  }
  if (texts.empty()) return wrong(values_path, "no value is left to choose");
  return rules_.choice(texts);
}

Result<ExprId> SchemaReader::read_types(const Schema& schema, const std::string& path, int depth) {
  TRY(const unsigned types, types_of(schema, path));
  if (types == kAllTypes && only_notes(schema)) return any_value();
  std::vector<ExprId> alternatives;
  if ((types & kNull) != 0) alternatives.push_back(rules_.bytes("null"));
  if ((types & kBoolean) != 0) alternatives.push_back(rules_.choice({rules_.bytes("true"), rules_.bytes("false")}));
  if ((types & kFraction) != 0) {
    TRY(const NumberBounds bounds, read_number_bounds(schema, path));
    alternatives.push_back(json_.number(bounds.low, bounds.high));
  } else if ((types & kInteger) != 0) {
    TRY(const IntegerBounds bounds, read_integer_bounds(schema, path));
    alternatives.push_back(json_.integer(bounds.low, bounds.high));
  }
  if ((types & kString) != 0) {
    TRY(const ExprId string, read_string(schema, path));
    alternatives.push_back(string);
  }
  if ((types & kArray) != 0) {
    TRY(const ExprId array, read_array(schema, path, depth));
    alternatives.push_back(array);
  }
  if ((types & kObject) != 0) {
    TRY(const ExprId object, read_object(schema, path, depth));
    alternatives.push_back(object);
  }
  return rules_.choice(alternatives);
}

Result<ExprId> SchemaReader::read_string(const Schema& schema, const std::string& path) {
  TRY(const CountBounds count, read_count_bounds(schema, "minLength", "maxLength", path));
  if (count.most != kNoLimit && count.most < count.least) return nothing();
  const bool is_bare = writing_ == Writing::Bare;
  std::vector<ExprId> forms;
  for (const std::string_view keyword : {"pattern", "format"}) {
    const json::Value* value = schema.if_contains(keyword);
    if (value == nullptr) continue;
    const std::string at = child_path(path, keyword);
    if (!value->is_string()) return wrong(at, fmt::format("{} is a string", keyword));
    const std::string_view text = value->get_string();
    const bool is_pattern = keyword == "pattern";
    const std::optional<std::string_view> form = is_pattern ? text : pattern_of_format(text);
    if (!form)
      return unsupported(at, fmt::format("the format '{}' is not supported; these are: {}", text, known_formats()));
    const auto expr = read_regex(rules_, *form, is_pattern ? RegexMatch::Part : RegexMatch::Whole,
                                 is_bare ? write_chars_plainly : write_chars_in_json);
    if (!expr) return refuse_schema(expr.error().code, at, expr.error().message);
    forms.push_back(*expr);
  }
  if (is_bare) return bare_string(forms, count);
  if (forms.empty()) return json_.string(count.least, count.most);
  const ExprId chars = forms.size() == 1 ? forms[0] : rules_.both(forms[0], forms[1]);
  return json_.quoted(count.any() ? chars : rules_.both(chars, json_.fixed_chars(count.least, count.most)));
}

ExprId SchemaReader::bare_string(const std::vector<ExprId>& forms, CountBounds count) {
  ExprId text = bare_text_;
  for (const ExprId form : forms) text = rules_.both(text, form);
  if (count.any()) return text;
  return rules_.both(text, rules_.repeat(rules_.chars(CharSet::all()), count.least, count.most));
}

}  // namespace rondo::grammar
