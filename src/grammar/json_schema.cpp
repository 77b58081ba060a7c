#include "grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_text.h"
#include "grammar/regex.h"
#include "grammar/schema_doc.h"
#include "grammar/string_formats.h"

namespace rondo::grammar {

namespace {

constexpr int kMostDepth = 100;                 // schemas inside schemas, merged ones included
constexpr std::size_t kMostReads = 50'000;      // schemas looked at
constexpr std::size_t kMostMerged = 1'000'000;  // values in schemas put together by merging
constexpr std::size_t kMostProperties = 1'000;  // of one object
constexpr int kMostCount = 1'000'000;

std::size_t num_values(const json::Value& value) {
  std::size_t n = 1;
  if (value.is_array()) {
    for (const json::Value& each : value.get_array()) n += num_values(each);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) n += num_values(member.value());
  }
  return n;
}

class SchemaReader {
 public:
  // bare_text: what a bare string may be.
  SchemaReader(Rules& rules, json::Value root, ExprId bare_text)
      : rules_(rules), json_(rules), doc_(std::move(root)), bare_text_(bare_text) {}

  Result<ExprId> read() {
    TRY(const ExprId root, read_schema(doc_.root(), "#", 0));
    TRY_VOID(read_called());
    return root;
  }

  // A value of the schema at `path` in bare writing. What a refused one has left behind is forgotten.
  Result<ExprId> read_bare(const json::Value& schema, const std::string& path) {
    writing_ = Writing::Bare;
    Result<ExprId> value = read_schema(schema, path, 0);
    const Result<void> called = value ? read_called() : Result<void>();
    writing_ = Writing::Json;
    if (value && called) return value;
    open_.clear();
    rules_at_.clear();
    return tl::unexpected(value ? called.error() : value.error());
  }

 private:
  using Schema = json::Object;
  // How the value that is being read is written. Bare: a string without quotes and escapes; what is inside an array or
  // object is JSON in any case.
  enum class Writing { Json, Bare };
  struct Called {
    RuleId rule;
    SchemaAt target;
    Writing writing;
  };
  struct Count {
    int least = 0, most = kNoLimit;
  };

