#include <gtest/gtest.h>

#include "tests/grammar/acceptance.h"

namespace rondo::test {
namespace {

using grammar::Calls;
using grammar::Source;
using grammar::ToolFunction;

ToolFunction tool(std::string name, std::string_view parameters, bool strict = false) {
  return {std::move(name), parse_json(parameters)->as_object(), strict};
}

std::string call(std::string_view name, const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::string text = "<tool_call>\n<function=" + std::string(name) + ">\n";
  for (const auto& [key, value] : arguments) text += "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  return text + "</function>\n</tool_call>";
}

const ToolFunction kWeather = tool("weather", R"({"type":"object","properties":{"city":{"type":"string"},
  "days":{"type":"integer","minimum":1,"maximum":7},"unit":{"enum":["C","F"]},"near":{"type":"array","items":{"type":"string"}}},
  "required":["city"]})");

TEST(ToolCalls, AreCallsOfTheToolsWithArgumentsByTheirSchema) {
  const Source source = Source::tool_calls({kWeather, tool("now", "{}")}, Calls::One);
  EXPECT_TRUE(takes(source, call("now", {})));
  EXPECT_TRUE(takes(source, call("weather", {{"city", "Paris\n\"<b>\" </param"}})));
  EXPECT_TRUE(takes(source, call("weather", {{"city", ""}, {"days", "7"}, {"unit", "C"}, {"near", "[\"a\\n\"]"}})));
  EXPECT_FALSE(takes(source, call("later", {})));
  EXPECT_FALSE(takes(source, call("weather", {})));
  EXPECT_FALSE(takes(source, call("weather", {{"city", "a"}, {"days", "8"}})));
  EXPECT_FALSE(takes(source, call("weather", {{"city", "a"}, {"unit", "\"C\""}})));
  EXPECT_FALSE(takes(source, call("weather", {{"days", "1"}, {"city", "a"}})));
  EXPECT_FALSE(takes(source, call("weather", {{"city", "a"}, {"city", "b"}})));
  EXPECT_FALSE(takes(source, call("weather", {{"city", "a</parameter>b"}})));
  EXPECT_FALSE(takes(source, "hello " + call("now", {})));
  EXPECT_FALSE(takes(source, call("now", {}) + call("now", {})));
}

TEST(ToolCalls, SeveralWhereTheyMayBeParallel) {
  const Source source = Source::tool_calls({kWeather, tool("now", "{}")}, Calls::Several);
  EXPECT_FALSE(takes(source, ""));
  EXPECT_TRUE(takes(source, call("now", {})));
  EXPECT_TRUE(takes(source, call("now", {}) + "\n" + call("weather", {{"city", "x"}}) + call("now", {})));
  EXPECT_FALSE(takes(source, call("now", {}) + "\n\n" + call("now", {})));
}

TEST(ToolCalls, AfterTextWhereTheyNeedNotBe) {
  const Source one = Source::tool_calls({tool("now", "{}")}, Calls::TextThenOne);
  const Source any = Source::tool_calls({tool("now", "{}")}, Calls::TextThenSeveral);
  for (const auto& source : {one, any}) {
    for (const char* text : {"", "hello <tool_", "a\n"}) {
      EXPECT_TRUE(takes(source, text));
      EXPECT_TRUE(takes(source, text + call("now", {})));
    }
    EXPECT_FALSE(takes(source, "a <tool_call>\n<function=later>"));
    EXPECT_FALSE(takes(source, call("now", {}) + "more"));
  }
  EXPECT_FALSE(takes(one, call("now", {}) + call("now", {})));
  EXPECT_TRUE(takes(any, call("now", {}) + call("now", {})));
}

TEST(ToolCalls, OrAReplyOfAnotherForm) {
  const Source source = Source::either(Source::json_schema(*parse_json(R"({"type":"integer"})")),
                                       Source::tool_calls({tool("now", "{}")}, Calls::Several));
  EXPECT_TRUE(takes(source, "17"));
  EXPECT_TRUE(takes(source, call("now", {}) + call("now", {})));
  EXPECT_FALSE(takes(source, "17" + call("now", {})));
}

