// Regular expressions, in the subset of ECMAScript's that is regular.
//
//   literals, . (not a line end), [...] and [^...] with ranges, ( ), (?: ), (?<name> ), |, * + ? {m} {m,} {m,n} and
//   their lazy forms, which match the same texts; ^ and $ where the text begins and ends
//   \d \D \w \W (ASCII), \s \S (Unicode), \t \n \r \f \v \0, \xHH, \uHHHH, \u{H...}, \ before any sign
//
// Refused by name: lookaround, back references, \b, \B, \p, \P, flags, ^ and $ elsewhere.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/rules.h"

namespace rondo::grammar {

// Whole: the text matches from its beginning to its end, ^ and $ may say so. Part: ^ and $ say where it is bound, as in
// JSON Schema's `pattern`.
enum class RegexMatch { Whole, Part };

// A code point set as an expression; JSON strings write some of them escaped.
using WriteChars = ExprId (*)(Rules&, const CharSet&);
ExprId write_chars_plainly(Rules& rules, const CharSet& set);

// InvalidArgument or Unsupported with the place in the pattern.
Result<ExprId> read_regex(Rules& rules, std::string_view pattern, RegexMatch match, WriteChars write);

}  // namespace rondo::grammar
