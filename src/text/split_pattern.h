// A split pattern in the dialect of tokenizer.json, rewritten for PCRE2 (splitter.h says why).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace rondo {

// What is read: literals; . ; classes without nesting; alternation; groups (...), (?:...), (?i:...), (?=...), (?!...);
// ? * + {n} {n,} {n,m} after single characters and classes, lazy and possessive where both dialects agree, and ? after
// groups; \s \S \d \r \n \t \f \x{...} \uXXXX, \p and \P with a general category, and escaped punctuation.
// Repeated groups are left out: they are what makes matching slow or deep.
Result<std::string> to_pcre2(std::string_view pattern);

}  // namespace rondo