TEST(ToolCalls, ReferencesStringRulesAndUnionsHoldForBareValues) {
  const Source source = Source::tool_calls(
      {tool(
          "f",
          R"({"$defs":{"id":{"type":"string","pattern":"^[a-z]{2}$"},"tree":{"type":"array","items":{"$ref":"#/$defs/tree"}},
        "both":{"type":["string","integer"]}},"properties":{"id":{"$ref":"#/$defs/id"},"tree":{"$ref":"#/$defs/tree"},"both":{"$ref":"#/$defs/both"},
        "maybe":{"anyOf":[{"type":"string","maxLength":3},{"type":"null"}]},"any":{},"ids":{"type":"array","items":{"$ref":"#/$defs/id"}}},"required":["id"]})")},
      Calls::One);
  EXPECT_TRUE(takes(source, call("f", {{"id", "ab"},
                                       {"tree", "[[],[[]]]"},
                                       {"both", "any text"},
                                       {"maybe", "null"},
                                       {"any", "{x"},
                                       {"ids", R"(["ab"])"}})));
  EXPECT_TRUE(takes(source, call("f", {{"id", "ab"}, {"maybe", "abc"}})));
  EXPECT_FALSE(takes(source, call("f", {{"id", "abc"}})));
  EXPECT_FALSE(takes(source, call("f", {{"id", "ab"}, {"maybe", "abcd"}})));
  EXPECT_FALSE(takes(source, call("f", {{"id", "ab"}, {"ids", "[ab]"}})));
}

TEST(ToolCalls, WhatOfASchemaIsNotSupportedMayBeAnyTextUnlessTheToolIsStrict) {
  constexpr std::string_view kSchema = R"({"$defs":{"a":{"type":"object","properties":{"y":{"multipleOf":2}}}},
    "properties":{"x":{"$ref":"#/$defs/a"},"z":{"type":"integer"},"again":{"$ref":"#/$defs/a"}},"required":["x","again"]})";
  const Source lenient = Source::tool_calls({tool("f", kSchema)}, Calls::One);
  EXPECT_TRUE(takes(lenient, call("f", {{"x", "anything"}, {"z", "5"}, {"again", "at all"}})));
  EXPECT_FALSE(takes(lenient, call("f", {{"x", "anything"}, {"z", "five"}, {"again", "at all"}})));
  EXPECT_EQ(refusal_of(Source::tool_calls({tool("f", kSchema, true)}, Calls::One)),
            "tool 'f': schema, at #/$defs/a/properties/y/multipleOf: 'multipleOf' is not supported");
}

TEST(ToolCalls, TagsThatAreTokensAreReadAsThoseTokens) {
  std::vector<grammar::VocabularyToken> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({byte, std::string(1, static_cast<char>(byte)), false});
  tokens.push_back({256, "<tool_call>", true});
  tokens.push_back({257, "</tool_call>", true});
  tokens.push_back({258, "</think>", true});
  const auto vocabulary = *grammar::Vocabulary::create(std::move(tokens));
  const auto compiled = *grammar::compile(Source::tool_calls({tool("now", "{}")}, Calls::One), *vocabulary);
  grammar::Matcher matcher(compiled, vocabulary);
  matcher.reserve(0, grammar::Matcher::Start::Here);
  std::vector<std::uint32_t> mask(vocabulary->mask_words());
  matcher.allow(matcher.after({}), mask);
  for (std::size_t word = 0; word < mask.size(); ++word) EXPECT_EQ(mask[word], word == 8 ? 1u : 0u) << word;
  matcher.accept(256);
  for (const char c : std::string_view("\n<function=now>\n</function>\n")) matcher.accept(c);
  EXPECT_FALSE(matcher.is_complete(matcher.after({})));
  matcher.accept(257);
  EXPECT_TRUE(matcher.is_complete(matcher.after({})));
}

}  // namespace
}  // namespace rondo::test
