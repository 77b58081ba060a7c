#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include <random>

namespace rondo {

bool operator==(const Stretch& a, const Stretch& b) { return a.range == b.range && a.id == b.id; }

namespace {

std::vector<bool> untrusted_bytes(std::size_t size, const std::vector<ByteRange>& ranges) {
  std::vector<bool> untrusted(size);
  for (const ByteRange& range : ranges) {
    for (std::size_t i = range.begin; i < range.end; ++i) untrusted[i] = true;
  }
  return untrusted;
}

// The definition: at each place the longest token none of whose bytes is untrusted.
std::vector<Stretch> cut_naively(const std::vector<AddedToken>& tokens, const std::string& text,
                                 const std::vector<ByteRange>& ranges) {
  const std::vector<bool> untrusted = untrusted_bytes(text.size(), ranges);
  std::vector<Stretch> stretches;
  std::size_t done = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const AddedToken* best = nullptr;
    for (const AddedToken& token : tokens) {
      bool matches = text.compare(pos, token.spelling.size(), token.spelling) == 0;
      for (std::size_t i = 0; matches && i < token.spelling.size(); ++i) matches = !untrusted[pos + i];
      if (matches && (!best || token.spelling.size() > best->spelling.size())) best = &token;
    }
    if (!best) {
      ++pos;
      continue;
    }
    if (done < pos) stretches.push_back({{done, pos}});
    done = pos + best->spelling.size();
    stretches.push_back({{pos, done}, best->id});
    pos = done;
  }
  if (done < text.size()) stretches.push_back({{done, text.size()}});
  return stretches;
}

std::vector<ByteRange> random_ranges(std::mt19937& random, std::size_t size) {
  std::vector<ByteRange> ranges;
  for (std::size_t pos = random() % 4; pos < size; pos += 1 + random() % 5) {
    const std::size_t end = std::min<std::size_t>(size, pos + 1 + random() % 5);
    ranges.push_back({pos, end});
    pos = end + 1;
  }
  return ranges;
}

TEST(AddedTokens, AreCutAsTheDefinitionSays) {
  std::mt19937 random(21);
  for (int round = 0; round < 20000; ++round) {
    std::vector<AddedToken> tokens;
    for (const char* spelling : {"<", "<a", "<ab>", "a", "ab", "b><", ">", "ba>", "<<", "aaaa"}) {
      if (random() % 2) tokens.push_back({static_cast<std::int32_t>(tokens.size()), spelling});
    }
    std::string text;
    for (std::size_t i = random() % 25; i > 0; --i) text += "<ab>"[random() % 4];
    const auto ranges = random() % 3 ? random_ranges(random, text.size()) : std::vector<ByteRange>();
    ASSERT_EQ(AddedTokens(tokens).cut(text, ranges), cut_naively(tokens, text, ranges)) << text;
  }
}

// Planted control: the comparison and its inputs must see a search that trusts everything.
TEST(AddedTokens, ASearchThatTrustsEverythingIsSeen) {
  const std::vector<AddedToken> tokens = {{0, "<ab>"}};
  EXPECT_FALSE(AddedTokens(tokens).cut("<ab>", {}) == cut_naively(tokens, "<ab>", {{2, 3}}));
}

}  // namespace
}  // namespace rondo
