#include "text/code_points.h"

#include <utf8proc.h>

namespace rondo {

namespace {

// Assigned in Unicode 15.0 to 16.0: utf8proc 2.8 knows Unicode 15.0, PCRE2 10.42 knows 14.0.
constexpr NewCodePoints kNewCodePoints[] = {
    {0x897, 0x897, {'M', 'n'}},     {0xCF3, 0xCF3, {'M', 'c'}},     {0xECE, 0xECE, {'M', 'n'}},
    {0x1B4E, 0x1B4F, {'P', 'o'}},   {0x1B7F, 0x1B7F, {'P', 'o'}},   {0x1C89, 0x1C89, {'L', 'u'}},
    {0x1C8A, 0x1C8A, {'L', 'l'}},   {0x2427, 0x2429, {'S', 'o'}},   {0x2FFC, 0x2FFF, {'S', 'o'}},
    {0x31E4, 0x31E5, {'S', 'o'}},   {0x31EF, 0x31EF, {'S', 'o'}},   {0xA7CB, 0xA7CC, {'L', 'u'}},
    {0xA7CD, 0xA7CD, {'L', 'l'}},   {0xA7DA, 0xA7DA, {'L', 'u'}},   {0xA7DB, 0xA7DB, {'L', 'l'}},
    {0xA7DC, 0xA7DC, {'L', 'u'}},   {0x105C0, 0x105F3, {'L', 'o'}}, {0x10D40, 0x10D49, {'N', 'd'}},
    {0x10D4A, 0x10D4D, {'L', 'o'}}, {0x10D4E, 0x10D4E, {'L', 'm'}}, {0x10D4F, 0x10D4F, {'L', 'o'}},
    {0x10D50, 0x10D65, {'L', 'u'}}, {0x10D69, 0x10D6D, {'M', 'n'}}, {0x10D6E, 0x10D6E, {'P', 'd'}},
    {0x10D6F, 0x10D6F, {'L', 'm'}}, {0x10D70, 0x10D85, {'L', 'l'}}, {0x10D8E, 0x10D8F, {'S', 'm'}},
    {0x10EC2, 0x10EC4, {'L', 'o'}}, {0x10EFC, 0x10EFF, {'M', 'n'}}, {0x1123F, 0x11240, {'L', 'o'}},
    {0x11241, 0x11241, {'M', 'n'}}, {0x11380, 0x11389, {'L', 'o'}}, {0x1138B, 0x1138B, {'L', 'o'}},
    {0x1138E, 0x1138E, {'L', 'o'}}, {0x11390, 0x113B5, {'L', 'o'}}, {0x113B7, 0x113B7, {'L', 'o'}},
    {0x113B8, 0x113BA, {'M', 'c'}}, {0x113BB, 0x113C0, {'M', 'n'}}, {0x113C2, 0x113C2, {'M', 'c'}},
    {0x113C5, 0x113C5, {'M', 'c'}}, {0x113C7, 0x113CA, {'M', 'c'}}, {0x113CC, 0x113CD, {'M', 'c'}},
    {0x113CE, 0x113CE, {'M', 'n'}}, {0x113CF, 0x113CF, {'M', 'c'}}, {0x113D0, 0x113D0, {'M', 'n'}},
    {0x113D1, 0x113D1, {'L', 'o'}}, {0x113D2, 0x113D2, {'M', 'n'}}, {0x113D3, 0x113D3, {'L', 'o'}},
    {0x113D4, 0x113D5, {'P', 'o'}}, {0x113D7, 0x113D8, {'P', 'o'}}, {0x113E1, 0x113E2, {'M', 'n'}},
    {0x116D0, 0x116E3, {'N', 'd'}}, {0x11B00, 0x11B09, {'P', 'o'}}, {0x11BC0, 0x11BE0, {'L', 'o'}},
    {0x11BE1, 0x11BE1, {'P', 'o'}}, {0x11BF0, 0x11BF9, {'N', 'd'}}, {0x11F00, 0x11F01, {'M', 'n'}},
    {0x11F02, 0x11F02, {'L', 'o'}}, {0x11F03, 0x11F03, {'M', 'c'}}, {0x11F04, 0x11F10, {'L', 'o'}},
    {0x11F12, 0x11F33, {'L', 'o'}}, {0x11F34, 0x11F35, {'M', 'c'}}, {0x11F36, 0x11F3A, {'M', 'n'}},
    {0x11F3E, 0x11F3F, {'M', 'c'}}, {0x11F40, 0x11F40, {'M', 'n'}}, {0x11F41, 0x11F41, {'M', 'c'}},
    {0x11F42, 0x11F42, {'M', 'n'}}, {0x11F43, 0x11F4F, {'P', 'o'}}, {0x11F50, 0x11F59, {'N', 'd'}},
    {0x11F5A, 0x11F5A, {'M', 'n'}}, {0x1342F, 0x1342F, {'L', 'o'}}, {0x13439, 0x1343F, {'C', 'f'}},
    {0x13440, 0x13440, {'M', 'n'}}, {0x13441, 0x13446, {'L', 'o'}}, {0x13447, 0x13455, {'M', 'n'}},
    {0x13460, 0x143FA, {'L', 'o'}}, {0x16100, 0x1611D, {'L', 'o'}}, {0x1611E, 0x16129, {'M', 'n'}},
    {0x1612A, 0x1612C, {'M', 'c'}}, {0x1612D, 0x1612F, {'M', 'n'}}, {0x16130, 0x16139, {'N', 'd'}},
    {0x16D40, 0x16D42, {'L', 'm'}}, {0x16D43, 0x16D6A, {'L', 'o'}}, {0x16D6B, 0x16D6C, {'L', 'm'}},
    {0x16D6D, 0x16D6F, {'P', 'o'}}, {0x16D70, 0x16D79, {'N', 'd'}}, {0x18CFF, 0x18CFF, {'L', 'o'}},
    {0x1B132, 0x1B132, {'L', 'o'}}, {0x1B155, 0x1B155, {'L', 'o'}}, {0x1CC00, 0x1CCEF, {'S', 'o'}},
    {0x1CCF0, 0x1CCF9, {'N', 'd'}}, {0x1CD00, 0x1CEB3, {'S', 'o'}}, {0x1D2C0, 0x1D2D3, {'N', 'o'}},
    {0x1DF25, 0x1DF2A, {'L', 'l'}}, {0x1E030, 0x1E06D, {'L', 'm'}}, {0x1E08F, 0x1E08F, {'M', 'n'}},
    {0x1E4D0, 0x1E4EA, {'L', 'o'}}, {0x1E4EB, 0x1E4EB, {'L', 'm'}}, {0x1E4EC, 0x1E4EF, {'M', 'n'}},
    {0x1E4F0, 0x1E4F9, {'N', 'd'}}, {0x1E5D0, 0x1E5ED, {'L', 'o'}}, {0x1E5EE, 0x1E5EF, {'M', 'n'}},
    {0x1E5F0, 0x1E5F0, {'L', 'o'}}, {0x1E5F1, 0x1E5FA, {'N', 'd'}}, {0x1E5FF, 0x1E5FF, {'P', 'o'}},
    {0x1F6DC, 0x1F6DC, {'S', 'o'}}, {0x1F774, 0x1F776, {'S', 'o'}}, {0x1F77B, 0x1F77F, {'S', 'o'}},
    {0x1F7D9, 0x1F7D9, {'S', 'o'}}, {0x1F8B2, 0x1F8BB, {'S', 'o'}}, {0x1F8C0, 0x1F8C1, {'S', 'o'}},
    {0x1FA75, 0x1FA77, {'S', 'o'}}, {0x1FA87, 0x1FA89, {'S', 'o'}}, {0x1FA8F, 0x1FA8F, {'S', 'o'}},
    {0x1FAAD, 0x1FAAF, {'S', 'o'}}, {0x1FABB, 0x1FABF, {'S', 'o'}}, {0x1FAC6, 0x1FAC6, {'S', 'o'}},
    {0x1FACE, 0x1FACF, {'S', 'o'}}, {0x1FADA, 0x1FADC, {'S', 'o'}}, {0x1FADF, 0x1FADF, {'S', 'o'}},
    {0x1FAE8, 0x1FAE9, {'S', 'o'}}, {0x1FAF7, 0x1FAF8, {'S', 'o'}}, {0x1FBCB, 0x1FBEF, {'S', 'o'}},
    {0x2B739, 0x2B739, {'L', 'o'}}, {0x2EBF0, 0x2EE5D, {'L', 'o'}}, {0x31350, 0x323AF, {'L', 'o'}},
};

// Code points that NFC leaves alone here, because the NFC of the tokenizers package (Unicode 9) does not know them:
// later combining marks, and the parts of U+11938.
struct Range {
  char32_t first, last;
};
constexpr Range kUnknownToNfc[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
    {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};

void mark(CodePoints& code_points, char32_t code_point, std::uint8_t bits) {
  code_points.bits[code_point] = static_cast<std::uint8_t>(code_points.bits[code_point] | bits);
}

std::uint8_t major_bits(char major) {
  return major == 'L' ? kLetter : major == 'M' ? kMark : major == 'N' ? kNumber : 0;
}

// A code point may change under NFC, or take part in a change, when it has a combining class, is not its own NFC, or is
// in the decomposition of another after that one's first place (so it may join what stands before it).
void mark_active(CodePoints& code_points, char32_t code_point) {
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point));
  if (property->combining_class != 0) mark(code_points, code_point, kActiveInNfc);
  const bool is_hangul_syllable = code_point >= 0xAC00 && code_point <= 0xD7A3;
  if ((property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) && !is_hangul_syllable) return;
  utf8proc_int32_t parts[32];
  int last_boundclass = UTF8PROC_BOUNDCLASS_START;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  utf8proc_ssize_t length =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, 32, options, &last_boundclass);
  for (utf8proc_ssize_t i = 1; i < length; ++i) mark(code_points, static_cast<char32_t>(parts[i]), kActiveInNfc);
  length = utf8proc_normalize_utf32(parts, length, options);
  if (length != 1 || parts[0] != static_cast<utf8proc_int32_t>(code_point)) mark(code_points, code_point, kActiveInNfc);
}

