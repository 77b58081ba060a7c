// ReplyParser: what a reply's parts are, and that no cut of its text changes them.
#include "api/reply_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "tests/api/answers.h"

namespace rondo {
namespace {

std::shared_ptr<const std::vector<Tool>> tools() {
  const auto schema = [](const char* text) { return parse_json(text)->as_object(); };
  static const auto kTools = std::make_shared<const std::vector<Tool>>(std::vector<Tool>{
      {"write", schema(R"({"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},
                          "additionalProperties":false})")},
      {"add", schema(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["number","null"]},
                        "list":{"type":"array"},"flag":{"type":"boolean"},"note":{"type":["string","null"]},
                        "any":{},"level":{"enum":["1","2"]},"place":{"$ref":"#/$defs/Place"},
                        "mixed":{"anyOf":[{"type":"string"},{"type":"integer"}]},
                        "loop":{"$ref":"#/$defs/Loop"},"code":{"$ref":"#/$defs/a~1b/anyOf/1"}},
                        "$defs":{"a/b":{"anyOf":[{"type":"integer"},{"type":"string"}]},"Place":{"type":"object"},"Loop":{"anyOf":[{"$ref":"#/$defs/Loop"},{"$ref":"#/$defs/Loop"}]}}})")},
      {"now", {}}});
  return kTools;
}

// The parts in one line: "think[...]" "text[...]" "call 0 name" "args 0[...]" "end 0" "cut 0".
std::string in_words(const ReplyParts& parts) {
  std::string out;
  for (const ReplyPart& part : parts) {
    if (!out.empty()) out += ' ';
    const std::string call = std::to_string(part.call);
    switch (part.kind) {
      case ReplyPart::Kind::Reasoning: out += "think[" + part.text + "]"; break;
      case ReplyPart::Kind::Content: out += "text[" + part.text + "]"; break;
      case ReplyPart::Kind::CallBegin: out += "call " + call + " " + part.text; break;
      case ReplyPart::Kind::CallArguments: out += "args " + call + "[" + part.text + "]"; break;
      case ReplyPart::Kind::CallEnd: out += "end " + call; break;
      case ReplyPart::Kind::CallCut: out += "cut " + call; break;
    }
  }
  return out;
}

// Parts of one kind and call that follow each other, joined.
ReplyParts joined(const ReplyParts& parts) {
  ReplyParts out;
  for (const ReplyPart& part : parts) {
    const bool is_text = part.kind == ReplyPart::Kind::Reasoning || part.kind == ReplyPart::Kind::Content ||
                         part.kind == ReplyPart::Kind::CallArguments;
    if (is_text) {
      append_text(out, part.kind, part.text, part.call);
    } else {
      out.push_back(part);
    }
  }
  return out;
}

ReplyParts parse_in_cuts(Begins begins, const std::string& reply, const std::vector<std::size_t>& cuts) {
  ReplyParser parser({begins == Begins::Thinking, tools(), "call_"});
  ReplyParts all;
  const auto add = [&](const ReplyParts& parts) { all.insert(all.end(), parts.begin(), parts.end()); };
  for (const std::string_view piece : pieces_of(reply, cuts)) add(parser.push(piece));
  add(parser.finish());
  return joined(all);
}

struct ReplyCase {
  std::string name;
  std::string reply;
  std::string parts;
  Begins begins = Begins::Plain;
};

void PrintTo(const ReplyCase& c, std::ostream* out) { *out << c.name; }

// A call of the family's form.
std::string call_of(const std::string& function, const std::vector<std::pair<std::string, std::string>>& arguments) {
  std::string out = "<tool_call>\n<function=" + function + ">\n";
  for (const auto& [key, value] : arguments) out += "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  return out + "</function>\n</tool_call>";
}

