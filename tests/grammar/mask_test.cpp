// Masks against the plainest way to make them: every token of the vocabulary tried by itself.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "tests/grammar/acceptance.h"
#include "text/tokenizer.h"

namespace rondo::test {
namespace {

using grammar::Matcher;
using grammar::Source;
using grammar::Vocabulary;

const Tokenizer& bundled_tokenizer() {
  static const Tokenizer kTokenizer = *Tokenizer::open(RONDO_BUNDLED_MODEL);
  return kTokenizer;
}

std::shared_ptr<const Vocabulary> bundled() {
  static const auto kVocabulary = *Vocabulary::create(bundled_tokenizer(), 1 << 20);
  return kVocabulary;
}

std::vector<Source> sources() {
  return {
      Source::json_object(),
      Source::json_schema(
          *parse_json(R"({"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":9},
        "tags":{"type":"array","items":{"enum":["red","green","blue"]},"maxItems":3},"age":{"type":"integer","minimum":0,"maximum":120},
        "id":{"type":"string","pattern":"^[a-f0-9]{4}-[^x]*$"}},"required":["name","age"],"additionalProperties":{"type":"number"}})")),
      Source::regex("[a-z ]*(the|and).*"),
      Source::regex("[^<]*</end>"),
      Source::regex("(\\w+ ?){1,12}\\n?"),
      Source::ebnf("root ::= \"(\" root \")\" root | [^()]{0,6}"),
      Source::ebnf("root ::= (word | word \"s\" | [a-z]+) (\" \" root)?\nword ::= [a-z] word | [a-z]"),
      Source::tool_calls(
          {{"add",
            {{"properties", {{"a", {{"type", "integer"}}}, {"note", {{"type", "string"}}}}}, {"required", {"a"}}},
            false},
           {"now", {}, true}},
          grammar::Calls::TextThenSeveral),
      Source::choice({"yes", "no", "not at all", "nothing"}),
  };
}

// Every token by itself, after the tokens before it.
std::vector<std::uint32_t> mask_by_trying(const std::shared_ptr<const grammar::Grammar>& compiled,
                                          const std::vector<std::int32_t>& before) {
  std::vector<std::uint32_t> mask(bundled()->mask_words());
  Matcher matcher(compiled, bundled());
  matcher.reserve(1, Matcher::Start::Here);
  for (const std::int32_t token : before) matcher.accept(token);
  for (std::int32_t id = 0; id < bundled_tokenizer().vocab_size(); ++id) {
    if (!matcher.is_dead(matcher.after({&id, 1}))) mask[static_cast<std::size_t>(id) / 32] |= 1U << (id % 32);
  }
  return mask;
}

std::vector<std::int32_t> tokens_in(const std::vector<std::uint32_t>& mask) {
  std::vector<std::int32_t> tokens;
  for (std::size_t id = 0; id < mask.size() * 32; ++id) {
    if ((mask[id / 32] >> (id % 32) & 1U) != 0) tokens.push_back(static_cast<std::int32_t>(id));
  }
  return tokens;
}

// Walks at random through a grammar; longer tokens are preferred, to get far. Returns how often the masks differed.
int walk(const Source& source, std::uint64_t seed, int steps, bool planted) {
  const auto compiled = *grammar::compile(source, *bundled());
  Matcher matcher(compiled, bundled());
  matcher.reserve(3, Matcher::Start::Here);
  std::vector<std::int32_t> text;
  std::vector<std::uint32_t> mask(bundled()->mask_words());
  int differences = 0;
  for (int step = 0; step < steps; ++step) {
    std::fill(mask.begin(), mask.end(), 0U);
    matcher.allow(matcher.after({}), mask);
    if (planted) mask[3] ^= 1U << 5;
    differences += mask != mask_by_trying(compiled, text) ? 1 : 0;
    const std::vector<std::int32_t> allowed = tokens_in(mask);
    if (allowed.empty()) {
      EXPECT_TRUE(planted || matcher.is_complete(matcher.after({}))) << "a dead end";
      break;
    }
    const auto pick = [&](std::uint64_t n) {
      return allowed[random_bits(seed, static_cast<std::uint64_t>(step), n) % allowed.size()];
    };
    const std::int32_t one = pick(1), other = pick(2);
    const std::int32_t token = bundled()->bytes_of(one).size() > bundled()->bytes_of(other).size() ? one : other;
    text.push_back(token);
    matcher.accept(token);
  }
  return differences;
}

TEST(Mask, IsWhatTryingEveryTokenGives) {
#ifdef RONDO_FEWER_RUNS
  constexpr int kSteps = 6;
#else
  constexpr int kSteps = 40;
#endif
  for (const Source& source : sources()) {
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      EXPECT_EQ(walk(source, seed, kSteps, false), 0) << source.text << " seed " << seed;
  }
}

// Planted control: one bit that differs is seen.
TEST(Mask, APlantedBitIsSeen) { EXPECT_EQ(walk(sources()[0], 0, 1, true), 1); }

// What is allowed after drafts does not depend on which of the tokens before were drafts, or on drafts thrown away.
TEST(Mask, DoesNotDependOnWhatWasDrafted) {
  for (const Source& source : sources()) {
    const auto compiled = *grammar::compile(source, *bundled());
    Matcher drafted(compiled, bundled()), plain(compiled, bundled());
    drafted.reserve(4, Matcher::Start::Here);
    plain.reserve(0, Matcher::Start::Here);
    std::vector<std::uint32_t> mask(bundled()->mask_words());
    for (std::uint64_t round = 0; round < 12; ++round) {
      std::vector<std::int32_t> drafts;
      std::vector<std::vector<std::uint32_t>> masks;
      for (std::uint64_t i = 0; i < 4; ++i) {
        std::fill(mask.begin(), mask.end(), 0U);
        drafted.allow(drafted.after(drafts), mask);
        masks.push_back(mask);
        const auto allowed = tokens_in(mask);
        if (allowed.empty()) break;
        drafts.push_back(allowed[random_bits(round, i, 7) % allowed.size()]);
      }
      const std::size_t kept = random_bits(round, 9, 9) % (drafts.size() + 1);
      for (std::size_t i = 0; i < kept; ++i) {
        std::fill(mask.begin(), mask.end(), 0U);
        plain.allow(plain.after({}), mask);
        ASSERT_EQ(mask, masks[i]) << source.text;
        plain.accept(drafts[i]);
        drafted.accept(drafts[i]);
      }
      if (kept == masks.size()) continue;
      const auto instead = tokens_in(masks[kept]);  // of the first draft that is thrown away
      if (instead.empty()) break;
      plain.accept(instead[random_bits(round, 3, 3) % instead.size()]);
      drafted.accept(instead[random_bits(round, 3, 3) % instead.size()]);
    }
  }
}

TEST(Mask, ATokenOutsideTheGrammarOrTheVocabularyEndsInAPlaceWithNoTokens) {
  const auto compiled = *grammar::compile(Source::json_object(), *bundled());
  Matcher matcher(compiled, bundled());
  matcher.reserve(2, Matcher::Start::Here);
  std::vector<std::uint32_t> mask(bundled()->mask_words());
  for (const std::int32_t token : {5, -1, 1 << 30, 6137}) {
    EXPECT_TRUE(matcher.is_dead(matcher.after({&token, 1})));
    matcher.allow(matcher.after({&token, 1}), mask);
    EXPECT_EQ(tokens_in(mask).size(), 0u);
    const std::int32_t two[] = {token, 7};
    EXPECT_TRUE(matcher.is_dead(matcher.after(two)));
  }
  EXPECT_FALSE(matcher.is_dead(matcher.after({})));
  matcher.accept(5);
  EXPECT_TRUE(matcher.is_dead(matcher.after({})));
}

TEST(Mask, AddedTokensAreNotTheTextTheyAreSpelledWith) {
  const auto compiled = *grammar::compile(Source::regex("(.|\\n)*"), *bundled());
  Matcher matcher(compiled, bundled());
  matcher.reserve(0, Matcher::Start::Here);
  std::vector<std::uint32_t> mask(bundled()->mask_words());
  matcher.allow(matcher.after({}), mask);
  const auto allowed = tokens_in(mask);
  for (const std::int32_t id : bundled_tokenizer().added_ids())
    EXPECT_EQ(std::count(allowed.begin(), allowed.end(), id), 0) << id;
  EXPECT_GT(allowed.size(), 6000u);
  // A grammar that names one reads it, and nothing else, there.
  const std::string tag = bundled()->tag("</think>");
  ASSERT_EQ(tag.size(), 3u);
  EXPECT_EQ(bundled()->tag("</nothing>"), "</nothing>");
}

}  // namespace
}  // namespace rondo::test
