// Block pool and prefix cache against plain models of them: whatever is asked in whatever order, the longest kept
// prefix is found, no block has two owners, none is lost, and what an entry keeps is never handed out.

#include "cache/prefix_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"

namespace rondo {
namespace {

constexpr int kBlockTokens = 4, kContext = 40;

TEST(PrefixCache, FindsTheLongestEntryThatLeavesAToken) {
  BlockPool pool(20);
  PrefixCache cache(4, kBlockTokens, kContext, pool);
  std::vector<std::int32_t> blocks;
  ASSERT_TRUE(pool.acquire(4, blocks));
  const std::vector<std::int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_FALSE(cache.find(ids, false));
  for (const int tokens : {3, 8, 10}) {
    const auto place = cache.take_place(PrefixKind::Branch);
    ASSERT_TRUE(place);
    cache.put(*place, PrefixKind::Branch, std::span(ids).first(static_cast<std::size_t>(tokens)), blocks,
              tokens / kBlockTokens * kBlockTokens, tokens != 8, {});
  }
  EXPECT_EQ(cache.find(ids, false)->tokens, 8);  // the entry of all ten would leave none
  EXPECT_EQ(cache.find(ids, true)->tokens, 3);   // the head has not followed to 8
  EXPECT_EQ(cache.find(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, false)->tokens, 10);
  EXPECT_FALSE(cache.find(std::vector<std::int32_t>{1, 2, 9}, false));
  EXPECT_EQ(cache.common_tokens(std::vector<std::int32_t>{1, 2, 3, 4, 5, 77}), 5);
  EXPECT_EQ(cache.common_tokens(std::vector<std::int32_t>{9}), 0);
}

// A conversation needs its last state; a one-off prompt is worth less than one that was taken up before.
TEST(PrefixCache, ConversationsOutliveOneOffPromptsAndTheirOwnPasts) {
  constexpr int kPlaces = 6, kAgents = 4;
  BlockPool pool(200);
  PrefixCache cache(kPlaces, kBlockTokens, 400, pool);
  std::vector<std::vector<std::int32_t>> said(kAgents);
  std::int32_t fresh = 1000;
  const auto turn = [&](std::vector<std::int32_t>& ids, int more) {
    for (int i = 0; i < more; ++i) ids.push_back(fresh++);
    const auto hit = cache.find(ids, false);
    const PrefixRef from = hit ? hit->entry : PrefixRef{};
    if (hit) cache.use(from);
    std::vector<std::int32_t> blocks;
    const auto needed = static_cast<int>(ids.size() + kBlockTokens - 1) / kBlockTokens;
    CHECK(cache.make_room(needed, from) && pool.acquire(needed, blocks));
    cache.forgotten_done();
    if (const auto place = cache.take_place(PrefixKind::Turn))
      cache.put(*place, PrefixKind::Turn, ids, blocks, 0, false, from);
    pool.release(blocks);
    return hit ? hit->tokens : 0;
  };
  for (int round = 0; round < 12; ++round) {
    for (int agent = 0; agent < kAgents; ++agent) {
      auto& ids = said[static_cast<std::size_t>(agent)];
      const auto before = static_cast<int>(ids.size());
      EXPECT_EQ(turn(ids, 12), before) << "round " << round << " agent " << agent;
    }
    std::vector<std::int32_t> one_off;
    turn(one_off, 30);
  }
}

// What was asked of both the cache and the model.
struct Kept {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> blocks;
  bool has_head;
};

TEST(PrefixCache, IsWhatAPlainListOfEntriesIs) {
  EXPECT_TRUE(rc::check([] {
    const int places = *rc::gen::inRange(1, 6), num_blocks = *rc::gen::inRange(1, 30);
    BlockPool pool(num_blocks);
    PrefixCache cache(places, kBlockTokens, kContext, pool);
    std::map<int, Kept> entries;                       // by place
    std::vector<std::vector<std::int32_t>> sequences;  // their blocks
    const auto forget = [&] {
      for (const int place : cache.forgotten()) entries.erase(place);
      cache.forgotten_done();
    };
    const auto some_ids = [] {  // of two letters, so that beginnings are often the same
      return *rc::gen::resize(kContext, rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(0, 2)));
    };
    for (int step = *rc::gen::inRange(1, 60); step > 0; --step) {
      auto ids = some_ids();
      ids.resize(std::min<std::size_t>(ids.size(), kContext));
      if (ids.empty()) ids.push_back(0);
      const bool needs_head = *rc::gen::arbitrary<bool>();
      // The longest entry that the ids begin with, by looking at each.
      int longest = 0, common = 0;
      for (const auto& [place, kept] : entries) {
        const auto same = static_cast<int>(
            std::mismatch(kept.ids.begin(), kept.ids.end(), ids.begin(), ids.end()).first - kept.ids.begin());
        common = std::max(common, same);
        const bool begins = same == static_cast<int>(kept.ids.size()) && kept.ids.size() < ids.size();
        if (begins && (kept.has_head || !needs_head)) longest = std::max(longest, same);
      }
      const auto hit = cache.find(ids, needs_head);
      RC_ASSERT((hit ? hit->tokens : 0) == longest);
      RC_ASSERT(cache.common_tokens(ids) == common);
      if (hit) {
        const Kept& kept = entries.at(hit->entry.place);
        RC_ASSERT(std::ranges::equal(hit->blocks, std::span(kept.blocks).first(hit->blocks.size())));
      }
      // A sequence for them, on from the hit; then it is saved, or not, and goes, or stays.
      const int needed = (static_cast<int>(ids.size()) + kBlockTokens - 1) / kBlockTokens;
      std::vector<std::int32_t> blocks;
      PrefixRef from;
      if (hit) {
        from = hit->entry;
        const auto shared = hit->blocks.first(static_cast<std::size_t>(hit->shared_tokens / kBlockTokens));
        blocks.assign(shared.begin(), shared.end());
        pool.share(shared);
        cache.use(from);
      }
      const int more = needed - static_cast<int>(blocks.size());
      const bool has_room = cache.make_room(more, from);
      forget();
      if (!has_room) {
        pool.release(blocks);
      } else {
        RC_ASSERT(pool.acquire(more, blocks));
        for (const auto& [place, kept] : entries) {  // nothing that an entry keeps was handed out
          for (std::size_t i = static_cast<std::size_t>(needed - more); i < blocks.size(); ++i)
            RC_ASSERT(std::ranges::find(kept.blocks, blocks[i]) == kept.blocks.end());
        }
        sequences.push_back(blocks);
        const auto kind = *rc::gen::element(PrefixKind::Turn, PrefixKind::Branch, PrefixKind::Prompt, PrefixKind::Step);
        const bool has_head = *rc::gen::arbitrary<bool>();
        if (!cache.has(ids, has_head)) {
          const auto place = cache.take_place(kind);
          forget();
          if (place) {
            cache.put(*place, kind, ids, blocks, static_cast<int>(ids.size()) / kBlockTokens * kBlockTokens, has_head,
                      from);
            entries[*place] = {ids, blocks, has_head};
          }
        }
      }
      if (!sequences.empty() && *rc::gen::arbitrary<bool>()) {
        const auto at = *rc::gen::inRange<std::size_t>(0, sequences.size());
        pool.release(sequences[at]);
        sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(at));
      }
      RC_ASSERT(cache.num_entries() == static_cast<int>(entries.size()));
      RC_ASSERT(cache.invariants_hold());
    }
    cache.clear();
    for (const auto& blocks : sequences) pool.release(blocks);
    RC_ASSERT(pool.num_blank() == num_blocks);
  }));
}