const ReplyCase kReplyCases[] = {
    {"Text", " Hello <b>you</b>\n\n", "text[ Hello <b>you</b>\n\n]"},
    {"Empty", "", ""},
    {"ACall", call_of("write", {{"path", "a.txt"}, {"text", "hi"}}),
     R"(call 0 write args 0[{"path":"a.txt","text":"hi"}] end 0)"},
    {"ACallWithoutArguments", call_of("now", {}), "call 0 now args 0[{}] end 0"},
    {"ThoughtThenTextThenCall", "hm\n</think>\n\nLet me see.\n\n" + call_of("now", {}),
     "think[hm] text[Let me see.] call 0 now args 0[{}] end 0", Begins::Thinking},
    {"ACallInsideThoughtIsThought", call_of("now", {}), "think[" + call_of("now", {}) + "]", Begins::Thinking},
    {"TwoCalls", call_of("now", {}) + "\n" + call_of("add", {{"a", "1"}}) + "\n",
     R"(call 0 now args 0[{}] end 0 call 1 add args 1[{"a":1}] end 1)"},
    {"TextAfterACall", "a\n" + call_of("now", {}) + "\nb\n", "text[a] call 0 now args 0[{}] end 0 text[\nb\n]"},
    {"OnOneLine", "<tool_call><function=write><parameter=path>a b</parameter></function></tool_call>",
     R"(call 0 write args 0[{"path":"a b"}] end 0)"},

    // Values.
    {"AValueKeepsItsOwnNewlines", call_of("write", {{"text", "\na\n\nb\n"}}),
     R"(call 0 write args 0[{"text":"\na\n\nb\n"}] end 0)"},
    {"AnEmptyValue", call_of("write", {{"text", ""}}), R"(call 0 write args 0[{"text":""}] end 0)"},
    {"AValueIsEscaped", call_of("write", {{"text", "\"\\\t\x01 日本"}}),
     R"(call 0 write args 0[{"text":"\"\\\t\u0001 日本"}] end 0)"},
    {"ACloseTagInAValue", call_of("write", {{"text", "a</parameter>b\n</parameter>\nc"}}),
     R"(call 0 write args 0[{"text":"a</parameter>b\n</parameter>\nc"}] end 0)"},
    {"ManyCloseTagsInAValue", call_of("write", {{"text", "</parameter></parameter>\n\n</parameter>"}}),
     R"(call 0 write args 0[{"text":"</parameter></parameter>\n\n</parameter>"}] end 0)"},
    {"AFunctionsCloseInAValue", call_of("write", {{"text", "a</parameter></function>b"}, {"path", "</tool_call>"}}),
     R"(call 0 write args 0[{"text":"a</parameter></function>b","path":"</tool_call>"}] end 0)"},
    {"AParameterThatTheToolLacksInAValue", call_of("write", {{"text", "a\n</parameter>\n<parameter=x>\nb"}}),
     R"(call 0 write args 0[{"text":"a\n</parameter>\n<parameter=x>\nb"}] end 0)"},
    {"AParameterThatTheCallHasInAValue",
     call_of("write", {{"path", "p"}, {"text", "a\n</parameter>\n<parameter=path>\nb"}}),
     R"(call 0 write args 0[{"path":"p","text":"a\n</parameter>\n<parameter=path>\nb"}] end 0)"},
    {"AnOpeningTagInAValue", call_of("write", {{"text", "<tool_call>\n<function=now>\n<parameter=path>"}}),
     R"(call 0 write args 0[{"text":"<tool_call>\n<function=now>\n<parameter=path>"}] end 0)"},

    // Types.
    {"NumbersAndNulls", call_of("add", {{"a", "-12"}, {"b", "null"}, {"list", "[1, 2]"}, {"flag", "true"}}),
     R"(call 0 add args 0[{"a":-12,"b":null,"list":[1, 2],"flag":true}] end 0)"},
    {"PythonsWords", call_of("add", {{"b", "None"}, {"flag", "False"}}),
     R"(call 0 add args 0[{"b":null,"flag":false}] end 0)"},
    {"WhatIsNotOfItsTypeIsAString", call_of("add", {{"a", "many"}, {"list", "[1,"}, {"flag", "yes"}, {"b", "1-2"}}),
     R"(call 0 add args 0[{"a":"many","list":"[1,","flag":"yes","b":"1-2"}] end 0)"},
    {"AStringOrNull",
     call_of("add", {{"note", "null"}}) + call_of("add", {{"note", "nullify"}}) + call_of("add", {{"note", "None"}}) +
         call_of("add", {{"note", "5"}}),
     R"(call 0 add args 0[{"note":null}] end 0 call 1 add args 1[{"note":"nullify"}] end 1 )"
     R"(call 2 add args 2[{"note":"None"}] end 2 call 3 add args 3[{"note":"5"}] end 3)"},
    {"AStringOrANumber", call_of("add", {{"mixed", "5"}}) + call_of("add", {{"mixed", "5 apples"}}),
     R"(call 0 add args 0[{"mixed":5}] end 0 call 1 add args 1[{"mixed":"5 apples"}] end 1)"},
    {"AStringOrAnIntegerIsNoFraction", call_of("add", {{"mixed", "3.10"}}) + call_of("add", {{"mixed", "-12\n"}}),
     R"(call 0 add args 0[{"mixed":"3.10"}] end 0 call 1 add args 1[{"mixed":-12}] end 1)"},
    {"UntypedIsJsonWhereItCanBe", call_of("add", {{"any", "{\"x\": 1}"}, {"more", "\"quoted\""}, {"other", "3"}}),
     R"(call 0 add args 0[{"any":{"x": 1},"more":"\"quoted\"","other":3}] end 0)"},
    {"AnEnumOfStringsIsAString", call_of("add", {{"level", "1"}}), R"(call 0 add args 0[{"level":"1"}] end 0)"},
    {"AReferenceIsFollowed", call_of("add", {{"place", "{}"}}), R"(call 0 add args 0[{"place":{}}] end 0)"},
    {"AReferenceHasTheEscapesOfPointersAndPlacesInArrays", call_of("add", {{"code", "12"}}),
     R"(call 0 add args 0[{"code":"12"}] end 0)"},
    {"ASchemaThatRefersToItself", call_of("add", {{"loop", "1"}}), R"(call 0 add args 0[{"loop":1}] end 0)"},
    {"ALongNumberKeepsItsDigits", call_of("add", {{"a", "123456789012345678901234567890"}}),
     R"(call 0 add args 0[{"a":123456789012345678901234567890}] end 0)"},

    // Broken.
    {"AnUnknownFunctionIsText", "x " + call_of("gone", {{"a", "1"}}), "text[x " + call_of("gone", {{"a", "1"}}) + "]"},
    {"AFunctionWithALongerName", call_of("nowhere", {}), "text[" + call_of("nowhere", {}) + "]"},
    {"ACallWithoutAFunction", "<tool_call>\n{\"name\": \"now\"}\n</tool_call>",
     "text[<tool_call>\n{\"name\": \"now\"}\n</tool_call>]"},
    {"ACallAfterABrokenOne", "<tool_call>\n\n" + call_of("now", {}), "text[<tool_call>] call 0 now args 0[{}] end 0"},
    {"TextBetweenFunctionAndParameter", "<tool_call>\n<function=add>\noh <parameter=a>\n1\n</parameter>",
     "text[<tool_call>\n<function=add>\noh <parameter=a>\n1\n</parameter>]"},
    {"CutBeforeTheFunction", "a\n<tool_call>\n<func", "text[a\n<tool_call>\n<func]"},
    {"ABrokenCallAfterAWholeOne", call_of("now", {}) + "\n<tool_call>\n",
     "call 0 now args 0[{}] end 0 text[\n<tool_call>\n]"},
    {"CutInsideAValue", "<tool_call>\n<function=write>\n<parameter=text>\nrm -rf /ho",
     R"(call 0 write args 0[{"text":"rm -rf /ho] cut 0)"},
    {"CutInsideACloseTag", "<tool_call>\n<function=write>\n<parameter=text>\na\n</param",
     R"(call 0 write args 0[{"text":"a\n</param] cut 0)"},
    {"CutBetweenParameters", "<tool_call>\n<function=write>\n<parameter=text>\na\n</parameter>\n",
     R"(call 0 write args 0[{"text":"a\n</parameter>\n] cut 0)"},
    {"CutInsideANumber", "<tool_call>\n<function=add>\n<parameter=a>\n12", R"(call 0 add args 0[{"a":] cut 0)"},
    {"WithoutItsLastTag", "<tool_call>\n<function=add>\n<parameter=a>\n12\n</parameter>\n</function>\n",
     R"(call 0 add args 0[{"a":12}] end 0)"},
    {"CutInsideItsLastTag", "<tool_call>\n<function=now>\n</function>\n</tool_", "call 0 now args 0[{}] end 0"},
};

