// Fields: one JSON object of a settings file, read key by key, every value checked for its type and bounds.
//
// Messages name the file and the key's path: "config.json: text_config.hidden_size is 0, expected 1 to 65536".
// A null counts as absent, as Python writes None. Borrows the object.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace rondo {

template <class T>
struct Bounds {
  T least, most;
};

class Fields {
 public:
  // path: what stands before a key in messages, "" or "text_config."
  Fields(const json::Object& object, std::string file, std::string path)
      : object_(&object), file_(std::move(file)), path_(std::move(path)) {}

  const json::Value* find(std::string_view key) const;
  // The object under `key` (absent: nullopt); Corrupt when it is something else.
  Result<std::optional<Fields>> find_object(std::string_view key) const;

  // Without a fallback an absent key is Corrupt.
  Result<std::int64_t> whole(std::string_view key, Bounds<std::int64_t> bounds,
                             std::optional<std::int64_t> fallback = std::nullopt) const;
  Result<int> integer(std::string_view key, Bounds<int> bounds, std::optional<int> fallback = std::nullopt) const;
  Result<double> number(std::string_view key, Bounds<double> bounds,
                        std::optional<double> fallback = std::nullopt) const;
  Result<bool> flag(std::string_view key, bool fallback) const;
  Result<std::string> text(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;
  // One whole number or a list of them, each within bounds; absent is an empty list.
  Result<std::vector<int>> integers(std::string_view key, Bounds<int> bounds) const;

  int count_false() const;  // keys whose value is false

  tl::unexpected<Error> missing(std::string_view key) const;
  tl::unexpected<Error> wrong(std::string_view key, std::string_view expected) const;
  tl::unexpected<Error> unsupported(std::string_view key, std::string_view why) const;

 private:
  std::string shown(std::string_view key) const;  // `FILE: PATH.KEY`

  const json::Object* object_;
  std::string file_;
  std::string path_;
};

// The document as an object; Corrupt when it is not JSON or not an object.
Result<json::Value> parse_settings(std::string_view text, const std::string& file);

}  // namespace rondo
