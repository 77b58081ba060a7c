// BlockPool: hands out the fixed set of KV blocks and counts who has each.
//
// A block is `held` while sequences have it, `kept` when none has it but a saved prefix still needs its contents, and
// `blank` otherwise: always exactly one of the three. Only blank blocks are handed out. A request's whole window is
// acquired at its admission or not at all, so a reply that has begun never lacks a block. Host bookkeeping only; engine
// thread only; nothing grows.
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
  int num_kept() const { return num_kept_; }
  int num_held() const { return num_blocks() - num_blank() - num_kept(); }

  // n blocks into `blocks` (appended), each now held once; false, and nothing taken, when fewer are blank.
  bool acquire(int n, std::vector<std::int32_t>& blocks);
  void share(std::span<const std::int32_t> blocks);    // one more sequence has each, held or kept so far
  void release(std::span<const std::int32_t> blocks);  // one sequence fewer each
  void keep(std::span<const std::int32_t> blocks);     // one more prefix needs each, held or kept so far
  void drop(std::span<const std::int32_t> blocks);     // one prefix fewer each
  bool is_kept(std::int32_t block) const { return holders_[at(block)] == 0 && keepers_[at(block)] > 0; }
  bool invariants_hold() const;  // the paragraph above, checked from scratch

 private:
  static std::size_t at(std::int32_t block) { return static_cast<std::size_t>(block); }
  std::vector<std::int32_t> holders_;  // [num_blocks] sequences
  std::vector<std::int32_t> keepers_;  // [num_blocks] saved prefixes
  std::vector<std::int32_t> blank_;    // lowest id last at the start, so that it goes first
  int num_kept_ = 0;
};

}  // namespace rondo
