// EBNF, as llama.cpp's GBNF writes it:
//
//   name ::= alternative | alternative ...     root is where a text begins; a rule may go on over the next lines
//   "text"  [a-z]  [^"\\]  .  (...)            . is any code point; names are letters, digits, - and _
//   x*  x+  x?  x{m}  x{m,}  x{m,n}            # a comment, to the end of its line
//   escapes in texts and classes: \n \r \t \f \v \0 \\ \" \' \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH; in classes also \d \w
//   \s
//
// A rule may refer to itself, but not before it has read something. Alternatives are all tried: the order does not
// matter.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/rules.h"

namespace rondo::grammar {

// The rule named root. Messages name line and rule.
Result<RuleId> read_ebnf(Rules& rules, std::string_view text);

}  // namespace rondo::grammar
