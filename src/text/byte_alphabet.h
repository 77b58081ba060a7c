// The alphabet of byte-level tokenizer.json: each byte has a printable character that stands for it in spellings.
//
// The bytes ! to ~, U+00A1 to U+00AC and U+00AE to U+00FF stand for themselves as code points; the 68 others, in order,
// are U+0100, U+0101, and so on (a space is U+0120).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rondo {

std::string byte_spelling(unsigned char byte);

// The bytes that a spelling (valid UTF-8) stands for; nothing when a character of it is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace rondo
