#include "text/utf8.h"

#include <cstdint>
#include <vector>

#include "text/rewrite.h"

namespace rondo {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct LeadByte {
  std::size_t num_bytes;            // of the whole sequence; 0 = begins none
  unsigned char second_min = 0x80;  // the second byte's range is narrower after E0, ED, F0 and F4:
  unsigned char second_max = 0xBF;  // no overlong forms, no surrogates, nothing past U+10FFFF
};

LeadByte lead_byte(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

std::size_t ascii_run(std::string_view text, std::size_t pos) {
  std::size_t end = pos;
  while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80) ++end;
  return end - pos;
}

// Where each maximal subpart of `text` lies.
std::vector<ByteRange> invalid_subparts(std::string_view text) {
  std::vector<ByteRange> subparts;
  for (std::size_t pos = 0; pos < text.size();) {
    pos += ascii_run(text, pos);
    if (pos == text.size()) break;
    const Utf8Step step = utf8_step(text, pos);
    if (step.state != Utf8::Valid) subparts.push_back({pos, pos + step.num_bytes});
    pos += step.num_bytes;
  }
  return subparts;
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t pos) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const LeadByte lead = lead_byte(byte(pos));
  if (lead.num_bytes == 0) return {};
  for (std::size_t i = 1; i < lead.num_bytes; ++i) {
    if (pos + i == text.size()) return {0xFFFD, i, Utf8::Unfinished};
    const unsigned char low = i == 1 ? lead.second_min : 0x80;
    const unsigned char high = i == 1 ? lead.second_max : 0xBF;
    if (byte(pos + i) < low || byte(pos + i) > high) return {0xFFFD, i, Utf8::Invalid};
  }
  std::size_t end = pos;
  const char32_t code_point = next_code_point(text, end);
  return {code_point, lead.num_bytes, Utf8::Valid};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto add = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code_point < 0x80) return add(code_point);
  if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    add(0xE0 | code_point >> 12);
    add(0x80 | (code_point >> 6 & 0x3F));
  } else {
    add(0xF0 | code_point >> 18);
    add(0x80 | (code_point >> 12 & 0x3F));
    add(0x80 | (code_point >> 6 & 0x3F));
  }
  add(0x80 | (code_point & 0x3F));
}

bool is_utf8(std::string_view text) { return invalid_subparts(text).empty(); }

std::string replace_invalid_utf8(std::string_view text) {
  Rewrite rewrite(text);
  for (const ByteRange& subpart : invalid_subparts(text)) rewrite.replace(subpart, kReplacement);
  return rewrite.finish();
}

MarkedText replace_invalid_utf8(const MarkedText& text) {
  Rewrite rewrite(text.text);
  for (const ByteRange& subpart : invalid_subparts(text.text)) rewrite.replace(subpart, kReplacement);
  std::string replaced = rewrite.finish();
  return {std::move(replaced), rewrite.moved(text.untrusted)};
}

}  // namespace rondo
