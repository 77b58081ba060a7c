#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace rondo {
namespace {

using Ids = std::vector<std::int32_t>;

std::array<std::int32_t, 256> ids_of_bytes() {
  std::array<std::int32_t, 256> ids;
  for (int i = 0; i < 256; ++i) ids[static_cast<std::size_t>(i)] = i;
  return ids;
}

// The definition, word for word.
Ids encode_naively(std::string_view piece, const std::vector<Merge>& merges) {
  std::map<std::pair<std::int32_t, std::int32_t>, Merge> by_pair;
  for (const Merge& merge : merges) by_pair[{merge.left, merge.right}] = merge;
  Ids ids;
  for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  while (true) {
    std::int32_t best_rank = std::numeric_limits<std::int32_t>::max(), merged = -1;
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = by_pair.find({ids[i], ids[i + 1]});
      if (found == by_pair.end() || found->second.rank >= best_rank) continue;
      best_rank = found->second.rank;
      merged = found->second.merged;
      best = i;
    }
    if (merged < 0) return ids;
    ids[best] = merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Merges over the letters a to d, each making a new token of two that exist.
std::vector<Merge> random_merges(std::mt19937& random, int count) {
  Ids tokens = {'a', 'b', 'c', 'd'};
  std::vector<Merge> merges;
  for (int i = 0; i < count; ++i) {
    const Merge merge{tokens[random() % tokens.size()], tokens[random() % tokens.size()], i, 256 + i};
    merges.push_back(merge);
    tokens.push_back(merge.merged);
  }
  std::shuffle(merges.begin(), merges.end(), random);  // ranks need not follow the order in which tokens arise
  for (std::size_t i = 0; i < merges.size(); ++i) merges[i].rank = static_cast<std::int32_t>(i);
  return merges;
}

TEST(BytePairs, AreTheDefinitionOnShortAndLongPieces) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<Merge> merges = random_merges(random, 1 + static_cast<int>(random() % 40));
    const BytePairs byte_pairs(ids_of_bytes(), merges);
    std::string piece;
    for (std::size_t i = 1 + random() % 120; i > 0; --i) piece += "abcd"[random() % 4];
    Ids ids;
    byte_pairs.encode(piece, ids);
    ASSERT_EQ(ids, encode_naively(piece, merges)) << piece;
  }
}

TEST(BytePairs, OfEqualPairsTheLeftmostMergesFirst) {
  const BytePairs byte_pairs(ids_of_bytes(), {{'a', 'a', 0, 256}});
  Ids ids;
  byte_pairs.encode("aaa", ids);
  EXPECT_EQ(ids, (Ids{256, 'a'}));
}

TEST(BytePairs, OfSeveralMergesOfOnePairTheLastCounts) {
  const BytePairs byte_pairs(ids_of_bytes(), {{'a', 'b', 0, 256}, {'b', 'c', 1, 257}, {'a', 'b', 2, 256}});
  Ids ids;
  byte_pairs.encode("abc", ids);
  EXPECT_EQ(ids, (Ids{'a', 257}));
}

TEST(BytePairs, APieceOfAMegabyteKeepsAllItsBytes) {
  const BytePairs byte_pairs(ids_of_bytes(), {{'a', 'a', 0, 256}, {256, 256, 1, 257}, {257, 257, 2, 258}});
  Ids ids;
  byte_pairs.encode(std::string(1 << 20, 'a'), ids);
  EXPECT_EQ(ids, Ids((1 << 20) / 8, 258));
}

}  // namespace
}  // namespace rondo
