// UTF-8 as bytes come: one code point at a time, and the replacement of what is not UTF-8 by U+FFFD.
//
// The replacement is the one of Unicode's chapter 3 (and of Rust's from_utf8_lossy and Python's errors="replace"): one
// U+FFFD for each maximal subpart, that is for the longest prefix of a well-formed sequence, or for one byte that
// begins none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/marked_text.h"

namespace rondo {

enum class Utf8 { Valid, Invalid, Unfinished };  // Unfinished: a well-formed beginning cut off by the end of the text

struct Utf8Step {
  char32_t code_point = 0xFFFD;  // U+FFFD unless Valid
  std::size_t num_bytes = 1;     // of the code point, or of the maximal subpart
  Utf8 state = Utf8::Invalid;
};

Utf8Step utf8_step(std::string_view text, std::size_t pos);  // pos < text.size()

// For text known to be valid: the code point at `pos`, which then moves past it.
inline char32_t next_code_point(std::string_view text, std::size_t& pos) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(pos);
  if (lead < 0x80) return pos += 1, lead;
  if (lead < 0xE0) return pos += 2, (lead & 0x1F) << 6 | (byte(pos - 1) & 0x3F);
  if (lead < 0xF0) return pos += 3, (lead & 0xF) << 12 | (byte(pos - 2) & 0x3F) << 6 | (byte(pos - 1) & 0x3F);
  pos += 4;
  return (lead & 7) << 18 | (byte(pos - 3) & 0x3F) << 12 | (byte(pos - 2) & 0x3F) << 6 | (byte(pos - 1) & 0x3F);
}

void append_utf8(std::string& out, char32_t code_point);

bool is_utf8(std::string_view text);
std::string replace_invalid_utf8(std::string_view text);

// The same for marked text: a U+FFFD is untrusted when any byte it stands for was.
MarkedText replace_invalid_utf8(const MarkedText& text);

}  // namespace rondo
