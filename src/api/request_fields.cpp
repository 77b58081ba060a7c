#include "api/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rondo {

std::string_view kind_in_words(const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: return "null";
    case boost::json::kind::bool_: return "a boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64: return "an integer";
    case boost::json::kind::double_: return "a number";
    case boost::json::kind::string: return "a string";
    case boost::json::kind::array: return "an array";
    case boost::json::kind::object: return "an object";
  }
  return "unknown";
}

std::string RequestFields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void RequestFields::refuse(std::string_view name, std::string message, ErrorCode code) {
  refuse(ApiError{code, std::move(message), path_of(name), ""});
}

void RequestFields::refuse(ApiError error) {
  if (!refusal_) refusal_ = std::move(error);
}

void RequestFields::mistyped(std::string_view name, std::string_view expected, const json::Value& found) {
  refuse(name, fmt::format("{} must be {}, not {}", path_of(name), expected, kind_in_words(found)));
}

const json::Value* RequestFields::find(std::string_view name) {
  read_.emplace_back(name);
  if (refusal_) return nullptr;
  const json::Value* value = object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> RequestFields::boolean(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) {
    mistyped(name, "a boolean", *value);
    return std::nullopt;
  }
  return value->get_bool();
}

std::optional<std::int64_t> RequestFields::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_int64() && !value->is_uint64()) {
    mistyped(name, "an integer", *value);
    return std::nullopt;
  }
  if (value->is_uint64() || value->get_int64() < low || value->get_int64() > high) {
    refuse(name, fmt::format("{} must be from {} to {}, not {}", path_of(name), low, high, to_json(*value)));
    return std::nullopt;
  }
  return value->get_int64();
}

std::optional<double> RequestFields::number(std::string_view name, double low, double high) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    mistyped(name, "a number", *value);
    return std::nullopt;
  }
  const double number = value->to_number<double>();
  if (!(number >= low && number <= high)) {
    refuse(name, fmt::format("{} must be from {} to {}, not {}", path_of(name), low, high, number));
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> RequestFields::text(std::string_view name) {
  const json::Value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    mistyped(name, "a string", *value);
    return std::nullopt;
  }
  return std::string(value->get_string());
}

const json::Object* RequestFields::object(std::string_view name) {
  const json::Value* value = find(name);
  if (value != nullptr && !value->is_object()) {
    mistyped(name, "an object", *value);
    return nullptr;
  }
  return value == nullptr ? nullptr : &value->get_object();
}

const json::Array* RequestFields::array(std::string_view name) {
  const json::Value* value = find(name);
  if (value != nullptr && !value->is_array()) {
    mistyped(name, "an array", *value);
    return nullptr;
  }
  return value == nullptr ? nullptr : &value->get_array();
}

void RequestFields::refuse_unread() {
  for (const auto& member : *object_) {
    const std::string_view name = member.key();
    if (member.value().is_null() || std::find(read_.begin(), read_.end(), name) != read_.end()) continue;
    refuse(name, fmt::format("unknown field {}", path_of(name)), ErrorCode::Unsupported);
  }
}

}  // namespace rondo
