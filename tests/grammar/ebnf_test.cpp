#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/grammar/acceptance.h"

namespace rondo::test {
namespace {

using grammar::Source;

TEST(Ebnf, TakesTheTextsOfItsRootRule) {
  const Source arithmetic = Source::ebnf(R"~(# sums of products
root   ::= expr "\n"?
expr   ::= term (("+" | "-") term)*
term   ::= factor (("*" | "/") factor)*   # binds more tightly
factor ::= [0-9]+
         | "(" expr ")"
)~");
  for (const char* text : {"1", "1+2*3", "(1-2)/(3)", "((((7))))*8", "1\n"})
    EXPECT_TRUE(takes(arithmetic, text)) << text;
  for (const char* text : {"", "+", "1+", "(1", "1)", "1**2", "()", "1\n\n"})
    EXPECT_FALSE(takes(arithmetic, text)) << text;
}

TEST(Ebnf, ARuleMayCallItselfFirstLastAndInTheMiddleButNotBeforeReading) {
  const Source right = Source::ebnf("root ::= \"a\" root | \"b\"");
  EXPECT_TRUE(takes(right, std::string(5000, 'a') + "b"));
  const Source middle = Source::ebnf("root ::= \"(\" root \")\" | \"\"");
  EXPECT_TRUE(takes(middle, std::string(60, '(') + std::string(60, ')')));
  EXPECT_FALSE(takes(middle, std::string(60, '(') + std::string(59, ')')));
  EXPECT_EQ(refusal_of(Source::ebnf("root ::= root \"a\" | \"a\"")),
            "rule 'root' refers to itself before anything is read (left recursion)");
  EXPECT_EQ(refusal_of(Source::ebnf("root ::= maybe other\nmaybe ::= \"x\"?\nother ::= maybe root \"z\" | \"q\"")),
            "rule 'root' refers to itself before anything is read (left recursion)");
}

TEST(Ebnf, AnAmbiguousGrammarTakesEveryReading) {
  const Source both = Source::ebnf("root ::= a | b\na ::= \"x\" a \"y\" | \"xy\"\nb ::= \"x\" b \"yy\" | \"xyy\"");
  EXPECT_TRUE(takes(both, "xxxyyy"));
  EXPECT_TRUE(takes(both, "xxyyyy"));
  EXPECT_FALSE(takes(both, "xxyyy"));
}

TEST(Ebnf, EscapesClassesAndCounts) {
  const Source source =
      Source::ebnf(R"(root ::= "\x41\u00e9\U0001F642\"\\\n" [\]\-^a-c\n]{2} [^\d]{1,2} .{0,1} ("k" | l){2,}
l ::= "l")");
  EXPECT_TRUE(takes(source, "Aé🙂\"\\\n]-x.kl"));
  EXPECT_TRUE(takes(source, "Aé🙂\"\\\n^cxykkl"));
  EXPECT_FALSE(takes(source, "Aé🙂\"\\\n^c1kkl"));
  EXPECT_FALSE(takes(source, "Aé🙂\"\\\n^cxk"));
}

TEST(Ebnf, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the grammar has no rule named 'root'"},
      {"start ::= \"a\"", "the grammar has no rule named 'root'"},
      {"root ::= a", "grammar, line 1: the rule 'a' is nowhere defined"},
      {"root ::= \"a\"\nroot ::= \"b\"", "grammar, line 2: this rule is defined twice"},
      {"root ::= \"a", "grammar, line 1: a \" without its end"},
      {"root ::= [a", "grammar, line 1: a [ without its ]"},
      {"root ::= (\"a\"\n", "grammar, line 2: a group without its )"},
      {"root ::= \"a\" )", "grammar, line 1: ')' is not expected here"},
      {"root ::= \"\\q\"", "grammar, line 1: unknown escape \\q"},
      {"root = \"a\"", "grammar, line 1: expected 'name ::= ...'"},
      {"root ::= \"a\"{3,1}", "grammar, line 1: a count whose end is before its beginning"},
      {"root ::= \"a\" root", "no text can match, or only one that nests deeper than 64"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal_of(Source::ebnf(text)), message) << text;
}

TEST(Ebnf, WhatWouldGrowWithoutBoundIsRefusedAndQuickly) {
  std::string doubling = "root ::= r0 r0\n";
  for (int i = 0; i < 40; ++i) doubling += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  EXPECT_EQ(refusal_of(Source::ebnf(doubling + "r40 ::= \"a\"")), "");  // calls, not copies: 40 rules
  EXPECT_NE(refusal_of(Source::ebnf("root ::= ((\"a\"{1000}){1000}){1000}")), "");
  EXPECT_NE(refusal_of(Source::ebnf("root ::= \"a\"" + std::string(100'000, '*'))), "");
  EXPECT_NE(refusal_of(Source::ebnf("root ::= " + std::string(100'000, '('))), "");
  std::string empties = "root ::= \"x\"";
  for (int i = 0; i < 30'000; ++i) empties += " e";
  refusal_of(Source::ebnf(empties + "\ne ::= \"\""));
}

TEST(Choice, TakesEachOfThemAndNothingElse) {
  const Source source = Source::choice({"yes", "no", "no idea", "\xC3\xA9\n"});
  for (const char* text : {"yes", "no", "no idea", "\xC3\xA9\n"}) EXPECT_TRUE(takes(source, text)) << text;
  for (const char* text : {"", "y", "no ", "yesno"}) EXPECT_FALSE(takes(source, text)) << text;
  EXPECT_EQ(refusal_of(Source::choice({})), "the choices must be an array of at least one string");
  EXPECT_EQ(refusal_of(Source::choice({"a", 5})), "choice 1 is not a string with text in it");
}

}  // namespace
}  // namespace rondo::test
