#include "cache/block_pool.h"

#include "base/check.h"

namespace rondo {

BlockPool::BlockPool(int num_blocks) : holders_(static_cast<std::size_t>(num_blocks), 0) {
  CHECK(num_blocks >= 0);
  blank_.reserve(holders_.size());
  for (int id = num_blocks - 1; id >= 0; --id) blank_.push_back(id);
}

bool BlockPool::acquire(int n, std::vector<std::int32_t>& blocks) {
  if (n > num_blank()) return false;
  for (int i = 0; i < n; ++i) {
    const std::int32_t id = blank_.back();
    blank_.pop_back();
    holders_[static_cast<std::size_t>(id)] = 1;
    blocks.push_back(id);
  }
  DCHECK(invariants_hold());
  return true;
}

void BlockPool::release(std::span<const std::int32_t> blocks) {
  for (const std::int32_t id : blocks) {
    std::int32_t& holders = holders_[static_cast<std::size_t>(id)];
    CHECK(holders > 0);  // released twice: it would go to two sequences
    if (--holders == 0) blank_.push_back(id);
  }
  DCHECK(invariants_hold());
}

bool BlockPool::invariants_hold() const {
  std::vector<bool> is_blank(holders_.size(), false);
  for (const std::int32_t id : blank_) {
    const auto at = static_cast<std::size_t>(id);
    if (holders_[at] != 0 || is_blank[at]) return false;
    is_blank[at] = true;
  }
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    if ((holders_[i] == 0) != is_blank[i]) return false;
  }
  return true;
}

}  // namespace rondo
