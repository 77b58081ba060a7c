#include <gtest/gtest.h>

#include <regex>

#include "tests/grammar/acceptance.h"

namespace rondo::test {
namespace {

using grammar::Source;

struct RegexCase {
  std::string pattern;
  std::vector<std::string> taken, refused;
};

TEST(Regex, TakesTheTextsItDescribesAndNoOthers) {
  const RegexCase cases[] = {
      {"abc", {"abc"}, {"", "ab", "abcd", "abd"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"a*b+c?", {"b", "aab", "bbc", "aabbc"}, {"", "a", "ac", "bcc"}},
      {"(ab){2,3}", {"abab", "ababab"}, {"ab", "abababab", "aba"}},
      {"x{2}y{0}z{1,}", {"xxz", "xxzzz"}, {"xz", "xxyz", "xx"}},
      {"[a-c_]+", {"a", "cab_"}, {"d", "", "aD"}},
      {"[^a-c]", {"d", "\n", "é", "🙂"}, {"a", "", "dd"}},
      {"[]]?", {}, {}},
      {".", {"a", "é", "🙂", "\t"}, {"\n", "\r", "\xE2\x80\xA8", "", "ab"}},
      {"\\d\\w\\s", {"0_ ", "9z\n", "5A\xC2\xA0"}, {"aa ", "0- ", "0a_"}},
      {"\\D\\W\\S", {"a-x", "éé9"}, {"0-x", "aax", "a- "}},
      {"\\x41\\u00e9\\u{1F642}\\t\\.\\\\", {"Aé🙂\t.\\"}, {"A"}},
      {"\\ud83d\\ude42", {"🙂"}, {"x"}},
      {"^a$", {"a"}, {"^a$"}},
      {"^a|b$", {"a", "b"}, {"ab"}},
      {"(?:a|(?<name>b))+?", {"a", "abba"}, {"", "c"}},
      {"a{,3}", {"a{,3}"}, {"aaa"}},
      {"[\\d.-]+", {"1.5-2"}, {"a"}},
      {"[\xC3\xA0-\xC3\xBC]+", {"éü"}, {"e", "ÿ"}},
  };
  for (const RegexCase& c : cases) {
    if (c.taken.empty()) continue;
    for (const auto& text : c.taken) EXPECT_TRUE(takes(Source::regex(c.pattern), text)) << c.pattern << " on " << text;
    for (const auto& text : c.refused)
      EXPECT_FALSE(takes(Source::regex(c.pattern), text)) << c.pattern << " on " << text;
  }
}

TEST(Regex, AnEmptyClassMatchesNothing) {
  EXPECT_EQ(refusal_of(Source::regex("a[]b")), "no text can match, or only one that nests deeper than 64");
  EXPECT_TRUE(takes(Source::regex("a[^]b"), "a\nb"));
}

TEST(Regex, RefusesWhatIsNotRegularOrNotWhole) {
  const std::pair<const char*, const char*> cases[] = {
      {"(?=a)b", "pattern, at byte 2: lookahead is not supported"},
      {"(?<!a)b", "pattern, at byte 3: lookbehind is not supported"},
      {"(?i)a", "pattern, at byte 2: this kind of group, or flags, are not supported"},
      {"(a)\\1", "pattern, at byte 4: back references are not supported"},
      {"a\\b", "pattern, at byte 2: \\b is not supported"},
      {"\\p{L}", "pattern, at byte 1: \\p is not supported"},
      {"a^b", "pattern, at byte 1: ^ is, except where the text begins, not supported"},
      {"a$b", "pattern, at byte 1: $ is, except where the text ends, not supported"},
      {"(a", "pattern, at byte 2: a group without its )"},
      {"a)", "pattern, at byte 1: an unmatched )"},
      {"[a", "pattern, at byte 2: a [ without its ]"},
      {"*a", "pattern, at byte 0: nothing to repeat"},
      {"a**", "pattern, at byte 3: nothing to repeat"},
      {"a{3,2}", "pattern, at byte 6: a count whose end is before its beginning"},
      {"a\\", "pattern, at byte 2: a \\ at the end"},
      {"\\ud83d", "pattern, at byte 6: half of a surrogate pair is no character"},
      {"a\xFF", "the pattern is not UTF-8"},
  };
  for (const auto& [pattern, message] : cases) EXPECT_EQ(refusal_of(Source::regex(pattern)), message) << pattern;
}

TEST(Regex, WhatWouldGrowWithoutBoundIsRefusedAndQuickly) {
  for (const char* pattern : {"(a|b)*a(a|b){25}", "(((a{100}){100}){100}){100}", "(a?){50000}a{50000}",
                              "((a*b?){300}){300}", "[a-z]{100001}"}) {
    EXPECT_NE(refusal_of(Source::regex(pattern)), "") << pattern;
  }
  std::string nested;
  for (int i = 0; i < 5000; ++i) nested += '(';
  EXPECT_EQ(refusal_of(Source::regex(nested)), "pattern, at byte 100: groups nested deeper than 100 are not supported");
}

// All small patterns over a small alphabet, on all small texts, against the standard library.
std::vector<std::string> small_patterns() {
  const std::string atoms[] = {"a", "b", "[ab]", "(a|b)", "(ab|)", "."};
  const std::string repeats[] = {"", "*", "+", "?", "{2}", "{1,2}"};
  std::vector<std::string> units, patterns;
  for (const auto& atom : atoms) {
    for (const auto& repeat : repeats) units.push_back(atom + repeat);
  }
  for (const auto& one : units) {
    for (const auto& two : units) {
      patterns.push_back(one + two);
      patterns.push_back(one + "|" + two);
    }
  }
  return patterns;
}

std::vector<std::string> small_texts() {
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; texts[i].size() < 4; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

int count_differences(std::string_view planted) {
  const std::vector<std::string> texts = small_texts();
  int differences = 0;
  for (const std::string& pattern : small_patterns()) {
    const auto compiled = grammar::compile(Source::regex(pattern + std::string(planted)), *byte_vocabulary());
    const std::regex standard(pattern);
    for (const std::string& text : texts) {
      differences += (read_text(*compiled, text) == Taken::Whole) != std::regex_match(text, standard) ? 1 : 0;
    }
  }
  return differences;
}

TEST(Regex, AllSmallPatternsDoOnAllSmallTextsAsTheStandardLibrarySays) { EXPECT_EQ(count_differences(""), 0); }

TEST(Regex, APlantedDifferenceIsSeen) { EXPECT_GT(count_differences("?"), 0); }

}  // namespace
}  // namespace rondo::test
