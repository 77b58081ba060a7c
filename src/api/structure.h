// Structure: what form a reply's text must have, and the rule that keeps it there.
//
//   response_format     {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema":
//   ...}} structured_outputs  one of {"json": schema}, {"regex": pattern}, {"choice": [texts]}, {"grammar": EBNF},
//                       {"json_object": true}
//
// At most one of the two asks for a form. A schema counts whether or not "strict" says so. grammar/ says what each may
// be. Tools have a form too where a reply must call one, may call only one, or where one is strict; a reply that may do
// both is in one form or the other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/error.h"
#include "api/openai_tools.h"
#include "api/request_fields.h"
#include "api/served_model.h"
#include "engine/request.h"
#include "grammar/grammar.h"

namespace rondo {

struct Structure {
  grammar::Source source;
  std::string field;  // that asked for it, for messages: "response_format"
};

// A refusal stays in `fields`; nothing: any text.
std::optional<Structure> read_structure(RequestFields& fields);
// The same of Anthropic's output_config: format, {"type": "json_schema", "schema": ...}.
std::optional<Structure> read_output_format(RequestFields& output_config);

// With what the tools of a conversation ask for added to it.
std::optional<Structure> with_tools(std::optional<Structure> format, const ToolUse& tools);

// Compiles for `request`; on a worker thread. Its refusal names the part of the source that is wrong. thinking: the
// prompt ends inside an open thought.
ApiResult<std::shared_ptr<const grammar::Grammar>> compile_structure(const Structure& structure,
                                                                     const ServedModel& model, const Request& request,
                                                                     bool thinking);

// The rule of one reply to `request`.
std::shared_ptr<TokenRule> make_grammar_rule(std::shared_ptr<const grammar::Grammar> compiled, const ServedModel& model,
                                             const Request& request, bool thinking);

}  // namespace rondo
