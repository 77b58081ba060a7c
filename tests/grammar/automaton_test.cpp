// What automaton.h and matcher.h promise beyond "takes the right texts": bounds, dead ends, sharing.

#include <gtest/gtest.h>

#include "tests/grammar/acceptance.h"

namespace rondo::test {
namespace {

using grammar::Source;

bool has_bit(const std::vector<std::uint32_t>& mask, int token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0;
}

TEST(Automaton, NestingIsBoundedAndEveryBoundedTextCanStillEnd) {
  const auto compiled = *grammar::compile(Source::json_object(), *byte_vocabulary());
  grammar::Matcher matcher(compiled, byte_vocabulary());
  matcher.reserve(0, grammar::Matcher::Start::Here);
  std::vector<std::uint32_t> mask(8);
  const auto allowed = [&] {
    std::fill(mask.begin(), mask.end(), 0U);
    matcher.allow(matcher.after({}), mask);
    return [&](char c) { return has_bit(mask, static_cast<unsigned char>(c)); };
  };
  for (const char c : std::string_view("{\"a\":")) matcher.accept(c);
  int depth = 0;
  while (allowed()('[')) {
    matcher.accept('[');
    ++depth;
    ASSERT_TRUE(allowed()(']')) << depth;
  }
  EXPECT_EQ(depth, grammar::kMostHeight);
  for (int i = 0; i < depth; ++i) matcher.accept(']');
  matcher.accept('}');
  EXPECT_TRUE(matcher.is_complete(matcher.after({})));
}

TEST(Automaton, WhiteSpaceCannotGoOnForEver) {
  const auto compiled = *grammar::compile(Source::json_object(), *byte_vocabulary());
  for (const char* start : {"{", "{\"a\":", "{\"a\":1,", "{\"a\":[", "{\"a\":[1,", "{\"a\":1", "{\"a\":{}"}) {
    for (const char space : {' ', '\n', '\t', '\r'}) {
      std::string text = start;
      int spaces = 0;
      while (read_text(compiled, text + space) != Taken::No) {
        text += space;
        ASSERT_LE(++spaces, 32) << start;
      }
    }
    std::string lines = start;
    for (int i = 0; i < 3; ++i) lines += "\n ";
    EXPECT_EQ(read_text(compiled, lines), Taken::No) << start;
  }
}

TEST(Automaton, AfterAThoughtUpToTwoLineEndsMayComeFirst) {
  const auto compiled = *grammar::compile(Source::regex("ab"), *byte_vocabulary());
  const auto taken = [&](grammar::Matcher::Start start, std::string_view text) {
    grammar::Matcher matcher(compiled, byte_vocabulary());
    matcher.reserve(0, start);
    for (const char c : text) matcher.accept(c);
    return matcher.is_complete(matcher.after({}));
  };
  using Start = grammar::Matcher::Start;
  for (const char* text : {"ab", "\nab", "\n\nab"}) EXPECT_TRUE(taken(Start::AfterThought, text));
  for (const char* text : {"\n\n\nab", "\n", ""}) EXPECT_FALSE(taken(Start::AfterThought, text));
  EXPECT_TRUE(taken(Start::Here, "ab"));
  EXPECT_FALSE(taken(Start::Here, "\nab"));
}

TEST(GrammarCache, KeepsWhatWasCompiledAndLetsTheLongestUnusedGo) {
  const std::size_t one = [] {
    grammar::GrammarCache probe(byte_vocabulary());
    return (*probe.get(Source::regex("[a-z]{30}1")))->num_bytes();
  }();
  grammar::GrammarCache cache(byte_vocabulary(), one * 5 / 2);
  const auto a = *cache.get(Source::regex("[a-z]{30}1"));
  EXPECT_EQ(*cache.get(Source::regex("[a-z]{30}1")), a);
  EXPECT_EQ(cache.num_compiled(), 1u);
  ASSERT_TRUE(cache.get(Source::regex("[a-z]{30}2")));
  EXPECT_EQ(*cache.get(Source::regex("[a-z]{30}1")), a);
  ASSERT_TRUE(cache.get(Source::regex("[a-z]{30}3")));  // 2 goes
  EXPECT_EQ(cache.num_compiled(), 3u);
  EXPECT_EQ(*cache.get(Source::regex("[a-z]{30}1")), a);
  EXPECT_EQ(cache.num_compiled(), 3u);
  ASSERT_TRUE(cache.get(Source::regex("[a-z]{30}2")));
  EXPECT_EQ(cache.num_compiled(), 4u);
  EXPECT_FALSE(cache.get(Source::regex("(")));
  EXPECT_NE(*cache.get(Source::ebnf("root ::= \"a\"")), *cache.get(Source::regex("a")));
}

TEST(Vocabulary, WithoutATokenForEveryByteThereIsNone) {
  std::vector<grammar::VocabularyToken> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    if (byte != 0x9A) tokens.push_back({byte, std::string(1, static_cast<char>(byte)), false});
  }
  const auto made = grammar::Vocabulary::create(std::move(tokens));
  ASSERT_FALSE(made);
  EXPECT_EQ(
      made.error().message,
      "the tokenizer has no token for the single byte 0x9A, so structured output cannot be promised to come to an end");
}

}  // namespace
}  // namespace rondo::test