  tl::unexpected<Error> wrong(const std::string& path, std::string_view why) const {
    return refuse_schema(ErrorCode::InvalidArgument, path, why);
  }
  tl::unexpected<Error> unsupported(const std::string& path, std::string_view why) const {
    return refuse_schema(ErrorCode::Unsupported, path, why);
  }
  // Reads rules that were called; not by recursion, as they may be many.
  Result<void> read_called() {
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

  // A schema of something inside an array or object.
  Result<ExprId> read_inner(const json::Value& value, const std::string& path, int depth) {
    const Writing outer = std::exchange(writing_, Writing::Json);
    Result<ExprId> inner = read_schema(value, path, depth + 1);
    writing_ = outer;
    return inner;
  }
  ExprId any_value() { return writing_ == Writing::Bare ? bare_text_ : json_.any_value(); }

  ExprId nothing() { return rules_.choice(std::span<const ExprId>()); }

  Result<ExprId> read_schema(const json::Value& value, const std::string& path, int depth) {
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

  Result<void> check_keywords(const Schema& schema, const std::string& path) const {
    static constexpr std::string_view kKnown[] = {"type",
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
    for (const auto& member : schema) {
      const std::string_view key = member.key();
      if (is_note(key) || std::find(std::begin(kKnown), std::end(kKnown), key) != std::end(kKnown)) continue;
      const bool asks_for_nothing = key == "uniqueItems" && member.value().is_bool() && !member.value().get_bool();
      if (!asks_for_nothing) return unsupported(child_path(path, key), fmt::format("'{}' is not supported", key));
    }
    return {};
  }

  static Schema without(const Schema& schema, std::string_view keyword) {
    Schema rest = schema;
    rest.erase(keyword);
    return rest;
  }
  static bool only_notes(const Schema& schema) {
    return std::all_of(schema.begin(), schema.end(), [](const auto& member) { return is_note(member.key()); });
  }

  Result<Schema> merge(const Schema& a, const Schema& b, const std::string& path) {
    TRY(Schema merged, doc_.merge(a, b, path));
    num_merged_ += num_values(json::Value(merged));
    if (num_merged_ > kMostMerged) return unsupported(path, "its parts, put together, are too large");
    return merged;
  }

  // A recursive schema is a rule that calls itself.
  Result<ExprId> read_reference(const Schema& schema, const std::string& path, int depth) {
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

  ExprId call_rule(SchemaAt target) {
    const auto [found, is_new] = rules_at_.try_emplace({target.path, writing_}, RuleId{});
    if (is_new) {
      found->second = rules_.add_rule("schema, at " + target.path + ": the schema");
      open_.push_back({found->second, std::move(target), writing_});
    }
    return rules_.call(found->second);
  }

  Result<ExprId> read_all_of(const Schema& schema, const std::string& path, int depth) {
    const json::Value& parts = schema.at("allOf");
    const std::string parts_path = child_path(path, "allOf");
    if (!parts.is_array() || parts.get_array().empty()) return wrong(parts_path, "allOf is an array of schemas");
    Schema merged = without(schema, "allOf");
    std::size_t i = 0;
    for (const json::Value& part : parts.get_array()) {
      const std::string part_path = child_path(parts_path, fmt::format("{}", i++));
      const json::Value* whole = &part;
      for (int hops = 0; is_bare_reference(*whole); ++hops) {
        if (hops == kMostDepth) return wrong(part_path, "a $ref that leads back to itself");
        TRY(const SchemaAt target, doc_.resolve(whole->get_object().at("$ref").get_string(), part_path));
        whole = target.schema;
      }
      if (whole->is_bool() && whole->get_bool()) continue;
      if (!whole->is_object()) return unsupported(part_path, "a part of allOf must be an object");
      TRY(Schema next, merge(merged, whole->get_object(), part_path));
      merged = std::move(next);
    }
    return read_schema(json::Value(merged), path, depth + 1);
  }

  static bool is_bare_reference(const json::Value& value) {
    if (!value.is_object()) return false;
    const json::Value* reference = value.get_object().if_contains("$ref");
    return reference != nullptr && reference->is_string() && only_notes(without(value.get_object(), "$ref"));
  }

  Result<ExprId> read_any_of(const Schema& schema, std::string_view keyword, const std::string& path, int depth) {
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

  Result<void> check_exclusive(const json::Array& parts, const std::string& path) {
    constexpr std::size_t kMostParts = 64;
    if (parts.size() > kMostParts) return unsupported(path, fmt::format("oneOf of more than {} parts", kMostParts));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (doc_.exclude(parts[i], parts[j])) continue;
        return unsupported(
            path, fmt::format("a value may fit both part {} and part {}: only parts that differ in type, or in "
                              "a required property of fixed value, are supported; anyOf takes any",
                              j, i));
      }
    }
    return {};
  }

  Result<ExprId> read_values(const Schema& schema, const std::string& path) {
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

  Result<ExprId> read_types(const Schema& schema, const std::string& path, int depth) {
    TRY(const unsigned types, types_of(schema, path));
    if (types == kAllTypes && only_notes(schema)) return any_value();
    std::vector<ExprId> alternatives;
    if ((types & kNull) != 0) alternatives.push_back(rules_.bytes("null"));
    if ((types & kBoolean) != 0) alternatives.push_back(rules_.choice({rules_.bytes("true"), rules_.bytes("false")}));
    if ((types & kFraction) != 0) {
      TRY(const ExprId number, read_number(schema, path));
      alternatives.push_back(number);
    } else if ((types & kInteger) != 0) {
      TRY(const ExprId integer, read_integer(schema, path));
      alternatives.push_back(integer);
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

  // The number at `keyword`; nullptr: none is given.
  Result<const json::Value*> find_number(const Schema& schema, std::string_view keyword,
                                         const std::string& path) const {
    const json::Value* value = schema.if_contains(keyword);
    if (value != nullptr && !value->is_number()) {
      return wrong(child_path(path, keyword), fmt::format("{} is a number", keyword));
    }
    return value;
  }

  struct Bounds {
    const json::Value *low, *high, *above, *below;  // nullptr: none
  };
  Result<Bounds> read_bounds(const Schema& schema, const std::string& path) const {
    Bounds bounds{};
    for (const auto& [keyword, place] :
         {std::pair{"minimum", &bounds.low}, std::pair{"maximum", &bounds.high},
          std::pair{"exclusiveMinimum", &bounds.above}, std::pair{"exclusiveMaximum", &bounds.below}}) {
      TRY(*place, find_number(schema, keyword, path));
    }
    return bounds;
  }

  // The whole number next to it, within what integers of our texts stay below. Not by way of a double where the schema
  // has an integer: from 2^53 on two of them would be one.
  enum class Side { Below, Above };
  static std::int64_t whole_number(const json::Value& number, Side side) {
    constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
    if (number.is_int64()) return std::clamp(number.get_int64(), -kMost, kMost);
    const double value = number.to_number<double>();
    constexpr auto kMostDouble = static_cast<double>(kMost);
    return static_cast<std::int64_t>(
        std::clamp(side == Side::Above ? std::ceil(value) : std::floor(value), -kMostDouble, kMostDouble));
  }

  Result<ExprId> read_integer(const Schema& schema, const std::string& path) {
    TRY(const Bounds bounds, read_bounds(schema, path));
    std::optional<std::int64_t> low, high;
    if (bounds.low != nullptr) low = whole_number(*bounds.low, Side::Above);
    if (bounds.above != nullptr) {
      const std::int64_t least = whole_number(*bounds.above, Side::Below) + 1;
      low = std::max(low.value_or(least), least);
    }
    if (bounds.high != nullptr) high = whole_number(*bounds.high, Side::Below);
    if (bounds.below != nullptr) {
      const std::int64_t most = whole_number(*bounds.below, Side::Above) - 1;
      high = std::min(high.value_or(most), most);
    }
    return json_.integer(low, high);
  }

  Result<ExprId> read_number(const Schema& schema, const std::string& path) {
    TRY(const Bounds bounds, read_bounds(schema, path));
    const auto to_bound = [&](const json::Value* at, const json::Value* beyond, std::string_view keyword,
                              bool is_low) -> Result<std::optional<JsonText::Bound>> {
      if (at == nullptr && beyond == nullptr) return std::nullopt;
      const double included = (at != nullptr ? at : beyond)->to_number<double>();
      const double excluded = (beyond != nullptr ? beyond : at)->to_number<double>();
      const bool excluded_counts = beyond != nullptr && (is_low ? excluded >= included : excluded <= included);
      const double value = excluded_counts ? excluded : included;
      constexpr double kMost = 1e12;
      if (value != std::floor(value) || std::abs(value) > kMost) {
        return unsupported(child_path(path, keyword),
                           "bounds of numbers must be whole and at most 1e12; integers may have others");
      }
      return JsonText::Bound{static_cast<std::int64_t>(value), !excluded_counts};
    };
    TRY(const auto low, to_bound(bounds.low, bounds.above, bounds.above ? "exclusiveMinimum" : "minimum", true));
    TRY(const auto high, to_bound(bounds.high, bounds.below, bounds.below ? "exclusiveMaximum" : "maximum", false));
    return json_.number(low, high);
  }

  Result<Count> read_count(const Schema& schema, std::string_view least, std::string_view most,
                           const std::string& path) const {
    Count count;
    for (const auto& [keyword, place] : {std::pair{least, &count.least}, std::pair{most, &count.most}}) {
      TRY(const json::Value* given, find_number(schema, keyword, path));
      if (given == nullptr) continue;
      const auto value = given->to_number<double>();
      if (value < 0 || value != std::floor(value)) {
        return wrong(child_path(path, keyword), fmt::format("{} is a whole number from 0", keyword));
      }
      if (value > kMostCount)
        return unsupported(child_path(path, keyword), fmt::format("{} above {} is not supported", keyword, kMostCount));
      *place = static_cast<int>(value);
    }
    return count;
  }

  Result<ExprId> read_string(const Schema& schema, const std::string& path) {
    TRY(const Count count, read_count(schema, "minLength", "maxLength", path));
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
    ExprId chars = forms.size() == 1 ? forms[0] : rules_.both(forms[0], forms[1]);
    if (count.least > 0 || count.most != kNoLimit)
      chars = rules_.both(chars, json_.fixed_chars(count.least, count.most));
    return json_.quoted(chars);
  }

  ExprId bare_string(const std::vector<ExprId>& forms, Count count) {
    ExprId text = bare_text_;
    for (const ExprId form : forms) text = rules_.both(text, form);
    if (count.least == 0 && count.most == kNoLimit) return text;
    return rules_.both(text, rules_.repeat(rules_.chars(CharSet::all()), count.least, count.most));
  }

  // An expression that may be repeated without being written out each time.
  ExprId as_rule(ExprId body, const std::string& path) {
    const RuleId rule = rules_.add_rule("schema, at " + path + ": the schema");
    rules_.define(rule, body);
    return rules_.call(rule);
  }

  Result<ExprId> read_array(const Schema& schema, const std::string& path, int depth) {
    TRY(const Count count, read_count(schema, "minItems", "maxItems", path));
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

  Result<ExprId> read_object(const Schema& schema, const std::string& path, int depth) {
    const json::Value* listed = schema.if_contains("properties");
    const json::Value* required = schema.if_contains("required");
    const json::Value* additional = schema.if_contains("additionalProperties");
    if (listed != nullptr && !listed->is_object())
      return wrong(child_path(path, "properties"), "properties is an object of schemas");
    if (required != nullptr && !required->is_array())
      return wrong(child_path(path, "required"), "required is an array of names");
    const bool lists_none =
        (listed == nullptr || listed->get_object().empty()) && (required == nullptr || required->get_array().empty());
    if (lists_none && additional == nullptr && listed == nullptr) return json_.any_object();

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

  Result<std::vector<JsonText::Member>> read_properties(const Schema& schema, std::optional<ExprId> other_value,
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

  ExprId property(std::string_view name, ExprId value) {
    return rules_.sequence({rules_.bytes(fixed_spelling(name) + "\""), json_.colon(), value});
  }

  // Names that are none of those the schema lists, so that none comes twice.
  ExprId other_names(const Schema& schema) {
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

  Rules& rules_;
  JsonText json_;
  SchemaDoc doc_;
  ExprId bare_text_;
  Writing writing_ = Writing::Json;
  std::map<std::pair<std::string, Writing>, RuleId> rules_at_;  // by the path of the schema
  std::vector<Called> open_;
  std::size_t num_reads_ = 0, num_merged_ = 0;
};

}  // namespace

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
