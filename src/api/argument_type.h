// ArgumentType: which JSON an argument may be by its tool's schema, for arguments that come as bare text.
//
// Models of the family write a string argument as it stands and anything else as JSON. So "5" is the number 5 or the
// string "5" as the schema says; where it allows both, whatever is JSON of another allowed kind is that, and all else
// is a string. Text that is none of what the schema allows is a string too: the tool's owner sees it and can say so.
// Read of the schema: type, enum, const, $ref inside the document, anyOf, oneOf, allOf; a part that says none of these
// allows everything.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace rondo {

class ArgumentType {
 public:
  // Of the property `key` of `parameters`, a tool's schema; one that is not declared may be anything.
  static ArgumentType of(const json::Object& parameters, std::string_view key);

  // False: text that begins so is a string, whatever follows.
  bool may_not_be_string(std::string_view begun) const;
  std::string to_json(std::string_view text) const;  // the whole text as its JSON

 private:
  explicit ArgumentType(unsigned kinds) : kinds_(kinds) {}
  bool allows(unsigned kind) const { return (kinds_ & kind) != 0; }
  bool begins_word(std::string_view text, std::string_view word, std::string_view python_word) const;
  bool begins_number(std::string_view text) const;
  unsigned kinds_;
};

// Whether a tool's schema takes an argument of this name: not when it lists its properties and forbids all others.
bool takes_argument(const json::Object& parameters, std::string_view key);

}  // namespace rondo
