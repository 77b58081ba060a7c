// Tool calls in the form of the Qwen family:
//
//   <tool_call>
//   <function=NAME>
//   <parameter=KEY>
//   VALUE
//   </parameter>
//   </function>
//   </tool_call>
//
// with the tags as the vocabulary's own tokens where it has them, the parameters in the order of the tool's schema,
// each at most once and the required ones always; no others. VALUE: a string as it stands, anything else as JSON. A
// string may be any text without "</parameter>" in it. Between two calls there may be a line end.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/rules.h"
#include "grammar/vocabulary.h"

namespace rondo::grammar {

// text: as Source::tool_calls writes it.
Result<ExprId> read_tool_calls(Rules& rules, std::string_view text, const Vocabulary& vocabulary);

}  // namespace rondo::grammar
