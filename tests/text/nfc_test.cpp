#include "text/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

#include "text/code_points.h"
#include "text/utf8.h"

namespace rondo {
namespace {

std::string nfc_by_utf8proc(const std::string& text) {
  utf8proc_uint8_t* composed = utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));
  std::string result = reinterpret_cast<const char*>(composed);
  std::free(composed);
  return result;
}

std::string nfc(const std::string& text) { return to_nfc({text, {}}).text; }

// Code points on which utf8proc and we agree: what is newer than the tables of the tokenizers package is left out.
bool is_old(char32_t c) {
  return c > 0 && !(c >= 0xD800 && c < 0xE000) && c != 0x11930 && c != 0x11935 && c != 0x11938 &&
         ((code_points()[c] & kActiveInNfc) ||
          utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class == 0);
}

TEST(Nfc, IsUtf8procsOnEveryCodePointAloneAndBetweenMarks) {
  for (char32_t c = 1; c < 0x110000; ++c) {
    if (!is_old(c)) continue;
    std::string point;
    append_utf8(point, c);
    const std::string among = "e" + point + "\xCC\xB4\xCC\x81" + point + "\xCD\x85" + point;
    ASSERT_EQ(nfc(point), nfc_by_utf8proc(point)) << std::hex << static_cast<unsigned>(c);
    ASSERT_EQ(nfc(among), nfc_by_utf8proc(among)) << std::hex << static_cast<unsigned>(c);
  }
}

TEST(Nfc, IsUtf8procsOnRandomRunsOfActiveCodePoints) {
  std::vector<char32_t> active = {U'a', U'e', U'o', 0x1100, 0x1161, 0x11A8, 0xAC00, 0x915, 0x93C, 0x1025};
  for (char32_t c = 0x300; c < 0x110000; ++c) {
    if ((code_points()[c] & kActiveInNfc) && is_old(c)) active.push_back(c);
  }
  std::mt19937 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) {
      append_utf8(text, random() % 3 ? active[random() % active.size()] : active[random() % 10]);
    }
    ASSERT_EQ(nfc(text), nfc_by_utf8proc(text));
  }
}

TEST(Nfc, LeavesMarksThatTheTokenizersPackageDoesNotKnow) {
  const std::string text =
      "e\xE1\xB7\xB6\xCC\x81";  // U+1DF6 came with Unicode 10: it is no mark there, so U+0301 stays
  EXPECT_EQ(nfc(text), text);
  EXPECT_EQ(nfc("e\xCC\x81"), "\xC3\xA9");
}

TEST(Nfc, AComposedCharacterIsUntrustedWhenAnyPartWas) {
  const MarkedText composed = to_nfc({"xe\xCC\x81y", {{2, 4}}});
  EXPECT_EQ(composed.text, "x\xC3\xA9y");
  EXPECT_EQ(composed.untrusted, (std::vector<ByteRange>{{1, 3}}));
}

}  // namespace
}  // namespace rondo
