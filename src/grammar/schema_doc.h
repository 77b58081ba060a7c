// What a JSON schema says, apart from how it becomes a grammar: references, merging, and whether two exclude each
// other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace rondo::grammar {

// A schema inside the document and the place it stands at.
struct SchemaAt {
  const json::Value* schema = nullptr;
  std::string path;  // JSON pointer: "#/properties/a"
};

// One step of a $ref's JSON pointer as the key it stands for, ~0, ~1 and %XX read; nothing when it is malformed.
std::optional<std::string> decode_step(std::string_view step);
// The member, or the element of an array, that a decoded step leads to; nullptr: there is none.
const json::Value* find_child(const json::Value& value, const std::string& step);

std::string child_path(const std::string& path, std::string_view key);
tl::unexpected<Error> refuse_schema(ErrorCode code, const std::string& path, std::string_view why);

bool is_note(std::string_view keyword);  // says nothing about the text
bool only_notes(const json::Object& schema);

class SchemaDoc {
 public:
  explicit SchemaDoc(json::Value root) : root_(std::move(root)) {}
  const json::Value& root() const { return root_; }

  // What `reference` (#, #/$defs/name) points at.
  Result<SchemaAt> resolve(std::string_view reference, const std::string& path) const;

  // The schema that asks for both; Unsupported when two keywords of theirs cannot be put in one.
  Result<json::Object> merge(const json::Object& a, const json::Object& b, const std::string& path) const;

  // Whether it is plain to see that no value fits both.
  bool exclude(const json::Value& a, const json::Value& b) const;

 private:
  SchemaAt find(std::string_view reference) const;                    // no schema: it points at nothing
  const json::Object* look_through(const json::Value& schema) const;  // through $ref; nullptr: not an object
  json::Value root_;
};

// The types it names, as bits of kAllTypes; all when it names none.
enum SchemaType : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,  // numbers that are no integers
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127,
};
unsigned type_of_value(const json::Value& value);
unsigned type_by_name(std::string_view name);  // 0: no such type
// By `type`, `enum` and `const`, else by what its keywords are about (properties: an object).
Result<unsigned> types_of(const json::Object& schema, const std::string& path);

}  // namespace rondo::grammar
