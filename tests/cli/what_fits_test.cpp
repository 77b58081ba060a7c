#include "cli/what_fits.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

std::uint64_t bytes_of(const WeightSource& source, ThreadPool& pool, ModelOptions shape, int context, int streams) {
  shape.context_tokens = context;
  shape.max_streams = streams;
  shape.max_rows = std::max(shape.max_rows, streams);
  return needed_bytes(plan_memory(source, pool, shape));
}

TEST(WhatFits, ItIsTheMostStreamsWhosePlanFindsRoom) {
  auto checkpoint = Checkpoint::open(RONDO_BUNDLED_MODEL);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ThreadPool pool(1);
  ModelOptions shape;
  shape.context_tokens = 1000;
  shape.cache_states = 3;
  shape.cache_blocks = 20;
  const std::uint64_t one = bytes_of(*checkpoint, pool, shape, 1000, 1);
  for (const std::uint64_t room : {one - 1, one, one + (std::uint64_t{100} << 20), std::uint64_t{2} << 30}) {
    const auto fits = what_fits(*checkpoint, pool, shape, room);
    ASSERT_EQ(fits.size(), 2U);
    EXPECT_EQ(fits[0].context_tokens, 1000);
    EXPECT_EQ(fits[1].context_tokens, checkpoint->config().context_tokens);
    for (const Fitting& each : fits) {
      const auto needed = [&](int streams) {
        return streams == 0 ? 0 : bytes_of(*checkpoint, pool, shape, each.context_tokens, streams);
      };
      EXPECT_LE(needed(each.streams), room);
      if (each.streams < kMostStreams) {
        EXPECT_GT(needed(each.streams + 1), room);
      }
    }
    EXPECT_EQ(fits[0].streams == 0, room < one);
  }
  EXPECT_EQ(what_fits(*checkpoint, pool, shape, std::uint64_t{1} << 40)[0].streams, kMostStreams);
}

TEST(WhatFits, CountsAreSaidAsPeopleSayThem) {
  EXPECT_EQ(streams_in_words({4096, 0}), "none");
  EXPECT_EQ(streams_in_words({4096, 12}), "12");
  EXPECT_EQ(streams_in_words({4096, kMostStreams}), "256 or more");
}

}  // namespace
}  // namespace rondo
