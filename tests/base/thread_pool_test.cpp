#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

namespace rondo {
namespace {

TEST(ThreadPool, RunsEachPartExactlyOnceWhateverTheNumberOfParts) {
  ThreadPool pool(4);
  for (int turn = 0; turn < 300; ++turn) {
    const int parts = 1 + turn % 4;
    int calls[4] = {};  // not atomic: each part has its own element, and run() orders it before what follows
    pool.run(parts, [&](int part) { ++calls[part]; });
    for (int part = 0; part < 4; ++part) ASSERT_EQ(calls[part], part < parts ? 1 : 0) << turn;
  }
}

// Without the fence in run() one part would read what another is still writing: TSan sees it, and so does the sum.
TEST(ThreadPool, WhatOneRunWroteTheNextOneReads) {
  ThreadPool pool(4);
  std::vector<std::int64_t> row(64, 1);
  std::vector<std::int64_t> next(64);
  for (int turn = 0; turn < 100; ++turn) {
    pool.split(64, 1, [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        next[static_cast<std::size_t>(i)] = row[static_cast<std::size_t>(63 - i)] + 1;
      }
    });
    row.swap(next);
  }
  EXPECT_EQ(std::accumulate(row.begin(), row.end(), std::int64_t{0}), 64 * 101);
}

// Between two runs the caller waits out the workers' spins. What comes out does not depend on how long that takes.
TEST(ThreadPool, WakesWorkersThatFellAsleep) {
  ThreadPool pool(4);
  std::atomic<int> calls{0};
  for (int turn = 0; turn < 5; ++turn) {
    pool.run(4, [&](int) { calls.fetch_add(1); });
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }
  EXPECT_EQ(calls.load(), 20);
}

TEST(ThreadPool, APoolOfOneRunsOnTheCaller) {
  ThreadPool pool(1);
  std::thread::id id;
  pool.run(1, [&](int) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
  EXPECT_EQ(pool.num_threads(), 1);
}

TEST(ThreadPool, EndsWithoutHavingRunAnything) {
  for (int turn = 0; turn < 20; ++turn) ThreadPool pool(4);
}

TEST(ThreadPool, SplitCutsTheRangeIntoOrderedRunsThatCoverItOnce) {
  ThreadPool pool(4);
  EXPECT_TRUE(rc::check("each index once, at most one run a thread, none smaller than the grain", [&] {
    const int n = *rc::gen::inRange(0, 300);
    const int grain = *rc::gen::inRange(0, 40);
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
    std::atomic<int> runs{0};
    std::atomic<int> smallest{n};
    pool.split(n, grain, [&](int begin, int end) {
      runs.fetch_add(1);
      int known = smallest.load();
      while (end - begin < known && !smallest.compare_exchange_weak(known, end - begin)) {
      }
      for (int i = begin; i < end; ++i) seen[static_cast<std::size_t>(i)].fetch_add(1);
    });
    for (const auto& each : seen) RC_ASSERT(each.load() == 1);
    RC_ASSERT(runs.load() <= pool.num_threads());
    RC_ASSERT(runs.load() <= 1 || smallest.load() >= grain);
  }));
}

TEST(ThreadPool, SplitOfALargeRangeDoesNotOverflow) {
  ThreadPool pool(4);
  std::atomic<std::int64_t> sum{0};
  pool.split(2'000'000'000, 1, [&](int begin, int end) { sum.fetch_add(end - begin); });
  EXPECT_EQ(sum.load(), 2'000'000'000);
}

TEST(ThreadPoolDeathTest, MorePartsThanThreadsIsABrokenPromise) {
  EXPECT_DEATH(
      {
        ThreadPool pool(1);
        pool.run(2, [](int) {});
      },
      "parts");
}

}  // namespace
}  // namespace rondo
