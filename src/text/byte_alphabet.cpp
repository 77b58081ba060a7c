#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace rondo {

namespace {

constexpr std::size_t kAlphabetEnd = 0x144;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> code_points{};
  std::array<int, kAlphabetEnd> bytes{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int& byte : alphabet.bytes) byte = -1;
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char32_t code_point = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    alphabet.code_points[byte] = code_point;
    alphabet.bytes[code_point] = static_cast<int>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string byte_spelling(unsigned char byte) {
  std::string spelling;
  append_utf8(spelling, kAlphabet.code_points[byte]);
  return spelling;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (std::size_t pos = 0; pos < spelling.size();) {
    const char32_t code_point = next_code_point(spelling, pos);
    if (code_point >= kAlphabetEnd || kAlphabet.bytes[code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(static_cast<unsigned char>(kAlphabet.bytes[code_point]));
  }
  return bytes;
}

}  // namespace rondo
