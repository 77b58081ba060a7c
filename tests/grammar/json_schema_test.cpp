#include <gtest/gtest.h>

#include "tests/grammar/acceptance.h"

namespace rondo::test {
namespace {

using grammar::Source;

Source schema(std::string_view text) { return Source::json_schema(*parse_json(text)); }

struct SchemaCase {
  const char* schema;
  std::vector<std::string> taken, refused;
};

void check(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& c : cases) {
    ASSERT_EQ(refusal_of(schema(c.schema)), "") << c.schema;
    for (const auto& text : c.taken) EXPECT_TRUE(takes(schema(c.schema), text)) << c.schema << " on " << text;
    for (const auto& text : c.refused) EXPECT_FALSE(takes(schema(c.schema), text)) << c.schema << " on " << text;
  }
}

TEST(JsonSchema, ValuesOfOneType) {
  check({
      {R"({"type":"null"})", {"null"}, {"", "nul", "nulll", "true"}},
      {R"({"type":"boolean"})", {"true", "false"}, {"null", "True"}},
      {R"({"type":"integer"})", {"0", "-1", "123456789012345678"}, {"01", "-0", "1.0", "+1", "1234567890123456789"}},
      {R"({"type":"number"})", {"0", "-0.5", "1e5", "2.5E-07", "1e299"}, {"01", ".5", "1.", "1e", "1e300", "-"}},
      {R"({"type":"string"})",
       {R"("")", R"("aé\n\u00e9\ud83d\ude42\/")"},
       {"\"", "\"a\n\"", R"("\x")", R"("\ud83d")", R"("\ude42")", "\"\xFF\""}},
      {R"({"type":["string","null"]})", {"null", "\"a\""}, {"1"}},
      {R"({"enum":["a",1,null,{"b":[1,2]},"\""]})",
       {"\"a\"", "1", "null", R"({"b":[1,2]})", R"({"b": [1, 2]})", R"("\"")"},
       {"2", "\"b\"", R"("\u0061")"}},
      {R"({"const":"x\ny"})", {R"("x\ny")"}, {"\"x\"", "\"x\ny\""}},
      {R"({"type":"integer","enum":[1,"a",2]})", {"1", "2"}, {"\"a\""}},
      {R"({})", {"1", "{}", "[[{\"a\": null}]]", "\"x\""}, {"", "{", "nan"}},
      {R"(true)", {"1", "{}"}, {"x"}},
  });
}

TEST(JsonSchema, ObjectsHaveTheirPropertiesInOrderAndTheRequiredOnesAlways) {
  check({
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},"required":["a","b"]})",
       {R"({"a":1,"b":true})", "{ \"a\": 1, \"b\": true }", "{\n  \"a\": 1,\n  \"b\": true\n}"},
       {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"a":1,"b":true,})", R"({"a":1,"b":true,"c":1})",
        R"({"a" :1,"b":true})"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["b"],"additionalProperties":false})",
       {R"({"b":2})", R"({"a":1,"b":2})", R"({"b":2,"c":3})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"a":1,"c":3})", R"({,"b":2})", R"({"b":2,})"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}}})",
       {"{}", "{ }", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
       {R"({"c":1})", R"({"a":2})"}},
      {R"({"type":"object"})", {"{}", R"({"x":[1],"y":{"z":null}})"}, {"[]", R"({"x"})"}},
      {R"({"type":"object","properties":{}})", {"{}"}, {R"({"x":1})"}},
      {R"({"type":"object","additionalProperties":{"type":"integer"}})", {"{}", R"({"x":1,"y":2})"}, {R"({"x":"a"})"}},
      {R"({"type":"object","properties":{"ab":{"const":1}},"required":["ab"],"additionalProperties":{"const":2}})",
       {R"({"ab":1})", R"({"ab":1,"a":2})", R"({"ab":1,"abc":2,"":2,"\"":2})"},
       {R"({"ab":1,"ab":2})", R"({"ab":1,"\u0061b":2})", R"({"a":2})", R"({"ab":2})"}},
      {R"({"type":"object","required":["x"],"additionalProperties":{"type":"integer"}})",
       {R"({"x":1,"y":2})"},
       {"{}", R"({"y":2})"}},
  });
}

