// Who is admitted when, and which rows a round runs: first come first served for places, least recently served first
// for rows, and nobody starves.

#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/engine/recording_sink.h"

namespace rondo::test {
namespace {

const Clock::Time kNow{};

ModelFacts facts(int streams, int rows, int blocks = 1000) {
  ModelFacts f;
  f.vocab_size = 100;
  f.context_tokens = 400;
  f.max_streams = streams;
  f.max_rows = rows;
  f.max_drafts = 4;
  f.block_tokens = 4;
  f.num_blocks = blocks;
  f.has_head = true;
  f.head_buffer_rows = rows;
  return f;
}

std::shared_ptr<RecordingSink> enqueue(Scheduler& scheduler, std::uint64_t id, int prompt, int max_tokens) {
  auto sink = std::make_shared<RecordingSink>();
  Request request;
  request.prompt_ids.assign(static_cast<std::size_t>(prompt), 1);
  request.max_tokens = max_tokens;
  scheduler.enqueue({RequestId{id}, std::move(request), sink, kNow});
  return sink;
}

void admit(Scheduler& scheduler) {
  while (scheduler.admit_next(kNow)) {
  }
}

// False when there is no such request.
bool cancel(Scheduler& scheduler, std::uint64_t id) {
  Sequence* sequence = scheduler.find(RequestId{id});
  if (sequence == nullptr) return scheduler.cancel_waiting(RequestId{id});
  sequence->fail({ErrorCode::Cancelled, "the request was cancelled"});
  scheduler.retire(sequence);
  return true;
}

constexpr int kAnyRows = 1000;

// A round without a model: every row of the plan runs, each window draws one token.
void run(RoundPlan& plan) {
  for (const auto& rows : plan.slices) rows.sequence->commit(rows.count);
  for (const auto& rows : plan.windows) {
    rows.sequence->window(0);
    rows.sequence->commit(rows.count);
    rows.sequence->accept(2, nullptr, kNow);
  }
}

std::vector<std::uint64_t> ids(const std::vector<RoundPlan::Rows>& rows) {
  std::vector<std::uint64_t> out;
  for (const auto& each : rows) out.push_back(each.sequence->id().value);
  return out;
}

using Ids = std::vector<std::uint64_t>;

TEST(Scheduler, AdmitsFirstComeFirstServedAsFarAsSlotsGo) {
  Scheduler scheduler(facts(2, 8), nullptr);
  for (std::uint64_t id = 1; id <= 4; ++id) enqueue(scheduler, id, 2, 5);
  admit(scheduler);
  EXPECT_EQ(scheduler.num_running(), 2);
  EXPECT_EQ(scheduler.num_waiting(), 2);
  EXPECT_EQ(ids(scheduler.plan_round(kAnyRows).windows), (Ids{1, 2}));
  EXPECT_TRUE(cancel(scheduler, 1));
  admit(scheduler);
  EXPECT_EQ(ids(scheduler.plan_round(kAnyRows).windows), (Ids{2, 3}));
}

TEST(Scheduler, AWholeWindowOfBlocksIsHadAtAdmissionOrTheRequestWaits) {
  Scheduler scheduler(facts(4, 8, 5), nullptr);  // 20 positions
  enqueue(scheduler, 1, 3, 9);                   // 3 blocks
  enqueue(scheduler, 2, 2, 7);                   // 3 blocks: must wait
  admit(scheduler);
  EXPECT_EQ(scheduler.num_running(), 1);
  ASSERT_TRUE(cancel(scheduler, 1));
  admit(scheduler);
  EXPECT_EQ(ids(scheduler.plan_round(kAnyRows).windows), Ids{2});
}

TEST(Scheduler, ALongPromptIsCutAndItsLastRowsAreAWindow) {
  Scheduler scheduler(facts(2, 8), nullptr);
  enqueue(scheduler, 1, 19, 5);
  admit(scheduler);
  RoundPlan& first = scheduler.plan_round(kAnyRows);
  ASSERT_EQ(first.slices.size(), 1u);
  EXPECT_EQ(first.slices[0].count, 8);
  EXPECT_TRUE(first.windows.empty());
  run(first);
  RoundPlan& second = scheduler.plan_round(kAnyRows);
  ASSERT_EQ(second.slices.size(), 1u);
  EXPECT_EQ(second.slices[0].count, 8);
  ASSERT_EQ(second.windows.size(), 1u);  // behind the slice, in the same round
  EXPECT_EQ(second.windows[0].count, 3);
}

TEST(Scheduler, ADecodingSequenceRunsBesideAPromptBeingFilled) {
  Scheduler scheduler(facts(2, 8), nullptr);
  enqueue(scheduler, 1, 1, 50);
  enqueue(scheduler, 2, 80, 5);
  admit(scheduler);
  for (int round = 0; round < 5; ++round) {
    RoundPlan& plan = scheduler.plan_round(kAnyRows);
    EXPECT_EQ(ids(plan.windows), Ids{1});
    EXPECT_EQ(ids(plan.slices), Ids{2});
    run(plan);
  }
}

// More sequences than rows: prompts that take the rows leave the others their place, and everybody's turn comes.
TEST(Scheduler, WhoeverIsNotServedGoesFirstNextTime) {
  Scheduler scheduler(facts(6, 6), nullptr);
  enqueue(scheduler, 1, 5, 50);
  enqueue(scheduler, 2, 5, 50);
  enqueue(scheduler, 3, 1, 50);
  enqueue(scheduler, 4, 1, 50);
  admit(scheduler);
  RoundPlan& plan = scheduler.plan_round(kAnyRows);
  EXPECT_EQ(ids(plan.windows), (Ids{1, 3}));
  EXPECT_EQ(ids(plan.slices), Ids{2});
  run(plan);
  scheduler.plan_round(kAnyRows);
  EXPECT_EQ(ids(plan.windows), (Ids{1, 3, 4, 2}));
  run(plan);
}

TEST(Scheduler, NobodyStarvesWhateverElseArrives) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int streams = 1 + static_cast<int>(random() % 8), rows = streams + static_cast<int>(random() % 12);
    Scheduler scheduler(facts(streams, rows, 60 + static_cast<int>(random() % 200)), nullptr);
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    std::map<std::uint64_t, int> last_served;
    std::uint64_t next_id = 1;
    for (int round = 0; round < 150; ++round) {
      if (random() % 3 == 0)
        sinks.push_back(
            enqueue(scheduler, next_id++, 1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 20)));
      admit(scheduler);
      RoundPlan& plan = scheduler.plan_round(1 + static_cast<int>(random() % 10));
      int window_rows = 0, slice_rows = 0;
      std::vector<Sequence*> finished;
      for (const auto& each : plan.windows) {
        window_rows += each.count;
        int sliced = 0;
        for (const auto& slice : plan.slices) sliced += slice.sequence == each.sequence ? slice.count : 0;
        ASSERT_EQ(each.count + sliced, static_cast<int>(each.sequence->pending_rows().size()));
        last_served[each.sequence->id().value] = round;
      }
      for (const auto& each : plan.slices) {
        slice_rows += each.count;
        ASSERT_LT(each.count, static_cast<int>(each.sequence->pending_rows().size()));
        last_served[each.sequence->id().value] = round;
      }
      ASSERT_LE(window_rows, rows);
      ASSERT_LE(slice_rows, rows);
      ASSERT_EQ(plan.empty(), scheduler.num_running() == 0);
      run(plan);
      for (const auto& each : plan.windows) {
        if (each.sequence->is_finished()) finished.push_back(each.sequence);
      }
      for (Sequence* each : finished) {
        last_served.erase(each->id().value);
        scheduler.retire(each);
      }
      for (const auto& [id, when] : last_served)
        ASSERT_LE(round - when, streams) << "request " << id << " seed " << seed;
    }
    const int left = scheduler.num_running() + scheduler.num_waiting();
    const std::uint64_t ended = scheduler.num_ended();
    scheduler.fail_all({ErrorCode::Unavailable, "over"});
    EXPECT_EQ(scheduler.num_ended(), ended + static_cast<std::uint64_t>(left));
    EXPECT_EQ(scheduler.num_ended(), next_id - 1);
  }
}

TEST(Scheduler, ACancelledRequestIsToldWhereverItStands) {
  Scheduler scheduler(facts(1, 8), nullptr);
  const auto running = enqueue(scheduler, 1, 2, 5), waiting = enqueue(scheduler, 2, 2, 5);
  admit(scheduler);
  EXPECT_TRUE(cancel(scheduler, 2));
  ASSERT_TRUE(waiting->failed);
  EXPECT_EQ(waiting->failed->code, ErrorCode::Cancelled);
  EXPECT_TRUE(cancel(scheduler, 1));
  EXPECT_TRUE(running->failed);
  EXPECT_FALSE(cancel(scheduler, 1));  // long gone
  EXPECT_FALSE(cancel(scheduler, 99));
  EXPECT_EQ(scheduler.num_ended(), 2u);
}

}  // namespace
}  // namespace rondo::test
