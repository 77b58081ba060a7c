#include "engine/status_board.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/fake_clock.h"

namespace rondo::test {
namespace {

EngineReading reading(std::uint64_t tokens) {
  EngineReading out;
  out.work.completion_tokens = tokens;
  out.work.rounds = tokens / 2;
  out.work.drafted[1] = tokens / 3;
  return out;
}

TEST(StatusBoard, ShowsTheLastReading) {
  FakeClock clock;
  StatusBoard board(clock.now());
  EngineReading r = reading(5);
  r.running = 3;
  r.queued = 2;
  r.blocks_held = 7;
  board.publish(clock.now(), r);
  const auto view = board.read(clock.now());
  EXPECT_EQ(view.latest.running, 3);
  EXPECT_EQ(view.latest.queued, 2);
  EXPECT_EQ(view.latest.blocks_held, 7);
  EXPECT_EQ(view.latest.work.completion_tokens, 5u);
}

TEST(StatusBoard, TokensLieInTheSecondsThatBroughtThem) {
  FakeClock clock;
  StatusBoard board(clock.now());
  board.publish(clock.now(), reading(5));
  clock.advance_ms(1500);
  board.publish(clock.now(), reading(6));
  board.publish(clock.now(), reading(25));
  clock.advance_ms(3000);  // two whole seconds without a word
  board.publish(clock.now(), reading(26));
  const auto view = board.read(clock.now());
  const auto& by_second = view.tokens_by_second;
  const std::size_t last = by_second.size() - 1;
  EXPECT_EQ(by_second[last], 1u);
  EXPECT_EQ(by_second[last - 1], 0u);
  EXPECT_EQ(by_second[last - 2], 0u);
  EXPECT_EQ(by_second[last - 3], 20u);
  EXPECT_EQ(by_second[last - 4], 5u);
  EXPECT_EQ(std::accumulate(by_second.begin(), by_second.end(), 0u), 26u);
}

TEST(StatusBoard, WhatLiesLongerBackLeavesTheViewAndNotTheTotal) {
  FakeClock clock;
  StatusBoard board(clock.now());
  board.publish(clock.now(), reading(90));
  for (int second = 1; second <= 200; ++second) {
    clock.advance_ms(1000);
    if (second == 195) board.publish(clock.now(), reading(99));
    const auto view = board.read(clock.now());
    const std::uint32_t shown = std::accumulate(view.tokens_by_second.begin(), view.tokens_by_second.end(), 0u);
    EXPECT_EQ(shown, (second < StatusBoard::kSeconds ? 90u : 0u) + (second >= 195 ? 9u : 0u)) << second;
    const std::uint64_t recent = second <= StatusBoard::kRecentSeconds ? 90 : second >= 195 ? 9 : 0;
    EXPECT_EQ(view.recent.completion_tokens, recent) << second;
    EXPECT_EQ(view.recent.rounds, recent == 9 ? 4u : recent / 2) << second;
    EXPECT_EQ(view.recent.drafted[1], recent / 3) << second;
    EXPECT_EQ(view.latest.work.completion_tokens, second < 195 ? 90u : 99u);
  }
}

}  // namespace
}  // namespace rondo::test