TEST(JsonSchema, Arrays) {
  check({
      {R"({"type":"array"})", {"[]", "[1,\"a\",[{}]]", "[\n  1,\n  2\n]"}, {"[1", "[,]", "[1,]"}},
      {R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1]", "[1,2,3]"}, {"[true]"}},
      {R"({"items":{"type":"integer"},"minItems":2,"maxItems":3})", {"[1,2]", "[1,2,3]"}, {"[]", "[1]", "[1,2,3,4]"}},
      {R"({"items":{"type":"integer"},"maxItems":1})", {"[]", "[1]"}, {"[1,2]"}},
      {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"prefixItems":[{"const":1},{"const":"a"}]})", {"[]", "[1]", "[1,\"a\"]"}, {"[\"a\"]", "[1,\"a\",2]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}],"items":{"const":3},"minItems":1,"maxItems":4})",
       {"[1]", "[1,2]", "[1,2,3]", "[1,2,3,3]"},
       {"[]", "[1,3]", "[1,2,3,3,3]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}],"items":false,"minItems":2})", {"[1,2]"}, {"[1]", "[1,2,3]"}},
      {R"({"prefixItems":[{"const":1},{"const":2},{"const":3}],"maxItems":2})", {"[]", "[1]", "[1,2]"}, {"[1,2,3]"}},
      {R"({"items":{"type":"integer"},"minItems":100,"maxItems":100,"uniqueItems":false})", {}, {"[1,2]"}},
  });
}

TEST(JsonSchema, StringsByLengthPatternAndFormat) {
  check({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("é🙂\n")", R"("\ud83d\ude42a")"},
       {R"("a")", R"("abcd")", R"("\ud83d\ude42")"}},
      {R"({"type":"string","pattern":"^[a-z]+$"})", {"\"abc\""}, {"\"\"", "\"aB\"", R"("\u0061")"}},
      {R"({"type":"string","pattern":"b+"})", {"\"b\"", "\"abc\"", R"("\"b\\")"}, {"\"\"", "\"ac\""}},
      {R"({"type":"string","pattern":"^\"\\\\\\n.$"})", {R"("\"\\\nx")", R"("\"\\\n\"")"}, {R"("\"\\\n\n")"}},
      {R"({"type":"string","pattern":"^a*$","minLength":2,"maxLength":4})",
       {"\"aa\"", "\"aaaa\""},
       {"\"a\"", "\"aaaaa\"", "\"ab\""}},
      {R"({"type":"string","format":"date"})",
       {"\"2026-11-30\"", "\"2024-02-29\""},
       {"\"2026-02-29\"", "\"2026-13-01\"", "\"2026-1-1\""}},
      {R"({"type":"string","format":"date-time"})",
       {"\"2026-11-30T17:46:07Z\"", "\"2026-11-30T17:46:07.5+02:00\""},
       {"\"2026-11-30\"", "\"2026-11-30 17:46:07Z\""}},
      {R"({"type":"string","format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""}, {"\"123e4567\""}},
      {R"({"type":"string","format":"ipv4"})", {"\"192.168.0.255\""}, {"\"192.168.0.256\"", "\"1.2.3\""}},
      {R"({"type":"string","format":"ipv6"})",
       {"\"::1\"", "\"2001:db8::8a2e:370:7334\"", "\"::\""},
       {"\":\"", "\"1:2\""}},
      {R"({"type":"string","format":"email"})", {"\"a.b+c@d-e.org\""}, {"\"a@b\"", "\"@b.c\"", "\"a..b@c.d\""}},
      {R"({"type":"string","format":"duration"})",
       {"\"P3Y6M4DT12H30M5S\"", "\"PT1M\"", "\"P2W\""},
       {"\"P\"", "\"PT\"", "\"P1S\""}},
  });
}