class ReplyParserOn : public testing::TestWithParam<ReplyCase> {};

TEST_P(ReplyParserOn, GivesTheSamePartsHoweverTheTextIsCut) {
  const ReplyCase& c = GetParam();
  EXPECT_EQ(in_words(parse_in_cuts(c.begins, c.reply, {})), c.parts);
  for (std::size_t first = 0; first <= c.reply.size(); ++first) {
    for (std::size_t second = first; second <= c.reply.size(); ++second) {
      ASSERT_EQ(in_words(parse_in_cuts(c.begins, c.reply, {first, second})), c.parts)
          << "cut at " << first << " and " << second;
    }
  }
}

TEST_P(ReplyParserOn, GivesTheSamePartsByteByByte) {
  const ReplyCase& c = GetParam();
  std::vector<std::size_t> cuts;
  for (std::size_t i = 0; i < c.reply.size(); ++i) cuts.push_back(i);
  EXPECT_EQ(in_words(parse_in_cuts(c.begins, c.reply, cuts)), c.parts);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReplyParserOn, testing::ValuesIn(kReplyCases),
                         [](const auto& test) { return test.param.name; });

// Any order of what replies are made of, cut anywhere.
RC_GTEST_PROP(ReplyParser, AnyCutOfAnyTextGivesTheSameParts, ()) {
  const auto fragments = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "<tool_call>", "</tool_call>", "<function=write>", "<function=add>", "<function=", "</function>",
      "<parameter=text>", "<parameter=a>", "<parameter=x>", "<parameter=", "</parameter>", "\n", "\n\n", " ", "5", "-",
      "null", "{\"a\":", "}", "[", "]", "\"", "true", "</think>", "<think>", "é", "</", "<", ">", "word"));
  std::string reply;
  for (const std::string& fragment : fragments) reply += fragment;
  std::vector<std::size_t> cuts =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, reply.size() + 1));
  std::sort(cuts.begin(), cuts.end());
  const Begins begins = *rc::gen::element(Begins::Plain, Begins::Thinking);
  RC_ASSERT(in_words(parse_in_cuts(begins, reply, cuts)) == in_words(parse_in_cuts(begins, reply, {})));
}

