#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace rondo {
namespace {

const std::string kFffd = "\xEF\xBF\xBD";

TEST(Utf8, EachMaximalSubpartBecomesOneReplacement) {
  EXPECT_EQ(replace_invalid_utf8("a\xFFz"), "a" + kFffd + "z");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82z"), kFffd + "z");                           // a beginning of U+20AC
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"), kFffd);                              // cut off by the end
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), kFffd + kFffd);                          // overlong /
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), kFffd + kFffd + kFffd);              // a surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), kFffd + kFffd + kFffd + kFffd);  // past U+10FFFF
  EXPECT_EQ(replace_invalid_utf8("\xF1\x80\x80\xE1\x80z"), kFffd + kFffd + "z");
}

TEST(Utf8, EveryCodePointReadsBackAsItWasWritten) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Step step = utf8_step(text, 0);
    ASSERT_EQ(step.state, Utf8::Valid) << static_cast<unsigned>(c);
    ASSERT_TRUE(step.code_point == c);
    ASSERT_EQ(step.num_bytes, text.size());
  }
}

TEST(Utf8, AReplacementIsUntrustedWhenAnyOfItsBytesWas) {
  const MarkedText marked = replace_invalid_utf8(MarkedText{"ab\xE2\x82zz\xFF", {{1, 3}, {5, 6}}});
  EXPECT_EQ(marked.text, "ab" + kFffd + "zz" + kFffd);
  EXPECT_EQ(marked.untrusted, (std::vector<ByteRange>{{1, 5}, {6, 7}}));
}

TEST(Utf8, MarkedTextIsReplacedAsPlainTextIs) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 30; i > 0; --i) text += "a<\xE2\x82\xAC\xF0\x9F\x98\xFF\xC3"[random() % 10];
    const MarkedText marked = replace_invalid_utf8(MarkedText{text, {{0, text.size()}}});
    ASSERT_EQ(marked.text, replace_invalid_utf8(text));
    ASSERT_TRUE(is_utf8(marked.text));
    if (text.empty()) continue;
    ASSERT_EQ(marked.untrusted, (std::vector<ByteRange>{{0, marked.text.size()}}));
  }
}

}  // namespace
}  // namespace rondo