TEST(JsonSchema, NumbersInBounds) {
  for (const auto& [low, high] :
       {std::pair{0, 0}, {0, 9}, {7, 123}, {-5, 5}, {-123, -7}, {99, 1001}, {-1, 0}, {100, 200}}) {
    const Source source = schema("{\"type\":\"integer\",\"minimum\":" + std::to_string(low) +
                                 ",\"maximum\":" + std::to_string(high) + "}");
    const auto compiled = *grammar::compile(source, *byte_vocabulary());
    for (int n = -1100; n <= 1100; ++n) {
      ASSERT_EQ(read_text(compiled, std::to_string(n)) == Taken::Whole, low <= n && n <= high)
          << low << " " << high << " " << n;
    }
  }
  check({
      {R"({"type":"integer","minimum":18})", {"18", "99", "123456789012345678"}, {"17", "-18", "0"}},
      {R"({"type":"integer","exclusiveMaximum":0})", {"-1", "-999"}, {"0", "1"}},
      {R"({"type":"integer","minimum":0.5,"exclusiveMaximum":2.5})", {"1", "2"}, {"0", "3"}},
      {R"({"type":"integer","minimum":5,"maximum":4,"type":["integer","null"]})", {"null"}, {"4", "5"}},
      {R"({"type":"integer","minimum":9007199254740993,"maximum":9007199254740995})",
       {"9007199254740993", "9007199254740995"},
       {"9007199254740992", "9007199254740996"}},
      {R"({"type":"integer","exclusiveMinimum":9007199254740992,"exclusiveMaximum":9007199254740995})",
       {"9007199254740993", "9007199254740994"},
       {"9007199254740992", "9007199254740995"}},
      {R"({"type":"integer","allOf":[{"minimum":9007199254740993},{"minimum":9007199254740992}]})",
       {"9007199254740993"},
       {"9007199254740992"}},
      {R"({"type":"integer","allOf":[{"minimum":9007199254740992},{"minimum":9007199254740993}]})",
       {"9007199254740993"},
       {"9007199254740992"}},
      {R"({"type":"integer","minimum":-1e300,"maximum":18446744073709551615})", {"-1", "999999999999999999"}, {"1.5"}},
      {R"({"type":"number","minimum":0,"maximum":1})",
       {"0", "0.0", "0.55", "1", "1.0"},
       {"-0.1", "1.1", "2", "1.01", "1e0"}},
      {R"({"type":"number","exclusiveMinimum":0})", {"0.001", "1", "1000.5"}, {"0", "0.0", "-1"}},
      {R"({"type":"number","minimum":-2,"exclusiveMaximum":3})",
       {"-2", "-2.0", "-1.99", "-0.5", "0", "2.999"},
       {"3", "3.0", "-2.01", "-3"}},
      {R"({"type":"number","maximum":-7})", {"-7", "-7.5", "-100"}, {"-6.9", "7", "0"}},
      {R"({"type":"number","exclusiveMinimum":-3,"exclusiveMaximum":-1})",
       {"-1.5", "-2", "-2.999"},
       {"-1", "-1.0", "-3", "-0.5"}},
  });
}

TEST(JsonSchema, CombinationsAndReferences) {
  check({
      {R"({"anyOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"a\""}, {"null"}},
      {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"a\""}, {"null"}},
      {R"({"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},
                    {"type":"object","properties":{"kind":{"enum":["b","c"]}},"required":["kind"]}]})",
       {R"({"kind":"a","x":1})", R"({"kind":"c"})"},
       {R"({"kind":"a"})", R"({"kind":"b","x":1})"}},
      {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"const":2}},"required":["b"]}]})",
       {R"({"a":1,"b":2})"},
       {R"({"a":1})", R"({"b":2})"}},
      {R"({"type":"integer","allOf":[{"minimum":3},{"minimum":5},{"maximum":9}]})", {"5", "9"}, {"4", "10"}},
      {R"({"prefixItems":[{"const":1}],"allOf":[{"prefixItems":[{"const":1}],"items":{"const":2}},{"minItems":2}]})",
       {"[1,2]"},
       {"[1]", "[1,1]"}},
      {R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
       {"{}"}},
      {R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}}})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
       {R"({"v":1})", R"({"v":1,"next":{"v":2}})"}},
      {R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]", "[[]"}},
      {R"({"$ref":"#/$defs/a~1b/%63","$defs":{"a/b":{"c":{"type":"null"}}}})", {"null"}, {"1"}},
      {R"({"$ref":"#/$defs/n","maximum":5,"$defs":{"n":{"type":"integer","minimum":3}}})", {"3", "5"}, {"2", "6"}},
  });
}

