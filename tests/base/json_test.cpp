#include "base/json.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdlib>

namespace rondo {
namespace {

std::string again(std::string_view text) { return to_json(parse_json(text).value()); }

TEST(ParseJson, ReadsEveryKindOfValueAndKeepsTheOrderOfKeys) {
  const std::string_view text = R"({"z":[1,-2,3.5,true,false,null],"a":{"b":"c"},"m":18446744073709551615,"":[]})";
  EXPECT_EQ(again(text), text);
}

TEST(ParseJson, SaysAtWhichByteAndWhy) {
  const auto result = parse_json(R"({"a": 1, "b": tru})");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::InvalidArgument);
  EXPECT_TRUE(result.error().message.starts_with("invalid JSON at byte 14: ")) << result.error().message;
}

TEST(ParseJson, RefusesWhatIsNotOneDocument) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "[1,]",
                                      "{\"a\":}",
                                      "{'a':1}",
                                      "01",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "NaN",
                                      "Infinity",
                                      "-",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\ud800\"",
                                      "\"a\nb\"",
                                      "[1]]",
                                      "1 2",
                                      "{} x",
                                      "// c\n1",
                                      "[1,2",
                                      "tru",
                                      "\"\\u12\"",
                                      "\xef\xbb\xbf"
                                      "1"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_TRUE(parse_json(" [1] \n"));
}

TEST(ParseJson, NamesTextAfterTheDocument) {
  EXPECT_EQ(parse_json("[1] x").error().message, "invalid JSON at byte 4: text after the document");
}

TEST(ParseJson, RefusesStringsThatAreNotUtf8) {
  for (const std::string_view text :
       {"\"\xff\"", "\"\xc3\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\""}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  EXPECT_TRUE(parse_json("\"\xf0\x9f\x8e\xb5\""));
}

TEST(ParseJson, IsBoundedInDepth) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(parse_json(nested(64)));
  EXPECT_FALSE(parse_json(nested(65)));
  EXPECT_FALSE(parse_json(nested(1'000'000)));
  EXPECT_TRUE(parse_json(nested(3), 3));
  EXPECT_FALSE(parse_json(nested(4), 3));
}

TEST(ToJson, WritesNumbersAsPythonDoes) {
  EXPECT_EQ(again("[0.1, 1.0, -0.0, 1e5, 1e22, 1.5e-7, 123456789.25, 5e-324]"),
            "[0.1,1.0,-0.0,1e+05,1e+22,1.5e-07,123456789.25,5e-324]");
  EXPECT_EQ(again("[1, -9223372036854775808, 9223372036854775807]"), "[1,-9223372036854775808,9223372036854775807]");
}

TEST(ToJson, WritesNullForWhatJsonCannotSay) {
  EXPECT_EQ(to_json(json::Array{INFINITY, -INFINITY, std::nan("")}), "[null,null,null]");
}

TEST(ToJson, EscapesControlCharactersAndLeavesTheRestAsUtf8) {
  const std::string text("\"\\\b\f\n\r\t\x01\x1f\x7f/\0 h\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x8e\xb5", 25);
  EXPECT_EQ(to_json(json::Value(text)),
            "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/\\u0000 h\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x8e\xb5\"");
  EXPECT_EQ(again("\"\\ud83c\\udfb5\\/\""), "\"\xf0\x9f\x8e\xb5/\"");
}

TEST(ToJson, EveryFiniteDoubleReadsBackToTheSameBits) {
  EXPECT_TRUE(rc::check("strtod and our parser both give the bits that were written", [](std::uint64_t bits) {
    const auto number = std::bit_cast<double>(bits);
    RC_PRE(std::isfinite(number));
    std::string written;
    append_json_number(written, number);
    RC_ASSERT(std::bit_cast<std::uint64_t>(std::strtod(written.c_str(), nullptr)) == bits);
    const auto value = parse_json(written).value();
    RC_ASSERT(value.is_double());
  }));
}

TEST(ToJson, EveryStringReadsBackUnchanged) {
  EXPECT_TRUE(rc::check("a string of code points survives", [](const std::vector<std::uint8_t>& bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) text += static_cast<char>(byte & 0x7F);
    RC_ASSERT(parse_json(to_json(json::Value(text))).value().as_string() == text);
  }));
}

}  // namespace
}  // namespace rondo
