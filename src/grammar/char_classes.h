// What classes and escapes of regular expressions stand for, shared by regex and EBNF.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/char_set.h"

namespace rondo::grammar {

constexpr int kMostClassParts = 4096;  // between [ and ]: putting them in order takes their square

CharSet digits();
CharSet word_chars();
CharSet spaces();
CharSet not_line_ends();  // what . matches

std::optional<CharSet> class_of_escape(char letter);  // d D w W s S
std::optional<char32_t> char_of_escape(char letter);  // t n r f v 0
// Exactly num_digits hexadecimal digits at pos, which then moves past them.
std::optional<char32_t> read_hex(std::string_view text, std::size_t& pos, std::size_t num_digits);

}  // namespace rondo::grammar