TEST(ReplyParser, ShowsAStringArgumentBeforeItEnds) {
  ReplyParser parser({false, tools(), "call_"});
  EXPECT_EQ(in_words(parser.push("<tool_call>\n<function=write>\n<parameter=text>\nline one\nline ")),
            R"(call 0 write args 0[{"text":"line one\nline ])");
  EXPECT_EQ(in_words(parser.push("two\n</par")), "args 0[two]");
  EXPECT_EQ(in_words(parser.push("ty")), R"(args 0[\n</party])");
}

TEST(ReplyParser, ShowsAStringThatMightHaveBeenNullAsSoonAsItIsNot) {
  ReplyParser parser({false, tools(), "call_"});
  parser.push("<tool_call>\n<function=add>\n<parameter=note>\nnu");
  EXPECT_EQ(in_words(parser.push("mber")), R"(args 0["number])");
}

TEST(ReplyParser, HoldsBackOnlyWhatMayBecomeATag) {
  ReplyParser parser({false, tools(), "call_"});
  EXPECT_EQ(in_words(parser.push("a < b <to")), "text[a < b]");
  EXPECT_EQ(in_words(parser.push("ol> c")), "text[ <tool> c]");
}

TEST(ReplyParser, WithoutToolsNothingIsACall) {
  ReplyParser parser({false, nullptr, "call_"});
  EXPECT_EQ(in_words(parser.push("a\n" + call_of("now", {}))), "text[a\n" + call_of("now", {}) + "]");
  EXPECT_EQ(parser.num_calls(), 0);
}

TEST(ReplyParser, NumbersItsCallsAndTheirIds) {
  ReplyParser parser({false, tools(), "call_7f_"});
  const ReplyParts parts = parser.push(call_of("now", {}) + call_of("now", {}));
  EXPECT_EQ(parts[0].id, "call_7f_0");
  EXPECT_EQ(parts[3].id, "call_7f_1");
  EXPECT_EQ(parser.num_calls(), 2);
}

// A schema that names itself in many branches must not be walked for ever.
TEST(ReplyParser, AHostileSchemaCostsLittle) {
  json::Array branches;
  for (int i = 0; i < 1000; ++i) branches.push_back(json::Object{{"$ref", "#/$defs/X"}});
  json::Object parameters{{"properties", {{"a", {{"$ref", "#/$defs/X"}}}}}};
  parameters["$defs"] = json::Object{{"X", json::Object{{"anyOf", branches}}}};
  EXPECT_EQ(ArgumentType::of(parameters, "a").to_json("5"), "5");
}

}  // namespace
}  // namespace rondo
