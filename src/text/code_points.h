// What the tokenizer needs to know of each code point, in one table of a byte each, built on first use from utf8proc.
//
// The categories are Unicode 16.0's, as in the regex engine of the tokenizers package, so that ids agree on every text:
// what is newer than utf8proc's own tables is listed in code_points.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rondo {

enum CodePointBits : std::uint8_t {
  kLetter = 1,    // \p{L}
  kMark = 2,      // \p{M}
  kNumber = 4,    // \p{N}
  kSpace = 8,     // \s: White_Space
  kNewline = 16,  // \r and \n; they are kSpace too
  kActiveInNfc =
      32,  // NFC may change it, or join it to what stands before; others are boundaries that NFC never crosses
};

struct CodePoints {
  static constexpr std::size_t kCount = 0x110000;
  std::vector<std::uint8_t> bits = std::vector<std::uint8_t>(kCount);  // CodePointBits
  std::uint8_t operator[](char32_t code_point) const { return bits[code_point]; }
};

const CodePoints& code_points();  // a constant, the same for all

// Code points newer than Unicode 14.0 with their general category, ascending.
struct NewCodePoints {
  char32_t first, last;
  char category[2];  // such as Lo
};
std::span<const NewCodePoints> new_code_points();

}  // namespace rondo
