#include "cache/block_pool.h"

#include "base/check.h"

namespace rondo {

BlockPool::BlockPool(int num_blocks)
    : holders_(static_cast<std::size_t>(num_blocks), 0), keepers_(static_cast<std::size_t>(num_blocks), 0) {
  CHECK(num_blocks >= 0);
  blank_.reserve(holders_.size());
  for (int id = num_blocks - 1; id >= 0; --id) blank_.push_back(id);
}

bool BlockPool::acquire(int n, std::vector<std::int32_t>& blocks) {
  if (n > num_blank()) return false;
  for (int i = 0; i < n; ++i) {
    const std::int32_t id = blank_.back();
    blank_.pop_back();
    holders_[at(id)] = 1;
    blocks.push_back(id);
  }
  DCHECK(invariants_hold());
  return true;
}

void BlockPool::share(std::span<const std::int32_t> blocks) {
  for (const std::int32_t id : blocks) {
    CHECK(holders_[at(id)] + keepers_[at(id)] > 0);  // a blank block holds nothing that could be shared
    if (holders_[at(id)]++ == 0) --num_kept_;
  }
  DCHECK(invariants_hold());
}

void BlockPool::release(std::span<const std::int32_t> blocks) {
  for (const std::int32_t id : blocks) {
    CHECK(holders_[at(id)] > 0);  // released twice: it would go to two sequences
    if (--holders_[at(id)] > 0) continue;
    if (keepers_[at(id)] > 0) {
      ++num_kept_;
    } else {
      blank_.push_back(id);
    }
  }
  DCHECK(invariants_hold());
}

void BlockPool::keep(std::span<const std::int32_t> blocks) {
  for (const std::int32_t id : blocks) {
    CHECK(holders_[at(id)] + keepers_[at(id)] > 0);
    ++keepers_[at(id)];
  }
  DCHECK(invariants_hold());
}

void BlockPool::drop(std::span<const std::int32_t> blocks) {
  for (const std::int32_t id : blocks) {
    CHECK(keepers_[at(id)] > 0);
    if (--keepers_[at(id)] > 0 || holders_[at(id)] > 0) continue;
    --num_kept_;
    blank_.push_back(id);
  }
  DCHECK(invariants_hold());
}

bool BlockPool::invariants_hold() const {
  std::vector<bool> is_blank(holders_.size(), false);
  for (const std::int32_t id : blank_) {
    if (holders_[at(id)] != 0 || keepers_[at(id)] != 0 || is_blank[at(id)]) return false;
    is_blank[at(id)] = true;
  }
  int kept = 0;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    if (holders_[i] < 0 || keepers_[i] < 0 || (holders_[i] + keepers_[i] == 0) != is_blank[i]) return false;
    if (holders_[i] == 0 && keepers_[i] > 0) ++kept;
  }
  return kept == num_kept_;
}

}  // namespace rondo
