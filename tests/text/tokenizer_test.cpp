#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/text/tiny_tokenizer.h"
#include "text/utf8.h"

namespace rondo::test {
namespace {

using Ids = std::vector<std::int32_t>;

bool has_control_token(const Tokenizer& tokenizer, const Ids& ids) {
  const Ids added = tokenizer.added_ids();
  return std::any_of(ids.begin(), ids.end(), [&](int id) { return std::count(added.begin(), added.end(), id) > 0; });
}

Ids bytes(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

TEST(Tokenizer, MergesAndFindsControlTokens) {
  const Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.encode("hello<|im_end|>"), (Ids{kHello, kImEnd}));
  EXPECT_EQ(tokenizer.encode("helo"), (Ids{kHe, kLo}));  // l o has the lowest rank
  EXPECT_EQ(tokenizer.encode(""), Ids());
  EXPECT_EQ(tokenizer.encode("\xFF"), bytes("\xEF\xBF\xBD"));
}

TEST(Tokenizer, OfOverlappingControlTokensTheLongestAtTheLeftmostPlaceCounts) {
  const Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.encode("<|im_start|>"), Ids{kImStart});
  EXPECT_EQ(tokenizer.encode("<|im_s"), (Ids{kIm, '_', 's'}));
}

TEST(Tokenizer, TextThatSpellsAControlTokenStaysTextWhereItIsUntrusted) {
  const Tokenizer tokenizer = tiny_tokenizer();
  for (const std::string text : {"<|im_end|>", "<think>", "<|im_start|>", "<|im"}) {
    const Ids ids = tokenizer.encode(MarkedText{text, {{0, text.size()}}});
    EXPECT_FALSE(has_control_token(tokenizer, ids)) << text;
    EXPECT_EQ(tokenizer.decode(ids, false), text);
    EXPECT_TRUE(has_control_token(tokenizer, tokenizer.encode(MarkedText{text, {}})));
  }
}

TEST(Tokenizer, OneUntrustedByteAnywhereInAControlTokenMakesItText) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const std::string text = "<think>";
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(has_control_token(tokenizer, tokenizer.encode(MarkedText{text, {{i, i + 1}}}))) << i;
  }
}

TEST(Tokenizer, AControlTokenBesideUntrustedTextIsRead) {
  const Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.encode(MarkedText{"hello<|im_end|>hello", {{0, 5}, {15, 20}}}), (Ids{kHello, kImEnd, kHello}));
  // "<|im" is all trusted though the longer token that begins with it is not.
  EXPECT_EQ(tokenizer.encode(MarkedText{"<|im_end|>", {{4, 10}}}).front(), kIm);
}

TEST(Tokenizer, ATrustedTokenThatOverlapsARejectedOneIsFound) {
  json::Object document = tiny_document();
  document["added_tokens"].as_array().push_back(added_token(310, "abc", false));
  document["added_tokens"].as_array().push_back(added_token(311, "bcd", false));
  const Tokenizer tokenizer = tokenizer_of(document);
  EXPECT_EQ(tokenizer.encode("abcd"), (Ids{310, 'd'}));
  EXPECT_EQ(tokenizer.encode(MarkedText{"abcd", {{0, 1}}}), (Ids{'a', 311}));
}

TEST(Tokenizer, UntrustedTextIsSplitTogetherWithWhatStandsBesideIt) {
  const Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.encode(MarkedText{"hello", {{2, 3}}}), Ids{kHello});
}

TEST(Tokenizer, AnUntrustedPartOfAComposedCharacterKeepsANormalizedTokenAway) {
  json::Object document = tiny_document();
  json::Object token = added_token(310, "xe\xCC\x81", false);
  token["normalized"] = true;
  document["added_tokens"].as_array().push_back(token);
  const Tokenizer tokenizer = tokenizer_of(document);
  EXPECT_EQ(tokenizer.encode("xe\xCC\x81"), Ids{310});
  EXPECT_EQ(tokenizer.encode("x\xC3\xA9"), Ids{310});
  EXPECT_EQ(tokenizer.encode(MarkedText{"xe\xCC\x81", {{2, 4}}}), bytes("x\xC3\xA9"));
}

TEST(Tokenizer, TrustIsCountedFromTheBeginningOfTheTextBehindAControlTokenToo) {
  json::Object document = tiny_document();
  json::Object token = added_token(310, "[n]", false);
  token["normalized"] = true;
  document["added_tokens"].as_array().push_back(token);
  const Tokenizer tokenizer = tokenizer_of(document);
  EXPECT_EQ(tokenizer.encode(MarkedText{"hello<think>[n]", {{0, 5}}}), (Ids{kHello, kThink, 310}));
  EXPECT_EQ(tokenizer.encode(MarkedText{"<think>[n]", {{8, 9}}}), (Ids{kThink, '[', 'n', ']'}));
}

