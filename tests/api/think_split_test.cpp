// ThinkSplit and ends_inside_think: thought never leaks into the answer, nor the answer into thought.
#include "api/think_split.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/api/answers.h"

namespace rondo {
namespace {

ThinkSplit::Pieces split_in_cuts(Begins begins, const std::string& reply, const std::vector<std::size_t>& cuts) {
  ThinkSplit split(begins == Begins::Thinking);
  ThinkSplit::Pieces all;
  const auto add = [&](const ThinkSplit::Pieces& pieces) {
    all.reasoning += pieces.reasoning;
    all.content += pieces.content;
  };
  for (const std::string_view piece : pieces_of(reply, cuts)) add(split.push(piece));
  add(split.finish());
  return all;
}

struct SplitCase {
  std::string name;
  Begins begins;
  std::string reply;
  std::string reasoning;
  std::string content;
};

void PrintTo(const SplitCase& c, std::ostream* out) { *out << c.name; }

const SplitCase kSplitCases[] = {
    {"PlainContentIsUntouched", Begins::Plain, "\n\nHello\n", "", "\n\nHello\n"},
    {"ThoughtThenAnswer", Begins::Thinking, "Let me see.\n</think>\n\n68", "Let me see.", "68"},
    {"AnEmptyThought", Begins::Thinking, "\n</think>\n\n68", "", "68"},
    {"CutInThoughtStaysThought", Begins::Thinking, "Let me", "Let me", ""},
    {"CutInsideTheTagStaysThought", Begins::Thinking, "Let me\n</thi", "Let me\n</thi", ""},
    {"TheReplyOpensTheTag", Begins::Plain, "<think>\nhm\n\n</think>\n\nyes", "hm", "yes"},
    {"WhiteSpaceBeforeTheOpenedTagGoes", Begins::Plain, "\n <think>hm</think>yes", "hm", "yes"},
    {"ATagLaterInContentIsContent", Begins::Plain, "a <think>b</think> c", "", "a <think>b</think> c"},
    {"AnAlmostTagIsContent", Begins::Plain, "<thinker>", "", "<thinker>"},
    {"AnUnfinishedTagIsContent", Begins::Plain, " <thi", "", " <thi"},
    {"NewlinesInsideThoughtStay", Begins::Thinking, "a\n\nb\n</think>c\n\nd\n", "a\n\nb", "c\n\nd\n"},
    {"ASecondCloseIsContent", Begins::Thinking, "a</think>b</think>c", "a", "b</think>c"},
    {"AnOpeningInsideThoughtIsThought", Begins::Thinking, "a <think> b</think>c", "a <think> b", "c"},
    {"OtherScripts", Begins::Thinking, "考えます</think>答え", "考えます", "答え"},
    {"EmptyReply", Begins::Plain, "", "", ""},
    {"EmptyThinkingReply", Begins::Thinking, "", "", ""},
};

class ThinkSplitOn : public testing::TestWithParam<SplitCase> {};

TEST_P(ThinkSplitOn, GivesTheSamePiecesHoweverTheTextIsCut) {
  const SplitCase& c = GetParam();
  for (std::size_t first = 0; first <= c.reply.size(); ++first) {
    for (std::size_t second = first; second <= c.reply.size(); ++second) {
      const ThinkSplit::Pieces pieces = split_in_cuts(c.begins, c.reply, {first, second});
      ASSERT_EQ(pieces.reasoning, c.reasoning) << "cut at " << first << " and " << second;
      ASSERT_EQ(pieces.content, c.content) << "cut at " << first << " and " << second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ThinkSplitOn, testing::ValuesIn(kSplitCases),
                         [](const auto& test) { return test.param.name; });

TEST(ThinkSplit, ShowsAThoughtBeforeItEnds) {
  ThinkSplit split(true);
  EXPECT_EQ(split.push("first ").reasoning, "first ");
  EXPECT_TRUE(split.is_thinking());
}

TEST(EndsInsideThink, SeesATagThatTheTemplateOpened) {
  EXPECT_TRUE(ends_inside_think({"<|im_start|>assistant\n<think>\n", {}}));
  EXPECT_TRUE(ends_inside_think({"hi<think>", {{0, 2}}}));
}

TEST(EndsInsideThink, IsFalseAfterAClosedTag) {
  EXPECT_FALSE(ends_inside_think({"<think>\n\n</think>\n\n", {}}));
  EXPECT_FALSE(ends_inside_think({"", {}}));
  EXPECT_FALSE(ends_inside_think({" \n", {}}));
}

TEST(EndsInsideThink, IgnoresATagThatAClientSpelled) {
  EXPECT_FALSE(ends_inside_think({"<think>\n", {{0, 8}}}));
  EXPECT_FALSE(ends_inside_think({"<think>\n", {{0, 1}}}));
}

}  // namespace
}  // namespace rondo
