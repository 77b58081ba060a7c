#include "text/splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/code_points.h"
#include "text/utf8.h"

namespace rondo {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces pieces_of(const Splitter& splitter, std::string_view text) {
  Pieces pieces;
  splitter.split(text, pieces);
  return pieces;
}

Pieces split(std::string_view pattern, std::string_view text) {
  static std::vector<std::string> kept;  // the pieces are views
  kept.emplace_back(text);
  return pieces_of(*Splitter::compile(pattern), kept.back());
}

TEST(Splitter, FollowsTheFamilyPatternBranchByBranch) {
  EXPECT_EQ(split(kSplitWithMarks, "I'm don'T"), (Pieces{"I", "'m", " don", "'T"}));
  EXPECT_EQ(split(kSplitWithMarks, "x'\xC5\xBFy"), (Pieces{"x", "'\xC5\xBF", "y"}));  // U+017F folds to s
  EXPECT_EQ(split(kSplitWithMarks, "a1234"), (Pieces{"a", "1", "2", "3", "4"}));
  EXPECT_EQ(split(kSplitWithMarks, "a == b;\r\n\r\n  c"), (Pieces{"a", " ==", " b", ";\r\n\r\n", " ", " c"}));
  EXPECT_EQ(split(kSplitWithMarks, "\n \n  x  "), (Pieces{"\n \n", " ", " x", "  "}));
  EXPECT_EQ(split(kSplitWithMarks, "  7"), (Pieces{" ", " ", "7"}));
  EXPECT_EQ(split(kSplitWithMarks, "!e\xCC\x81z"), (Pieces{"!e\xCC\x81z"}));
  EXPECT_EQ(split(kSplitNoMarks, "!e\xCC\x81z"), (Pieces{"!e", "\xCC\x81z"}));
}

struct Family {
  Splitter scanner;
  Splitter regex;
};

Family family(std::string_view pattern) {
  return {*Splitter::compile(pattern), *Splitter::compile(pattern, Splitter::Engine::Pcre2)};
}

// One code point or more of each kind the patterns tell apart.
const std::vector<char32_t> kKinds = {U'a',   U'S',  U's',    U't',   U'r',  U'e',   U'v',   U'm', U'l',
                                      U'd',   U'\'', U' ',    U'\n',  U'\r', U'\t',  0x85,   0xA0, 0x3000,
                                      0x17F,  0x301, 0x1AC0,  U'1',   0x661, 0xBD,   U'!',   U'=', 0x200D,
                                      0x180E, 0,     0x1F600, 0x4E2D, 0x378, 0x1C89, 0x2EBF0};

std::string random_text(std::mt19937& random) {
  std::string text;
  for (std::size_t i = random() % 24; i > 0; --i) append_utf8(text, kKinds[random() % kKinds.size()]);
  return text;
}

TEST(Splitter, TheScannerIsPcre2OnRandomText) {
  for (const std::string_view pattern : {kSplitWithMarks, kSplitNoMarks}) {
    const Family both = family(pattern);
    std::mt19937 random(3);
    for (int round = 0; round < 100000; ++round) {
      const std::string text = random_text(random);
      ASSERT_EQ(pieces_of(both.scanner, text), pieces_of(both.regex, text)) << testing::PrintToString(text);
    }
  }
}

TEST(Splitter, TheScannerIsPcre2OnEveryCodePoint) {
  for (const std::string_view pattern : {kSplitWithMarks, kSplitNoMarks}) {
    const Family both = family(pattern);
    for (char32_t block = 0; block < 0x110000; block += 64) {
      if (block >= 0xD800 && block < 0xE000) continue;
      std::string text;
      for (char32_t c = block; c < block + 64; ++c) {
        text += "a";
        append_utf8(text, c);
        append_utf8(text, c);
        text += " !";
        append_utf8(text, c);
      }
      ASSERT_EQ(pieces_of(both.scanner, text), pieces_of(both.regex, text)) << static_cast<unsigned>(block);
    }
  }
}

// Planted control: the comparison must see a pattern that lacks one branch.
TEST(Splitter, AMissingBranchIsSeen) {
  std::string wrong(kSplitWithMarks);
  const std::string branch = R"(|\s*[\r\n]+)";
  wrong.erase(wrong.find(branch), branch.size());
  const Splitter scanner = *Splitter::compile(kSplitWithMarks);
  const Splitter regex = *Splitter::compile(wrong);
  std::mt19937 random(3);
  bool seen = false;
  for (int round = 0; round < 1000 && !seen; ++round) {
    const std::string text = random_text(random);
    seen = pieces_of(scanner, text) != pieces_of(regex, text);
  }
  EXPECT_TRUE(seen);
}

TEST(Splitter, WhatLiesBetweenMatchesIsAPieceToo) {
  EXPECT_EQ(split(R"(\d+)", "ab12c"), (Pieces{"ab", "12", "c"}));
  EXPECT_EQ(split(R"(\p{N}{1,3})", "12345"), (Pieces{"123", "45"}));
}

TEST(Splitter, AWordSeparatorThatIsNoSpaceIsNoSpaceForPcre2Either) {
  EXPECT_EQ(split(R"(\s+|\S+x)", "\xE1\xA0\x8Ex"), (Pieces{"\xE1\xA0\x8Ex"}));  // U+180E: PCRE2's own \s takes it
}

TEST(Splitter, RefusesWhatItCannotReadInWords) {
  const std::vector<std::string> refused = {
      "(a+)+",     "a**",      "^a",      "a$",    "\\w+",  "[[a]b]",        "[a&&b]",
      "(?<n>a)",   "\\bx",     "(?x: a)", "a{2}?", "a{,3}", "(?i:\xC3\x9F)", "(?i:ss)",
      "[^\\P{L}]", "\\p{Han}", "(a",      "a)",    "[a",    "a\\",           "a*",
      "a{2000}",   "\\xff",    "[a-\\s]", "[]a]",  "(?>a)", "\\1",           "(*UTF)a",
      "x|",        "a{3,1}"};
  for (const std::string& pattern : refused) {
    const auto splitter = Splitter::compile(pattern);
    ASSERT_FALSE(splitter.has_value()) << pattern;
    EXPECT_EQ(splitter.error().code, ErrorCode::Unsupported) << pattern;
    EXPECT_NE(splitter.error().message.find("split pattern"), std::string::npos) << splitter.error().message;
  }
}

TEST(Splitter, AMillionSpacesAreOnePiece) {
  const std::string spaces(1'000'000, ' ');
  for (const auto engine : {Splitter::Engine::Fastest, Splitter::Engine::Pcre2}) {
    EXPECT_EQ(pieces_of(*Splitter::compile(kSplitWithMarks, engine), spaces).size(), 1U);
  }
}

}  // namespace
}  // namespace rondo