TEST(JsonSchema, WhatItCannotKeepToIsRefusedByItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"object","properties":{"a":{"type":"integer","multipleOf":3}}})",
       "schema, at #/properties/a/multipleOf: 'multipleOf' is not supported"},
      {R"({"type":"array","uniqueItems":true})", "schema, at #/uniqueItems: 'uniqueItems' is not supported"},
      {R"({"not":{"type":"null"}})", "schema, at #/not: 'not' is not supported"},
      {R"({"type":"object","patternProperties":{"a":{}}})",
       "schema, at #/patternProperties: 'patternProperties' is not supported"},
      {R"({"properties":{"a/b":{"type":"strnig"}}})",
       "schema, at #/properties/a~1b/type: a type is null, boolean, integer, number, string, array or object, or an "
       "array of these"},
      {R"({"type":"string","format":"color"})",
       "schema, at #/format: the format 'color' is not supported; these are: date-time, date, time, duration, email, "
       "hostname, ipv4, ipv6, uri, uuid"},
      {R"~({"type":"string","pattern":"a(?=b)"})~",
       "schema, at #/pattern: pattern, at byte 3: lookahead is not supported"},
      {R"({"type":"number","minimum":0.5})",
       "schema, at #/minimum: bounds of numbers must be whole and at most 1e12; integers may have others"},
      {R"({"type":"string","minLength":-1})", "schema, at #/minLength: minLength is a whole number from 0"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
       "schema, at #/oneOf: a value may fit both part 0 and part 1: only parts that differ in type, or in a required "
       "property of fixed value, are supported; anyOf takes any"},
      {R"({"$ref":"#/$defs/a"})", "schema, at #/$ref: $ref '#/$defs/a' points at nothing"},
      {R"({"$ref":"http://example.com/x"})",
       "schema, at #/$ref: a $ref is # or #/... inside this schema; others are not supported"},
      {R"({"$ref":"#"})", "schema, at #: the schema refers to itself before anything is read (left recursion)"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
       "no text can match, or only one that nests deeper than 64"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})",
       "schema, at #/required: 'a' is required, but no property may have that name"},
      {R"({"allOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]})",
       "schema, at #/allOf/1: one part has properties that additionalProperties of another part rules on"},
      {R"({"allOf":[{"prefixItems":[{"type":"string"}]},{"items":{"type":"integer"}}]})",
       "schema, at #/allOf/1: one part has prefixItems that items of another part rules on"},
      {R"({"items":{"type":"integer"},"anyOf":[{"prefixItems":[{"type":"string"}],"items":false}]})",
       "schema, at #/anyOf/0: one part has prefixItems that items of another part rules on"},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})",
       "schema, at #/allOf/1: 'pattern' is said twice, in a way that cannot be put in one"},
      {R"({"enum":[]})", "schema, at #/enum: no value is left to choose"},
      {R"({"enum":["a"],"minLength":1})", "schema, at #/minLength: 'minLength' beside enum or const is not supported"},
      {R"([])", "schema, at #: a schema is an object, true or false"},
      {R"({"items":[{}]})", "schema, at #/items: an array of items is not supported; prefixItems is"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(refusal_of(schema(text)), message) << text;
}

TEST(JsonSchema, WhatWouldGrowWithoutBoundIsRefusedAndQuickly) {
  const auto refused = [](const std::string& text) { EXPECT_NE(refusal_of(schema(text)), "") << text.substr(0, 100); };
  refused(R"({"type":"string","maxLength":1000000})");
  refused(R"({"type":"array","items":{"type":"integer"},"minItems":1000000})");
  refused(R"({"type":"string","pattern":"(a|b)*a(a|b){25}"})");
  std::string wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 5000; ++i) wide += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\":{}";
  refused(wide + "}}");
  std::string crossed = R"({"allOf":[)";  // 2^n ways to choose
  for (int i = 0; i < 40; ++i)
    crossed += std::string(i == 0 ? "" : ",") + R"({"anyOf":[{"type":"integer"},{"type":"integer","minimum":)" +
               std::to_string(i) + "}]}";
  refused(crossed + "]}");
  refused(
      R"({"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}})");
}

TEST(JsonSchema, AnObjectOfManyPropertiesAndAStringOfManyCharactersAreTaken) {
  std::string wide = R"({"type":"object","properties":{)", text = "{";
  for (int i = 0; i < 500; ++i) {
    wide += (i == 0 ? "\"property" : ",\"property") + std::to_string(i) + R"(":{"type":"integer"})";
    if (i % 3 == 0) text += (i == 0 ? "\"property" : ",\"property") + std::to_string(i) + "\":1";
  }
  EXPECT_TRUE(takes(schema(wide + "}}"), text + "}"));
  EXPECT_TRUE(takes(schema(R"({"type":"string","maxLength":5000})"), "\"" + std::string(5000, 'x') + "\""));
  EXPECT_FALSE(takes(schema(R"({"type":"string","maxLength":5000})"), "\"" + std::string(5001, 'x') + "\""));
}

}  // namespace
}  // namespace rondo::test
