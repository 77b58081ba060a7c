#include "api/argument_type.h"

#include <algorithm>

#include "grammar/schema_doc.h"

namespace rondo {

namespace {

// kFraction: a number that is no integer.
constexpr unsigned kString = 1, kNull = 2, kBoolean = 4, kInteger = 8, kFraction = 16, kArray = 32, kObject = 64,
                   kAny = 127;
constexpr int kMostParts = 1000;  // looked at for one argument: a schema may refer to itself, many times over
constexpr std::string_view kSpace = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  const std::size_t last = text.find_last_not_of(kSpace);
  return last == std::string_view::npos ? std::string_view() : text.substr(begin, last + 1 - begin);
}

unsigned kind_named(std::string_view type) {
  if (type == "string") return kString;
  if (type == "null") return kNull;
  if (type == "boolean") return kBoolean;
  if (type == "integer") return kInteger;
  if (type == "number") return kInteger | kFraction;
  if (type == "array") return kArray;
  return type == "object" ? kObject : 0;
}

unsigned kind_of(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return kNull;
    case boost::json::kind::bool_: return kBoolean;
    case boost::json::kind::string: return kString;
    case boost::json::kind::array: return kArray;
    case boost::json::kind::object: return kObject;
    case boost::json::kind::double_: return kInteger | kFraction;
    default: return kInteger;
  }
}

unsigned kinds_of_type(const json::Value& type) {
  if (type.is_string()) return kind_named(type.get_string());
  unsigned kinds = 0;
  if (type.is_array()) {
    for (const json::Value& each : type.get_array()) {
      if (each.is_string()) kinds |= kind_named(each.get_string());
    }
  }
  return kinds;
}

unsigned kinds_of_values(const json::Value& values) {
  unsigned kinds = 0;
  if (values.is_array()) {
    for (const json::Value& each : values.get_array()) kinds |= kind_of(each);
  }
  return kinds;
}

// The part of the document that "#/..." points to; nullptr when there is none.
const json::Value* find_reference(const json::Object& document, std::string_view reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const json::Value* at = nullptr;
  for (std::string_view rest = reference.substr(2);;) {
    const std::size_t slash = rest.find('/');
    const auto step = grammar::decode_step(rest.substr(0, slash));
    if (!step) return nullptr;
    at = at == nullptr ? document.if_contains(*step) : grammar::find_child(*at, *step);
    if (at == nullptr || slash == std::string_view::npos) return at;
    rest.remove_prefix(slash + 1);
  }
}

// Reads one schema for the kinds of JSON it allows.
class KindsReader {
 public:
  explicit KindsReader(const json::Object& document) : document_(document) {}

  unsigned kinds_of(const json::Value& schema) {
    if (!schema.is_object() || --parts_left_ < 0) return kAny;
    const json::Object& object = schema.get_object();
    if (const json::Value* reference = object.if_contains("$ref"); reference != nullptr && reference->is_string()) {
      const json::Value* target = find_reference(document_, reference->get_string());
      return target == nullptr ? kAny : kinds_of(*target);
    }
    if (const json::Value* type = object.if_contains("type")) return kinds_of_type(*type);
    if (const json::Value* values = object.if_contains("enum")) return kinds_of_values(*values);
    if (const json::Value* value = object.if_contains("const")) return kind_of(*value);
    if (const json::Value* branches = object.if_contains("anyOf")) return union_of(*branches);
    if (const json::Value* branches = object.if_contains("oneOf")) return union_of(*branches);
    const json::Value* parts = object.if_contains("allOf");
    return parts == nullptr ? kAny : common_to(*parts);
  }

 private:
  unsigned union_of(const json::Value& branches) {
    unsigned kinds = 0;
    if (!branches.is_array()) return kAny;
    for (const json::Value& branch : branches.get_array()) kinds |= kinds_of(branch);
    return kinds;
  }
  unsigned common_to(const json::Value& parts) {
    unsigned kinds = kAny;
    if (!parts.is_array()) return kAny;
    for (const json::Value& part : parts.get_array()) kinds &= kinds_of(part);
    return kinds;
  }
  const json::Object& document_;
  int parts_left_ = kMostParts;
};

const json::Object* find_properties(const json::Object& parameters) {
  const json::Value* properties = parameters.if_contains("properties");
  return properties != nullptr && properties->is_object() ? &properties->get_object() : nullptr;
}

bool is_number_text(std::string_view text, std::string_view chars) {
  return (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) &&
         text.find_first_not_of(chars) == std::string_view::npos;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace

ArgumentType ArgumentType::of(const json::Object& parameters, std::string_view key) {
  const json::Object* properties = find_properties(parameters);
  const json::Value* schema = properties == nullptr ? nullptr : properties->if_contains(key);
  const unsigned kinds = schema == nullptr ? kAny : KindsReader(parameters).kinds_of(*schema);
  return ArgumentType(kinds == 0 ? kAny : kinds);  // a type that we do not know says nothing
}

// Models trained on Python write its words too; they are taken where the argument cannot be a string.
bool ArgumentType::begins_word(std::string_view text, std::string_view word, std::string_view python_word) const {
  return word.starts_with(text) || (!allows(kString) && python_word.starts_with(text));
}

// 5.0 is an integer as well; but where a string is allowed beside integers, "3.10" is a version and not a number.
bool ArgumentType::begins_number(std::string_view text) const {
  if (!allows(kInteger | kFraction)) return false;
  const bool only_digits = allows(kString) && !allows(kFraction);
  return is_number_text(text, only_digits ? "-0123456789" : "+-.0123456789eE");
}

bool ArgumentType::may_not_be_string(std::string_view begun) const {
  if (kinds_ == kString) return false;
  const std::string_view text = trimmed(begun);
  if (text.empty()) return true;
  if (text[0] == '{') return allows(kObject);
  if (text[0] == '[') return allows(kArray);
  return (allows(kNull) && begins_word(text, "null", "None")) ||
         (allows(kBoolean) && (begins_word(text, "true", "True") || begins_word(text, "false", "False"))) ||
         begins_number(text);
}

std::string ArgumentType::to_json(std::string_view text) const {
  if (!may_not_be_string(text)) return json_string(text);
  const std::string_view value = trimmed(text);
  if (value == "None") return "null";
  if (value == "True") return "true";
  if (value == "False") return "false";
  // As it stands: a number keeps all its digits.
  return parse_json(value) ? std::string(value) : json_string(text);
}

bool takes_argument(const json::Object& parameters, std::string_view key) {
  const json::Object* properties = find_properties(parameters);
  const json::Value* others = parameters.if_contains("additionalProperties");
  const bool is_closed = properties != nullptr && others != nullptr && others->is_bool() && !others->get_bool();
  return !is_closed || properties->contains(key);
}

}  // namespace rondo
