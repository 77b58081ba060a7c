// RequestFields: reads one JSON object of a request field by field, and remembers the first thing wrong with it.
//
// Every reader marks its field as read; null counts as absent, as both public APIs have it. A mistyped or out-of-range
// value is a refusal naming the field. refuse_unread() refuses by name whatever nobody read, so a field is either
// honoured or refused and never silently dropped. After the first refusal the readers return nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/error.h"
#include "base/json.h"

namespace rondo {

class RequestFields {
 public:
  // path: where the object stands in the request, "" or "messages[2]"; names fields in messages.
  RequestFields(const json::Object& object, std::string path) : object_(&object), path_(std::move(path)) {}

  const json::Value* find(std::string_view name);  // any type; nullptr when absent or null
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<std::string> text(std::string_view name);
  const json::Object* object(std::string_view name);
  const json::Array* array(std::string_view name);

  std::string path_of(std::string_view name) const;  // "messages[2].role"
  void refuse(std::string_view name, std::string message, ErrorCode code = ErrorCode::InvalidArgument);
  void refuse(ApiError error);
  void refuse_unread();
  const std::optional<ApiError>& refusal() const { return refusal_; }

 private:
  void mistyped(std::string_view name, std::string_view expected, const json::Value& found);
  const json::Object* object_;
  std::string path_;
  std::vector<std::string> read_;
  std::optional<ApiError> refusal_;
};

std::string_view kind_in_words(const json::Value& value);  // "a string", "null", ...

}  // namespace rondo