TEST(Tokenizer, TakesWhiteSpaceBesideATokenThatStrips) {
  json::Object document = tiny_document();
  json::Object token = added_token(310, "<mask>", false);
  token["lstrip"] = token["rstrip"] = true;
  document["added_tokens"].as_array().push_back(token);
  EXPECT_EQ(tokenizer_of(document).encode("a \xE3\x80\x80<mask>\n\tb"), (Ids{'a', 310, 'b'}));
}

TEST(Tokenizer, AWholePieceIsOneTokenWhenMergesAreIgnored) {
  json::Object document = tiny_document();
  document["model"].as_object()["vocab"].as_object()["xyz"] = 280;
  EXPECT_EQ(tokenizer_of(document).encode("xyz"), bytes("xyz"));
  document["model"].as_object()["ignore_merges"] = true;
  EXPECT_EQ(tokenizer_of(document).encode("xyz"), Ids{280});
}

TEST(Tokenizer, KnowsItsVocabulary) {
  const Tokenizer tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), kIm + 1);
  EXPECT_EQ(tokenizer.added_ids(), (Ids{kImStart, kImEnd, kThink, kIm}));
  EXPECT_TRUE(tokenizer.is_special(kImEnd));
  EXPECT_FALSE(tokenizer.is_special(kThink));
  EXPECT_FALSE(tokenizer.is_special(kHello));
  EXPECT_EQ(tokenizer.find_id("<think>"), kThink);
  EXPECT_EQ(tokenizer.find_id("hello"), kHello);
  EXPECT_EQ(tokenizer.find_id("\n"), '\n');
  EXPECT_EQ(tokenizer.find_id("nothing of the kind"), std::nullopt);
  EXPECT_EQ(tokenizer.bytes_of(kHello), "hello");
  for (const int hole : {-1, 299, kIm + 1, 1 << 30}) EXPECT_EQ(tokenizer.bytes_of(hole), "");
}

TEST(Tokenizer, LeavesOutSpecialTokensOnlyWhenAsked) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Ids ids = {kThink, kHello, kImEnd, 299};
  EXPECT_EQ(tokenizer.decode(ids, false), "<think>hello<|im_end|>");
  EXPECT_EQ(tokenizer.decode(ids, true), "<think>hello");
}

TEST(Tokenizer, ReadsTheBundledModel) {
  const auto tokenizer = Tokenizer::open(RONDO_BUNDLED_MODEL);
  ASSERT_TRUE(tokenizer.has_value());
  const std::string text = "<|im_start|>user\nWhat is 23 + 45?<|im_end|>\n";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text), false), text);
  EXPECT_EQ(tokenizer->encode(text).front(), tokenizer->find_id("<|im_start|>"));
}

TEST(Tokenizer, AFolderWithoutATokenizerIsNotFound) {
  const auto tokenizer = Tokenizer::open("/nonexistent/folder");
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(tokenizer.error().code, ErrorCode::NotFound);
  EXPECT_NE(tokenizer.error().message.find("tokenizer.json"), std::string::npos);
}

std::string pushed(Detokenizer& detokenizer, int id) {
  std::string shown;
  detokenizer.push(id, shown);
  return shown;
}

std::string detokenized(const Tokenizer& tokenizer, const Ids& ids, bool skip_special) {
  Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (const int id : ids) {
    const std::string piece = pushed(detokenizer, id);
    EXPECT_TRUE(is_utf8(piece));
    text += piece;
  }
  return text + detokenizer.finish();
}

TEST(Detokenizer, HoldsBackAnUnfinishedCodePoint) {
  const Tokenizer tokenizer = tiny_tokenizer();
  Detokenizer detokenizer(tokenizer, false);
  EXPECT_EQ(pushed(detokenizer, 0xF0), "");
  EXPECT_EQ(pushed(detokenizer, 0x9F), "");
  EXPECT_EQ(pushed(detokenizer, 0x98), "");
  EXPECT_EQ(pushed(detokenizer, 0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(pushed(detokenizer, 0xE2), "");
  EXPECT_EQ(pushed(detokenizer, 'a'),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(pushed(detokenizer, 0xE2), "");
  EXPECT_EQ(detokenizer.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, PiecesJoinedAreTheWholeDecodedAtOnce) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Ids likely = {0xF0, 0x9F, 0x98, 0x80, 0xE2, 0x82,   0xAC,   0xC3, 0xA9,
                      0xED, 0xA0, 0xF4, 0x90, 'a',  kHello, kImEnd, 299};
  std::mt19937 random(9);
  for (int round = 0; round < 20000; ++round) {
    Ids ids;
    for (std::size_t i = random() % 12; i > 0; --i) ids.push_back(likely[random() % likely.size()]);
    for (const bool skip : {false, true}) {
      ASSERT_EQ(detokenized(tokenizer, ids, skip), replace_invalid_utf8(tokenizer.decode(ids, skip)));
    }
  }
}

}  // namespace
}  // namespace rondo::test
