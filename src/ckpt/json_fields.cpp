#include "ckpt/json_fields.h"

#include <fmt/format.h>

#include "ckpt/safetensors.h"

namespace rondo {

namespace {

// A value in a message: as JSON, and no longer than a line can bear.
std::string excerpt(const json::Value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("a list of {}", value.get_array().size());
  constexpr std::size_t kShownBytes = 40;
  const auto* text = value.if_string();
  if (text != nullptr && (text->size() > kShownBytes || !is_printable_name(std::string_view(*text)))) {
    return text->empty() ? "an empty text" : fmt::format("a text of {} bytes", text->size());
  }
  return to_json(value);
}

std::optional<std::int64_t> find_whole(const json::Value& value) {
  if (value.is_int64()) return value.get_int64();
  return std::nullopt;  // Boost stores as uint64 only what int64 cannot hold
}

}  // namespace

const json::Value* Fields::find(std::string_view key) const {
  const json::Value* value = object_->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<Fields>> Fields::find_object(std::string_view key) const {
  const json::Value* value = find(key);
  if (value == nullptr) return std::optional<Fields>();
  if (!value->is_object()) return wrong(key, "an object");
  return Fields(value->get_object(), file_, fmt::format("{}{}.", path_, key));
}

Result<std::int64_t> Fields::whole(std::string_view key, Bounds<std::int64_t> bounds,
                                   std::optional<std::int64_t> fallback) const {
  const json::Value* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return missing(key);
  const auto number = find_whole(*value);
  if (!number || *number < bounds.least || *number > bounds.most) {
    return wrong(key, fmt::format("a whole number from {} to {}", bounds.least, bounds.most));
  }
  return *number;
}

Result<int> Fields::integer(std::string_view key, Bounds<int> bounds, std::optional<int> fallback) const {
  TRY(const std::int64_t number, whole(key, {bounds.least, bounds.most}, fallback));
  return static_cast<int>(number);
}

Result<double> Fields::number(std::string_view key, Bounds<double> bounds, std::optional<double> fallback) const {
  const json::Value* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) return missing(key);
  const std::string expected = fmt::format("a number from {} to {}", bounds.least, bounds.most);
  if (!value->is_number()) return wrong(key, expected);
  const auto number = value->to_number<double>();
  if (!(number >= bounds.least && number <= bounds.most)) return wrong(key, expected);
  return number;
}

Result<bool> Fields::flag(std::string_view key, bool fallback) const {
  const json::Value* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return wrong(key, "true or false");
  return value->get_bool();
}

Result<std::string> Fields::text(std::string_view key, std::optional<std::string> fallback) const {
  const json::Value* value = find(key);
  if (value == nullptr && fallback) return *std::move(fallback);
  if (value == nullptr) return missing(key);
  if (!value->is_string()) return wrong(key, "a text");
  return std::string(value->get_string());
}

Result<std::vector<int>> Fields::integers(std::string_view key, Bounds<int> bounds) const {
  const json::Value* value = find(key);
  std::vector<int> numbers;
  if (value == nullptr) return numbers;
  const std::string expected = fmt::format("whole numbers from {} to {}", bounds.least, bounds.most);
  const auto append = [&](const json::Value& each) {
    const auto number = find_whole(each);
    if (!number || *number < bounds.least || *number > bounds.most) return false;
    numbers.push_back(static_cast<int>(*number));
    return true;
  };
  if (!value->is_array()) {
    if (!append(*value)) return wrong(key, expected);
    return numbers;
  }
  for (const json::Value& each : value->get_array()) {
    if (!append(each)) {
      return failure(ErrorCode::Corrupt, fmt::format("{} holds {}, expected {}", shown(key), excerpt(each), expected));
    }
  }
  return numbers;
}

int Fields::count_false() const {
  int count = 0;
  for (const auto& member : *object_) count += member.value().is_bool() && !member.value().get_bool() ? 1 : 0;
  return count;
}

std::string Fields::shown(std::string_view key) const { return fmt::format("{}: {}{}", file_, path_, key); }

tl::unexpected<Error> Fields::missing(std::string_view key) const {
  return failure(ErrorCode::Corrupt, shown(key) + " is missing");
}

tl::unexpected<Error> Fields::wrong(std::string_view key, std::string_view expected) const {
  const json::Value* value = find(key);
  const std::string found = value == nullptr ? "absent" : excerpt(*value);
  return failure(ErrorCode::Corrupt, fmt::format("{} is {}, expected {}", shown(key), found, expected));
}

tl::unexpected<Error> Fields::unsupported(std::string_view key, std::string_view why) const {
  const json::Value* value = find(key);
  const std::string found = value == nullptr ? "absent" : excerpt(*value);
  return failure(ErrorCode::Unsupported, fmt::format("{} is {}: {}", shown(key), found, why));
}

Result<json::Value> parse_settings(std::string_view text, const std::string& file) {
  auto document = parse_json(text);
  if (!document) return failure(ErrorCode::Corrupt, fmt::format("{}: {}", file, document.error().message));
  if (!document->is_object()) return failure(ErrorCode::Corrupt, file + ": not a JSON object");
  return document;
}

}  // namespace rondo
