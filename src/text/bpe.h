// BytePairs: byte-pair encoding of one piece: begins with one token a byte, then merges, again and again, the adjacent
// pair of lowest rank (the leftmost of equals), until no pair has a rank.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rondo {

struct Merge {
  std::int32_t left = -1, right = -1;
  std::int32_t rank = -1;    // lower merges first
  std::int32_t merged = -1;  // the token that takes their place
};

class BytePairs {
 public:
  // byte_ids: the token of each single byte. Of several merges of one pair the last counts.
  BytePairs(const std::array<std::int32_t, 256>& byte_ids, const std::vector<Merge>& merges);

  // Appends the tokens of `piece`, in time n log n.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  const Merge* find_merge(std::int32_t left, std::int32_t right) const;
  void encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::array<std::int32_t, 256> byte_ids_;
  std::vector<Merge> slots_;  // open addressing, a power of two, at most half full; rank -1 = free
};

}  // namespace rondo
