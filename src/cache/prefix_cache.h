// PrefixCache: which token sequences a saved state is there for, in which place and which blocks.
//
// An *entry* is a place for a state (of the model's) that holds one: the tokens it stands after, and the blocks with
// their KV, which it keeps (BlockPool). The tokens are written down by block, with a hash of everything up to the end
// of each whole block; hashes find, and comparing the tokens themselves decides. Two entries may share blocks: whole
// ones that were restored by reference, and a sequence's own between its states.
//
// When places or blocks run out, entries go by what they are worth: the tokens that would have to be computed again,
// more for a line of text that has been taken up before, on a clock that moves on with every entry that goes (Greedy
// Dual), so that what is not used ages. A state that another one further along its line has overtaken, and that nobody
// else came back to, goes first: a conversation needs its last state only. So long conversations are not pushed out by
// one-off prompts or by each other's pasts.
//
// Bookkeeping only: whoever owns the model saves, restores and forgets states. Engine thread only; nothing grows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/block_pool.h"

namespace rondo {

// What a state is kept for.
enum class PrefixKind {
  Turn,    // where a sequence ended
  Branch,  // where another prompt was seen to part
  Prompt,  // near the end of a prompt
  Step,    // on the way: a first guess at where others will part
};

// An entry, as long as it is the same one: places are used again.
struct PrefixRef {
  int place = -1;
  std::uint64_t generation = 0;
};

class PrefixCache {
 public:
  // blocks: outlives the cache. num_places = 0: a cache that never holds anything.
  PrefixCache(int num_places, int block_tokens, int context_tokens, BlockPool& blocks);

  struct Hit {
    PrefixRef entry;
    int tokens = 0;
    int shared_tokens = 0;                 // of them in blocks that may be shared; a multiple of block_tokens
    std::span<const std::int32_t> blocks;  // of all of them; good until the entry goes
  };
  // The longest entry that `ids` begin with and that leaves at least one of them. needs_head: only states whose draft
  // head has followed.
  std::optional<Hit> find(std::span<const std::int32_t> ids, bool needs_head);
  bool has(std::span<const std::int32_t> ids, bool needs_head);  // an entry for exactly these
  // The most leading tokens that `ids` have in common with any entry.
  int common_tokens(std::span<const std::int32_t> ids);
  void use(const PrefixRef& ref);  // a sequence goes on from it

  // A blank place to save a state in, by letting an entry go if need be; none when none is worth less than one of this
  // kind.
  std::optional<int> take_place(PrefixKind kind);
  // The state that was saved in `place`: `tokens` first tokens of a sequence with these blocks. before: the entry the
  // sequence went on from, if any.
  PrefixRef put(int place, PrefixKind kind, std::span<const std::int32_t> ids, std::span<const std::int32_t> blocks,
                int shared_tokens, bool has_head, const PrefixRef& before);

  // Lets entries go until at least n blocks are blank; not `spared`. False, and none gone, when that cannot be.
  bool make_room(int n, const PrefixRef& spared);
  void clear();

  // Places whose entry went since the last call of forgotten_done(): their states are to be forgotten.
  std::span<const int> forgotten() const { return forgotten_; }
  void forgotten_done() { forgotten_.clear(); }

  int num_places() const { return static_cast<int>(entries_.size()); }
  int num_entries() const { return num_places() - static_cast<int>(blank_places_.size()); }
  bool invariants_hold() const;

 private:
  struct Entry {
    bool used = false;
    std::uint64_t generation = 0;
    PrefixKind kind = PrefixKind::Turn;
    int tokens = 0, shared_tokens = 0;
    bool has_head = false;
    std::uint64_t hash = 0;  // of the whole blocks
    int comers = 0;          // sequences that went on from it
    int uses = 0;            // sequences that went on from it, or from those before it in its line
    int worth_tokens = 0;    // what would be computed again without it
    double priority = 0;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int num_blocks_of(int tokens) const { return (tokens + block_tokens_ - 1) / block_tokens_; }
  std::span<std::int32_t> ids_of_block(std::int32_t block);
  std::span<std::int32_t> blocks_of(int place, int tokens);
  std::span<const std::int32_t> blocks_of(const Entry& entry) const;
  const Entry* find_entry(const PrefixRef& ref) const;
  void hash_blocks(std::span<const std::int32_t> ids);
  int same_tokens(int place, std::span<const std::int32_t> ids);
  int matching_place(std::span<const std::int32_t> ids, int most_tokens, bool needs_head);
  double priority_of(const Entry& entry) const;
  int least_worth(const PrefixRef& spared) const;
  void let_go(int place);

  BlockPool& pool_;
  int block_tokens_, most_blocks_;
  double clock_ = 0;
  std::uint64_t generations_ = 0;
  std::vector<Entry> entries_;             // [places]
  std::vector<std::int32_t> tables_;       // [places, most_blocks]
  std::vector<std::int32_t> block_ids_;    // [num_blocks, block_tokens] tokens of the blocks that entries keep
  std::vector<std::uint64_t> block_hash_;  // [num_blocks] of everything up to the block's end, of whole blocks
  std::vector<std::uint64_t> hashes_;      // [most_blocks + 1] of the ids asked about: of the first i whole blocks
  std::vector<int> blank_places_;
  std::vector<int> forgotten_;
};

}  // namespace rondo
