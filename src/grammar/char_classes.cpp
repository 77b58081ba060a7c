#include "grammar/char_classes.h"

#include <charconv>
#include <cstdint>

namespace rondo::grammar {

CharSet digits() { return {U'0', U'9'}; }

CharSet word_chars() {
  CharSet set = digits();
  set.add(U'a', U'z');
  set.add(U'A', U'Z');
  set.add(U'_', U'_');
  return set;
}

CharSet spaces() {  // ECMAScript's WhiteSpace and LineTerminator
  CharSet set(U'\t', U'\r');
  for (const char32_t c : {0x20U, 0xA0U, 0x1680U, 0x2028U, 0x2029U, 0x202FU, 0x205FU, 0x3000U, 0xFEFFU}) set.add(c, c);
  set.add(0x2000, 0x200A);
  return set;
}

CharSet not_line_ends() {
  CharSet ends(U'\n', U'\n');
  ends.add(U'\r', U'\r');
  ends.add(0x2028, 0x2029);
  return ends.inverted();
}

std::optional<CharSet> class_of_escape(char letter) {
  switch (letter) {
    case 'd': return digits();
    case 'D': return digits().inverted();
    case 'w': return word_chars();
    case 'W': return word_chars().inverted();
    case 's': return spaces();
    case 'S': return spaces().inverted();
    default: return std::nullopt;
  }
}

std::optional<char32_t> char_of_escape(char letter) {
  switch (letter) {
    case 't': return U'\t';
    case 'n': return U'\n';
    case 'r': return U'\r';
    case 'f': return U'\f';
    case 'v': return U'\v';
    case '0': return U'\0';
    default: return std::nullopt;
  }
}

std::optional<char32_t> read_hex(std::string_view text, std::size_t& pos, std::size_t num_digits) {
  if (pos > text.size() || text.size() - pos < num_digits) return std::nullopt;
  std::uint32_t value = 0;
  const char* const end = text.data() + pos + num_digits;
  const auto read = std::from_chars(text.data() + pos, end, value, 16);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  pos += num_digits;
  return value;
}

}  // namespace rondo::grammar
