// BlockPool: hands out the fixed set of KV blocks and counts who holds each.
//
// A block is `held` while its count is above 0 and `blank` otherwise. A request's whole window is acquired at its
// admission or not at all, so a reply that has begun never lacks a block. Host bookkeeping only; engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rondo {

class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(holders_.size()); }
  int num_blank() const { return static_cast<int>(blank_.size()); }

  // n blocks into `blocks` (appended), each now held once; false, and nothing taken, when fewer are blank.
  bool acquire(int n, std::vector<std::int32_t>& blocks);
  void release(std::span<const std::int32_t> blocks);  // one holder fewer each
  bool invariants_hold() const;                        // the paragraph above, checked from scratch

 private:
  std::vector<std::int32_t> holders_;  // [num_blocks]
  std::vector<std::int32_t> blank_;    // lowest id last, so that it goes first
};

}  // namespace rondo
