#include "cli/bench_prompts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rondo {
namespace {

TEST(BenchPrompts, AreTheFileByteForByte) {
  std::ifstream file(RONDO_BENCH_PROMPTS);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(kBenchPromptsJson, text.str());
}

TEST(BenchPrompts, CodeAndProseAreReadAsTheyAreAndEditsThroughTheTemplate) {
  const auto tokenizer = Tokenizer::open(RONDO_BUNDLED_MODEL);
  const auto chat_template = ChatTemplate::open(RONDO_BUNDLED_MODEL);
  ASSERT_TRUE(tokenizer && chat_template);
  const auto kinds = bench_prompts({"edit", "code"}, *tokenizer, &*chat_template);
  ASSERT_TRUE(kinds.has_value());
  ASSERT_EQ(kinds->size(), 2u);
  EXPECT_EQ(kinds->at(0).name, "edit");
  EXPECT_TRUE(kinds->at(0).ends);
  EXPECT_EQ(kinds->at(0).prompts.size(), 8u);
  EXPECT_TRUE(tokenizer->decode(kinds->at(0).prompts[0], false).starts_with("<|im_start|>user\nRename values"));
  EXPECT_FALSE(kinds->at(1).ends);
  EXPECT_TRUE(tokenizer->decode(kinds->at(1).prompts[0], false).starts_with("def parse_duration(text):\n"));
}

TEST(BenchPrompts, AnUnknownKindAndAMissingTemplateAreRefusedByName) {
  const auto tokenizer = Tokenizer::open(RONDO_BUNDLED_MODEL);
  ASSERT_TRUE(tokenizer.has_value());
  const auto unknown = bench_prompts({"verse"}, *tokenizer, nullptr);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "there are no 'verse' prompts; known: code, prose, edit");
  EXPECT_FALSE(bench_prompts({"edit"}, *tokenizer, nullptr).has_value());
}

}  // namespace
}  // namespace rondo
