// JSON schemas: the subset that a grammar can keep to. What a reply under a schema is: a text that a validator accepts.
//
//   type (one or several), enum, const, anyOf, oneOf (when its parts are told apart by type or by a required property
//   of fixed value), allOf (when its parts can be merged), $ref and $defs inside the document, recursion included;
//   true, false and {}
//   objects: properties, required, additionalProperties. Properties come in the schema's order, then others; when the
//     schema is silent there are no others, unless it has no properties at all: then any
//   arrays: items, prefixItems, minItems, maxItems. Silent after prefixItems: no more
//   strings: minLength, maxLength, pattern, format (date-time date time duration email hostname ipv4 ipv6 uri uuid)
//   numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum; of a number that is not an integer, whole bounds
//   title, description, default, examples, $comment and other notes say nothing about the text
//
// So a reply is one of the texts that the schema allows, but not every such text can be a reply: json_text.h says how
// JSON is written here. Anything else is refused with its place as a JSON pointer (#/properties/age/multipleOf).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "grammar/rules.h"

namespace rondo::grammar {

Result<ExprId> read_json_schema(Rules& rules, std::string_view schema);

// The parameters of a tool, in the order of its schema. A value is written as models of the family do: a string as it
// stands, anything else as JSON.
struct ToolParameter {
  std::string name;
  ExprId value;
  bool required = false;
};
enum class Strictness { Strict, Lenient };  // Lenient: a value whose schema is not supported may be any bare text
// bare_text: what a string may be there.
Result<std::vector<ToolParameter>> read_tool_parameters(Rules& rules, const json::Object& schema, ExprId bare_text,
                                                        Strictness strictness);

}  // namespace rondo::grammar