TEST(BlockPool, IsWhatPlainCountsAre) {
  EXPECT_TRUE(rc::check([] {
    const int total = *rc::gen::inRange(1, 12);
    BlockPool pool(total);
    std::vector<std::vector<std::int32_t>> held, kept;
    for (int step = *rc::gen::inRange(1, 80); step > 0; --step) {
      const int what = *rc::gen::inRange(0, 5);
      if (what == 0) {
        std::vector<std::int32_t> blocks;
        const int n = *rc::gen::inRange(0, 5), blank = pool.num_blank();
        RC_ASSERT(pool.acquire(n, blocks) == (n <= blank));
        for (const std::int32_t block : blocks) {
          for (const auto* lists : {&held, &kept})
            for (const auto& list : *lists) RC_ASSERT(std::ranges::find(list, block) == list.end());
        }
        held.push_back(blocks);
      } else if (what < 3 && !held.empty()) {
        const auto at = *rc::gen::inRange<std::size_t>(0, held.size());
        if (what == 1) {
          pool.release(held[at]);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
        } else {
          pool.keep(held[at]);
          kept.push_back(held[at]);
        }
      } else if (!kept.empty()) {
        const auto at = *rc::gen::inRange<std::size_t>(0, kept.size());
        if (what == 3) {
          pool.drop(kept[at]);
          kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
        } else {
          pool.share(kept[at]);
          held.push_back(kept[at]);
        }
      }
      std::set<std::int32_t> held_ids, kept_ids;
      for (const auto& list : held) held_ids.insert(list.begin(), list.end());
      for (const auto& list : kept) {
        for (const std::int32_t block : list)
          if (!held_ids.contains(block)) kept_ids.insert(block);
      }
      RC_ASSERT(pool.num_held() == static_cast<int>(held_ids.size()));
      RC_ASSERT(pool.num_kept() == static_cast<int>(kept_ids.size()));
      RC_ASSERT(pool.invariants_hold());
    }
  }));
}

using PrefixCacheDeath = testing::Test;
TEST(PrefixCacheDeath, ABlankBlockCannotBeShared) {
  BlockPool pool(2);
  const std::vector<std::int32_t> blocks{0};
  EXPECT_DEATH(pool.share(blocks), "holders_");
  EXPECT_DEATH(pool.drop(blocks), "keepers_");
}

}  // namespace
}  // namespace rondo
