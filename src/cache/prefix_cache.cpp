#include "cache/prefix_cache.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace rondo {

namespace {

constexpr int kMostUsesCounted = 3;  // a line taken up this often is worth as much more, and no more than that
constexpr std::uint64_t kNoBlocks = 0x52'6f'6e'64'6f;

std::uint64_t hash_block(std::uint64_t before, std::span<const std::int32_t> ids) {
  std::uint64_t hash = before;
  for (const std::int32_t id : ids) hash = mix64(hash ^ (static_cast<std::uint64_t>(id) + 0x9E37'79B9'7F4A'7C15));
  return hash;
}

}  // namespace

PrefixCache::PrefixCache(int num_places, int block_tokens, int context_tokens, BlockPool& blocks)
    : pool_(blocks),
      block_tokens_(block_tokens),
      most_blocks_((context_tokens + block_tokens - 1) / block_tokens),
      entries_(at(num_places)),
      tables_(num_places == 0 ? 0 : at(num_places) * at(most_blocks_)),
      block_ids_(num_places == 0 ? 0 : at(blocks.num_blocks()) * at(block_tokens)),
      block_hash_(num_places == 0 ? 0 : at(blocks.num_blocks())),
      hashes_(at(most_blocks_) + 1) {
  blank_places_.reserve(entries_.size());
  for (int place = num_places - 1; place >= 0; --place) blank_places_.push_back(place);
  forgotten_.reserve(entries_.size());
}

std::span<std::int32_t> PrefixCache::ids_of_block(std::int32_t block) {
  return std::span(block_ids_).subspan(at(block) * at(block_tokens_), at(block_tokens_));
}

std::span<std::int32_t> PrefixCache::blocks_of(int place, int tokens) {
  return std::span(tables_).subspan(at(place) * at(most_blocks_), at(num_blocks_of(tokens)));
}

std::span<const std::int32_t> PrefixCache::blocks_of(const Entry& entry) const {
  const auto place = static_cast<std::size_t>(&entry - entries_.data());
  return std::span(tables_).subspan(place * at(most_blocks_), at(num_blocks_of(entry.tokens)));
}

const PrefixCache::Entry* PrefixCache::find_entry(const PrefixRef& ref) const {
  if (ref.place < 0) return nullptr;
  const Entry& entry = entries_[at(ref.place)];
  return entry.used && entry.generation == ref.generation ? &entry : nullptr;
}

void PrefixCache::hash_blocks(std::span<const std::int32_t> ids) {
  hashes_[0] = kNoBlocks;
  const std::size_t whole = std::min(ids.size() / at(block_tokens_), at(most_blocks_));
  for (std::size_t i = 0; i < whole; ++i)
    hashes_[i + 1] = hash_block(hashes_[i], ids.subspan(i * at(block_tokens_), at(block_tokens_)));
}

// Leading tokens of the entry that `ids` have too, one compared with the other.
int PrefixCache::same_tokens(int place, std::span<const std::int32_t> ids) {
  const Entry& entry = entries_[at(place)];
  const int most = std::min(entry.tokens, static_cast<int>(ids.size()));
  for (int begin = 0; begin < most; begin += block_tokens_) {
    const auto count = at(std::min(block_tokens_, most - begin));
    const auto own = ids_of_block(tables_[at(place) * at(most_blocks_) + at(begin / block_tokens_)]).first(count);
    const auto asked = ids.subspan(at(begin), count);
    const auto differs = std::mismatch(own.begin(), own.end(), asked.begin());
    if (differs.first != own.end()) return begin + static_cast<int>(differs.first - own.begin());
  }
  return most;
}

// After hash_blocks(ids): the place of the longest entry of at most most_tokens that begins ids, or -1.
int PrefixCache::matching_place(std::span<const std::int32_t> ids, int most_tokens, bool needs_head) {
  int best = -1, best_tokens = 0;
  for (int place = 0; place < num_places(); ++place) {
    const Entry& entry = entries_[at(place)];
    if (!entry.used || entry.tokens > most_tokens || entry.tokens <= best_tokens) continue;
    if (needs_head && !entry.has_head) continue;
    if (entry.hash != hashes_[at(entry.tokens / block_tokens_)]) continue;
    if (same_tokens(place, ids) != entry.tokens) continue;
    best = place;
    best_tokens = entry.tokens;
  }
  return best;
}

std::optional<PrefixCache::Hit> PrefixCache::find(std::span<const std::int32_t> ids, bool needs_head) {
  if (num_entries() == 0 || ids.empty()) return std::nullopt;
  hash_blocks(ids);
  const int place = matching_place(ids, static_cast<int>(ids.size()) - 1, needs_head);
  if (place < 0) return std::nullopt;
  const Entry& entry = entries_[at(place)];
  return Hit{{place, entry.generation}, entry.tokens, entry.shared_tokens, blocks_of(entry)};
}

bool PrefixCache::has(std::span<const std::int32_t> ids, bool needs_head) {
  if (num_entries() == 0) return false;
  hash_blocks(ids);
  const int place = matching_place(ids, static_cast<int>(ids.size()), needs_head);
  return place >= 0 && entries_[at(place)].tokens == static_cast<int>(ids.size());
}

int PrefixCache::common_tokens(std::span<const std::int32_t> ids) {
  if (num_entries() == 0) return 0;
  hash_blocks(ids);
  int best = 0;
  for (int place = 0; place < num_places(); ++place) {
    const Entry& entry = entries_[at(place)];
    const int most = std::min(entry.tokens, static_cast<int>(ids.size()));
    if (!entry.used || most <= best) continue;
    // Where the hashes part, found by halving; the tokens have the last word.
    int same = 0, other = most / block_tokens_ + 1;
    while (other - same > 1) {
      const int middle = (same + other) / 2;
      const std::int32_t block = tables_[at(place) * at(most_blocks_) + at(middle - 1)];
      (block_hash_[at(block)] == hashes_[at(middle)] ? same : other) = middle;
    }
    if ((same + 1) * block_tokens_ <= best) continue;
    best = std::max(best, same_tokens(place, ids));
  }
  return best;
}

// What a state on the way is worth is not known; a prompt's end is worth half a turn's, as most come back after that.
double PrefixCache::priority_of(const Entry& entry) const {
  const double part = entry.uses > 0 || entry.kind == PrefixKind::Turn || entry.kind == PrefixKind::Branch ? 1
                      : entry.kind == PrefixKind::Prompt                                                   ? 0.5
                                                                                                           : 0;
  return clock_ + part * entry.worth_tokens * (1 + std::min(entry.uses, kMostUsesCounted));
}

void PrefixCache::use(const PrefixRef& ref) {
  CHECK(find_entry(ref) != nullptr);
  Entry& entry = entries_[at(ref.place)];
  ++entry.uses;
  ++entry.comers;
  entry.priority = priority_of(entry);
}

int PrefixCache::least_worth(const PrefixRef& spared) const {
  int least = -1;
  for (int place = 0; place < num_places(); ++place) {
    const Entry& entry = entries_[at(place)];
    if (!entry.used || (place == spared.place && entry.generation == spared.generation)) continue;
    if (least < 0 || entry.priority < entries_[at(least)].priority ||
        (entry.priority == entries_[at(least)].priority && entry.generation < entries_[at(least)].generation))
      least = place;
  }
  return least;
}

void PrefixCache::let_go(int place) {
  Entry& entry = entries_[at(place)];
  CHECK(entry.used);
  clock_ = std::max(clock_, entry.priority);
  pool_.drop(blocks_of(entry));
  entry.used = false;
  blank_places_.push_back(place);
  forgotten_.push_back(place);
}

std::optional<int> PrefixCache::take_place(PrefixKind kind) {
  if (blank_places_.empty()) {
    const int least = least_worth({});
    if (least < 0) return std::nullopt;
    if (kind == PrefixKind::Step && entries_[at(least)].priority > clock_) return std::nullopt;
    let_go(least);
  }
  return blank_places_.back();
}

PrefixRef PrefixCache::put(int place, PrefixKind kind, std::span<const std::int32_t> ids,
                           std::span<const std::int32_t> blocks, int shared_tokens, bool has_head,
                           const PrefixRef& before) {
  CHECK(!blank_places_.empty() && blank_places_.back() == place && !ids.empty());
  const auto tokens = static_cast<int>(ids.size());
  CHECK(tokens <= most_blocks_ * block_tokens_ && shared_tokens <= tokens && shared_tokens % block_tokens_ == 0);
  hash_blocks(ids);
  // Other states of its line: the one it went on from is overtaken, unless others came back to it as well.
  int uses = 0, before_tokens = 0;
  if (const Entry* entry = find_entry(before)) {
    Entry& overtaken = entries_[at(before.place)];
    uses = entry->uses;
    if (kind == PrefixKind::Turn && entry->kind == PrefixKind::Turn && entry->comers <= 1 && entry->tokens < tokens) {
      overtaken.uses = 0;
      overtaken.worth_tokens = 0;
      overtaken.priority = clock_;
    }
  }
  for (int other = 0; other < num_places(); ++other) {
    const Entry& entry = entries_[at(other)];
    if (!entry.used || entry.worth_tokens == 0 || entry.kind == PrefixKind::Step || entry.tokens >= tokens) continue;
    if (entry.hash != hashes_[at(entry.tokens / block_tokens_)] || entry.tokens <= before_tokens) continue;
    if (same_tokens(other, ids) == entry.tokens) before_tokens = entry.tokens;
  }
  blank_places_.pop_back();
  std::erase(forgotten_, place);  // the new state is written over the old one
  Entry& entry = entries_[at(place)];
  entry = {.used = true,
           .generation = ++generations_,
           .kind = kind,
           .tokens = tokens,
           .shared_tokens = shared_tokens,
           .has_head = has_head,
           .hash = hashes_[at(tokens / block_tokens_)],
           .comers = 0,
           .uses = kind == PrefixKind::Turn ? uses : 0,
           .worth_tokens = tokens - before_tokens,
           .priority = 0};
  entry.priority = priority_of(entry);
  const auto table = blocks_of(place, tokens);
  std::copy_n(blocks.begin(), table.size(), table.begin());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto own =
        ids.subspan(i * at(block_tokens_), std::min(at(block_tokens_), ids.size() - i * at(block_tokens_)));
    std::ranges::copy(own, ids_of_block(table[i]).begin());
    if (own.size() == at(block_tokens_)) block_hash_[at(table[i])] = hashes_[i + 1];
  }
  pool_.keep(table);
  return {place, entry.generation};
}

bool PrefixCache::make_room(int n, const PrefixRef& spared) {
  int most = pool_.num_blank() + pool_.num_kept();
  if (const Entry* entry = find_entry(spared)) {
    for (const std::int32_t block : blocks_of(*entry)) most -= pool_.is_kept(block) ? 1 : 0;
  }
  if (most < n) return false;
  while (pool_.num_blank() < n) let_go(least_worth(spared));
  return true;
}

void PrefixCache::clear() {
  for (int place = 0; place < num_places(); ++place) {
    if (entries_[at(place)].used) let_go(place);
  }
}

bool PrefixCache::invariants_hold() const {
  std::vector<bool> is_blank(entries_.size(), false);
  for (const int place : blank_places_) {
    if (entries_[at(place)].used || is_blank[at(place)]) return false;
    is_blank[at(place)] = true;
  }
  for (std::size_t place = 0; place < entries_.size(); ++place) {
    if (entries_[place].used == is_blank[place]) return false;
  }
  return pool_.invariants_hold();
}

}  // namespace rondo
