// Code points as Python's str sees them: UTF-8 in and out, character classes, case mappings.
//
// Classes and simple mappings are utf8proc's (a newer Unicode than Python 3.11's, which differs on newly assigned code
// points only); the mappings of one code point to several are Python's table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rondo::jinja {

std::size_t count_chars(std::string_view utf8);
inline std::size_t char_bytes(char lead) {  // of valid UTF-8
  const auto c = static_cast<unsigned char>(lead);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}
char32_t decode_char(std::string_view utf8, std::size_t at);  // of valid UTF-8
void append_char(std::string& out, char32_t c);

bool is_valid_utf8(std::string_view bytes);
std::string replace_invalid_utf8(std::string_view bytes);  // each bad byte as U+FFFD

bool is_space(char32_t c);     // str.isspace, and what strip() and split() take for white
bool is_line_end(char32_t c);  // str.splitlines
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_printable(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
inline bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }

// str.upper, str.lower and the first letter of str.title of one code point, appended as UTF-8. lower() of a capital
// sigma at the end of a word is the caller's: it needs the neighbours.
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
bool is_cased(char32_t c);
bool is_case_ignorable(char32_t c);

}  // namespace rondo::jinja
