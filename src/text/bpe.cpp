#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>

namespace rondo {

namespace {

constexpr std::size_t kShortPiece = 48;  // bytes; up to here a scan of all pairs beats a heap, and needs no allocation
constexpr std::int32_t kNoRank = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kNone = -1;

std::size_t pair_hash(std::int32_t left, std::int32_t right) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  const std::uint64_t mixed = (key ^ key >> 29) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(mixed ^ mixed >> 32);
}

// A piece as a doubly linked list of tokens. A token absorbed by its left neighbour has id kNone.
struct Node {
  std::int32_t id = kNone;
  std::int32_t before = kNone;
  std::int32_t after = kNone;
};

struct Candidate {
  std::int32_t rank;
  std::int32_t pos;   // the left node of the pair
  std::int32_t left;  // the ids when it was found: a pair whose ids have changed since is gone
  std::int32_t right;
  std::int32_t merged;
  bool operator<(const Candidate& other) const {  // std::priority_queue gives the greatest first
    return rank != other.rank ? rank > other.rank : pos > other.pos;
  }
};

}  // namespace

BytePairs::BytePairs(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges)
    : byte_ids_(byte_ids), slots_(std::bit_ceil(std::max<std::size_t>(2 * merges.size(), 2))) {
  for (const Merge& merge : merges) {
    std::size_t slot = pair_hash(merge.left, merge.right) & (slots_.size() - 1);
    while (slots_[slot].rank >= 0 && (slots_[slot].left != merge.left || slots_[slot].right != merge.right)) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    slots_[slot] = merge;
  }
}

const Merge* BytePairs::find_merge(std::int32_t left, std::int32_t right) const {
  std::size_t slot = pair_hash(left, right) & (slots_.size() - 1);
  for (; slots_[slot].rank >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot].left == left && slots_[slot].right == right) return &slots_[slot];
  }
  return nullptr;
}

void BytePairs::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.size() <= kShortPiece) {
    encode_short(piece, ids);
  } else {
    encode_long(piece, ids);
  }
}

void BytePairs::encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kShortPiece> tokens;
  std::array<std::int32_t, kShortPiece> ranks;   // of the pair of a token with the next one
  std::array<std::int32_t, kShortPiece> merged;  // what that pair becomes
  std::size_t count = piece.size();
  for (std::size_t i = 0; i < count; ++i) tokens[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  const auto look_up = [&](std::size_t i) {
    const Merge* merge = i + 1 < count ? find_merge(tokens[i], tokens[i + 1]) : nullptr;
    ranks[i] = merge ? merge->rank : kNoRank;
    merged[i] = merge ? merge->merged : kNone;
  };
  for (std::size_t i = 0; i < count; ++i) look_up(i);
  while (count > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count));
    if (*best == kNoRank) break;
    const auto i = static_cast<std::size_t>(best - ranks.begin());
    tokens[i] = merged[i];
    --count;
    for (std::size_t j = i + 1; j < count; ++j) {
      tokens[j] = tokens[j + 1];
      ranks[j] = ranks[j + 1];
      merged[j] = merged[j + 1];
    }
    look_up(i);
    if (i > 0) look_up(i - 1);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

void BytePairs::encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::vector<Node> nodes(piece.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto pos = static_cast<std::int32_t>(i);
    nodes[i] = {byte_ids_[static_cast<unsigned char>(piece[i])], pos - 1, i + 1 < nodes.size() ? pos + 1 : kNone};
  }
  const auto node = [&](std::int32_t pos) -> Node& { return nodes[static_cast<std::size_t>(pos)]; };
  std::vector<Candidate> found;
  const auto candidate = [&](std::int32_t pos, auto&& add) {
    if (pos == kNone || node(pos).after == kNone) return;
    const std::int32_t left = node(pos).id, right = node(node(pos).after).id;
    if (const Merge* merge = find_merge(left, right)) add(Candidate{merge->rank, pos, left, right, merge->merged});
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    candidate(static_cast<std::int32_t>(i), [&](const Candidate& c) { found.push_back(c); });
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(found));
  const auto enqueue = [&](std::int32_t pos) { candidate(pos, [&](const Candidate& c) { queue.push(c); }); };
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = node(best.pos);
    if (left.id != best.left || left.after == kNone || node(left.after).id != best.right) continue;
    Node& right = node(left.after);
    left.id = best.merged;
    right.id = kNone;
    left.after = right.after;
    if (left.after != kNone) node(left.after).before = best.pos;
    enqueue(best.pos);
    enqueue(left.before);
  }
  for (std::int32_t pos = 0; pos != kNone; pos = node(pos).after) ids.push_back(node(pos).id);
}

}  // namespace rondo