CodePoints make_code_points() {
  CodePoints code_points;
  for (char32_t c = 0; c < CodePoints::kCount; ++c) {
    mark(code_points, c, major_bits(utf8proc_category_string(static_cast<utf8proc_int32_t>(c))[0]));
    mark_active(code_points, c);
  }
  for (const NewCodePoints& range : kNewCodePoints) {
    for (char32_t c = range.first; c <= range.last; ++c) mark(code_points, c, major_bits(range.category[0]));
  }
  for (const Range& range : kUnknownToNfc) {
    for (char32_t c = range.first; c <= range.last; ++c) {
      code_points.bits[c] = static_cast<std::uint8_t>(code_points.bits[c] & ~kActiveInNfc);
    }
  }
  for (const Range& range : {Range{0x9, 0xD}, Range{0x20, 0x20}, Range{0x85, 0x85}, Range{0xA0, 0xA0},
                             Range{0x1680, 0x1680}, Range{0x2000, 0x200A}, Range{0x2028, 0x2029}, Range{0x202F, 0x202F},
                             Range{0x205F, 0x205F}, Range{0x3000, 0x3000}}) {
    for (char32_t c = range.first; c <= range.last; ++c) mark(code_points, c, kSpace);
  }
  mark(code_points, U'\r', kNewline);
  mark(code_points, U'\n', kNewline);
  return code_points;
}

}  // namespace

std::span<const NewCodePoints> new_code_points() { return kNewCodePoints; }

const CodePoints& code_points() {
  static const CodePoints table = make_code_points();
  return table;
}

}  // namespace rondo
