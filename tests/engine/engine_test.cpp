// The engine as its callers see it: what is refused and in which words, what is counted, and what it tells whom when it
// stops. The last tests run it on a thread of its own.

#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/decision_log.h"
#include "engine/inbox.h"
#include "engine/round_costs.h"
#include "tests/engine/fake_model.h"
#include "tests/engine/schedules.h"

namespace rondo::test {
namespace {

FakeOptions options(int streams = 2) {
  FakeOptions o;
  o.max_streams = streams;
  o.max_rows = 16;
  return o;
}

Request request(int prompt = 3, int max_tokens = 5) {
  Request r;
  for (int i = 0; i < prompt; ++i) r.prompt_ids.push_back(i);
  r.max_tokens = max_tokens;
  return r;
}

struct Rig {
  explicit Rig(FakeOptions o = options(), EngineOptions e = {})
      : model(o, clock), engine(model, nullptr, o.costs, clock, e) {}
  std::shared_ptr<RecordingSink> submit(Request r) {
    auto sink = std::make_shared<RecordingSink>();
    CHECK(engine.submit(std::move(r), sink).has_value());
    return sink;
  }
  Error refused(Request r) {
    const auto id = engine.submit(std::move(r), std::make_shared<RecordingSink>());
    CHECK(!id.has_value());
    return id.error();
  }
  FakeClock clock;
  FakeModel model;
  Engine engine;
};

TEST(Engine, RefusesWhatCanNeverRunWithTheNumbers) {
  Rig s;
  EXPECT_EQ(s.refused(request(0)).code, ErrorCode::InvalidArgument);
  EXPECT_EQ(s.refused(request(3, 0)).code, ErrorCode::InvalidArgument);
  Request foreign = request();
  foreign.prompt_ids.push_back(304);
  EXPECT_NE(s.refused(foreign).message.find("304"), std::string::npos);
  foreign.prompt_ids.back() = -1;
  EXPECT_EQ(s.refused(foreign).code, ErrorCode::InvalidArgument);
  const Error too_long = s.refused(request(40, 25));
  EXPECT_EQ(too_long.code, ErrorCode::TooLong);
  for (const char* number : {"40", "25", "65", "64"}) EXPECT_NE(too_long.message.find(number), std::string::npos);
  Request huge = request(3);
  huge.max_tokens = std::numeric_limits<int>::max();
  EXPECT_EQ(s.refused(huge).code, ErrorCode::TooLong);
  EXPECT_FALSE(s.engine.turn());
  EXPECT_EQ(s.engine.status().requests, 0u);
}

TEST(Engine, ARequestThatFillsTheContextToItsLastPositionRuns) {
  Rig s;
  const auto sink = s.submit(request(60, 4));
  while (s.engine.turn()) {
  }
  ASSERT_TRUE(sink->end);
  EXPECT_EQ(sink->ids.size(), 4u);
  EXPECT_EQ(sink->end->reason, FinishReason::Length);
}

TEST(Engine, AFullQueueRefusesAndTakesAgainOnceOneHasEnded) {
  EngineOptions e;
  e.max_queued = 1;
  Rig s(options(1), e);
  const auto first = s.submit(request()), second = s.submit(request());
  EXPECT_EQ(s.refused(request()).code, ErrorCode::QueueFull);
  while (!first->end) s.engine.turn();
  s.engine.turn();
  const auto third = s.submit(request());
  while (s.engine.turn()) {
  }
  EXPECT_TRUE(second->end && third->end);
  EXPECT_TRUE(s.submit(request()) && s.submit(request()));
}

TEST(Engine, CountsWhatItDid) {
  Rig s;
  const auto a = s.submit(request(30, 7)), b = s.submit(request(1, 4));
  while (s.engine.turn()) {
  }
  const EngineStatus status = s.engine.status();
  EXPECT_EQ(status.requests, 2u);
  EXPECT_EQ(status.work.prompt_tokens, 31u);
  EXPECT_EQ(status.work.completion_tokens, 11u);
  EXPECT_EQ(status.running + status.queued, 0);
  EXPECT_EQ(status.work.rounds, static_cast<std::uint64_t>(s.engine.log().rounds().back()->round));
  EXPECT_EQ(status.work.windows, static_cast<std::uint64_t>(a->end->usage.rounds + b->end->usage.rounds));
  EXPECT_GE(status.work.lone_tokens, 1u);  // the longer reply's last ones, while it was alone
  EXPECT_LE(status.work.lone_tokens, status.work.decode_tokens);
  EXPECT_EQ(status.work.decode_tokens, 7u);  // of rounds without rows of a prompt
  EXPECT_EQ(status.recent.completion_tokens, 11u);
  EXPECT_EQ(status.blocks_held, 0);
  EXPECT_EQ(a->end->usage.prompt_tokens, 30);
  EXPECT_EQ(a->end->usage.completion_tokens, 7);
  EXPECT_EQ(a->end->usage.completion_tokens,
            a->end->usage.rounds + a->end->usage.accepted);  // each round brings one more
  EXPECT_EQ(b->end->usage.completion_tokens, 4);
}

TEST(Engine, ARoundWithPromptRowsIsNotCountedAsDecoding) {
  Rig s;
  s.submit(request(5, 3));
  while (s.engine.turn()) {
  }
  EXPECT_EQ(s.engine.status().work.completion_tokens, 3u);
  EXPECT_EQ(s.engine.status().work.decode_tokens, 2u);
  EXPECT_EQ(s.engine.status().work.lone_tokens, 2u);
}

// Shared for real: every stream's window rides one forward, every stream's draft one head pass a level.
TEST(Engine, OneForwardARoundAndOneHeadPassALevelHoweverManyStreams) {
  for (const int streams : {1, 2, 7, 16}) {
    FakeOptions o = options(streams);
    o.max_rows = 16 * 9;
    o.costs.context_tokens[1] = 64;
    for (auto& table : o.costs.verify_ms) table.assign(static_cast<std::size_t>(o.max_rows) + 1, 10.0);
    o.costs.absorb_ms.assign(64, 0.0);
    o.costs.level_ms.assign(static_cast<std::size_t>(streams) + 1, 0.0);
    Rig s(o);
    for (int i = 0; i < streams; ++i) s.submit(request(1 + i % 3, 30));
    while (s.engine.turn()) {
    }
    int head_passes = 0;
    for (const RoundRecord* record : s.engine.log().rounds()) {
      EXPECT_LE(record->head_passes, o.max_drafts);
      head_passes += record->head_passes;
    }
    EXPECT_EQ(static_cast<std::uint64_t>(s.model.forwards), s.engine.status().work.rounds);
    EXPECT_EQ(s.model.head_passes, head_passes);
    EXPECT_GT(s.model.windows_seen, s.model.forwards * (streams - 1) / 2);
  }
}

TEST(Engine, WhereDraftsDoNotPayAParkedHeadIsTriedRarelyAndCostsNextToNothing) {
  FakeOptions o = options(1);
  o.context_tokens = 4000;
  o.head_right = 0;
  o.max_rows = 16;
  o.costs.context_tokens[1] = 4000;
  for (auto& table : o.costs.verify_ms) {
    for (int rows = 0; rows <= o.max_rows; ++rows)
      table.push_back(5.0 + 5 * std::max(rows, 1));  // a sure draft would pay, a likely one not
  }
  o.costs.absorb_ms.assign(64, 3.0);
  o.costs.level_ms.assign(2, 3.0);
  Rig s(o);
  const auto sink = s.submit(request(2, 3000));
  const Clock::Time begin = s.clock.now();
  while (s.engine.turn()) {
  }
  EXPECT_GT(s.model.head_passes, 0);  // tried
  const double took_ms = ms_between(begin, s.clock.now()), plain_ms = 3001 * 10.0;
  EXPECT_LT(took_ms, plain_ms * 1.02);
  EXPECT_EQ(sink->ids.size(), 3000u);
}

TEST(Engine, AStreamWhoseTextTurnsEasyDraftsAgain) {
  FakeOptions o = options(1);
  o.context_tokens = 2000;
  o.costs.context_tokens[1] = 2000;
  for (auto& table : o.costs.verify_ms) {
    for (int rows = 0; rows <= o.max_rows; ++rows) table.push_back(10.0 + rows);
  }
  o.costs.absorb_ms.assign(64, 1.0);
  o.costs.level_ms.assign(2, 1.0);
  o.head_right = 0;
  Rig s(o);
  const auto sink = s.submit(request(2, 1900));
  while (sink->ids.size() < 600) s.engine.turn();
  s.model.set_head_right(0.95);
  while (s.engine.turn()) {
  }
  EXPECT_GT(sink->end->usage.accepted, 500);
}

// Of the same beginning: a decoding one beside them, a long one whose head is left alone, one that waits for its state,
// and a short one that does not wait as its head must follow. The short one's state serves the waiting one as well.
TEST(Engine, WhoWaitsForAStateGoesOnAsSoonAsAnybodyHasSavedIt) {
  constexpr int kCommon = 100;
  FakeOptions o = options(4);
  o.context_tokens = 600;
  o.num_states = 8;
  o.vocab_size = 1000;
  Rig s(o);
  const auto with = [](Request r, std::int32_t own_id, int draft_depth) {
    r.prompt_ids[std::min<std::size_t>(kCommon, r.prompt_ids.size() - 1)] = own_id;
    r.max_draft_depth = draft_depth;
    r.draw.seed = 1;
    return r;
  };
  const auto decoding = s.submit(with(request(3, 500), 900, 0));
  while (decoding->ids.empty()) s.engine.turn();
  const auto leader = s.submit(with(request(kCommon + 300, 100), 901, 0));
  const auto waiting = s.submit(with(request(kCommon + 2, 100), 902, 0));
  const auto quick = s.submit(with(request(kCommon + 2, 100), 903, 4));
  while (quick->ids.empty()) s.engine.turn();
  ASSERT_EQ(s.engine.status().running, 3);
  for (int turn = 0; turn < 3; ++turn) s.engine.turn();
  EXPECT_FALSE(waiting->ids.empty());
  EXPECT_TRUE(leader->ids.empty());
  EXPECT_EQ(s.engine.counters().cached_tokens, std::uint64_t{kCommon});
}

TEST(Inbox, GivesMessagesInTheOrderTheyWerePosted) {
  Inbox inbox;
  for (std::uint64_t id = 1; id <= 5; ++id) inbox.post({RequestId{id}, std::nullopt});
  const auto taken = inbox.take();
  ASSERT_EQ(taken.size(), 5u);
  for (std::uint64_t i = 0; i < 5; ++i) EXPECT_EQ(taken[i].id.value, i + 1);
  EXPECT_TRUE(inbox.take().empty());
}

TEST(Inbox, ACloseHandsOutWhatIsLeftAndTakesNoMore) {
  Inbox inbox;
  EXPECT_TRUE(inbox.post({RequestId{1}, std::nullopt}));
  EXPECT_EQ(inbox.close().size(), 1u);
  EXPECT_FALSE(inbox.post({RequestId{2}, std::nullopt}));
  EXPECT_TRUE(inbox.take().empty());
}

// Threads from here on.

// Counts what comes, and lets a test wait for it.
class WaitingSink final : public EventSink {
 public:
  void on_text(const TextEvent&) override {}
  void on_end(EndEvent) override { settle(); }
  void on_failed(Error) override { settle(); }
  void wait() {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [this] { return times_ > 0; });
  }
  int times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  void settle() {
    const std::lock_guard lock(mutex_);
    ++times_;
    settled_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable settled_;
  int times_ = 0;
};

TEST(EngineThread, EveryRequestIsAnsweredOnceThoughClientsComeCancelAndStopAtOnce) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    FakeClock clock;
    FakeOptions o = options(4);
    FakeModel model(o, clock);
    SteadyClock steady;
    Engine engine(model, nullptr, {}, steady, {});
    std::jthread loop([&](const std::stop_token& stop) { engine.run(stop); });
    std::vector<std::vector<std::shared_ptr<WaitingSink>>> accepted(3);
    {
      std::vector<std::jthread> clients;
      for (std::size_t c = 0; c < accepted.size(); ++c) {
        clients.emplace_back([&, c] {
          for (int i = 0; i < 60; ++i) {
            auto sink = std::make_shared<WaitingSink>();
            const auto id = engine.submit(request(1 + i % 20, 1 + i % 9), sink);
            if (!id) continue;  // the queue is full, or the engine has stopped
            accepted[c].push_back(sink);
            if (i % 4 == 0) engine.cancel(*id);
            if (i % 10 == 0) (void)engine.status();
            if (i % 7 == 0 && repeat < 3) sink->wait();
          }
          if (c == 0 && repeat >= 3) loop.request_stop();  // while the others still submit
        });
      }
    }
    if (repeat < 3) {
      for (auto& each : accepted) {
        for (auto& sink : each) sink->wait();
      }
      loop.request_stop();
    }
    loop.join();
    int answered = 0;
    for (auto& each : accepted) {
      for (auto& sink : each) {
        EXPECT_EQ(sink->times(), 1);
        ++answered;
      }
    }
    EXPECT_GT(answered, 50);
    EXPECT_TRUE(engine.status().stopped);
    const auto late = engine.submit(request(), std::make_shared<RecordingSink>());
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, ErrorCode::Unavailable);
  }
}

}  // namespace
}  // namespace rondo::test
