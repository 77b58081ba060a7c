// What goes wrong in one place ends whom it concerns, with words, and nobody else; nothing is left behind.

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/engine/fake_model.h"
#include "tests/engine/schedules.h"

namespace rondo::test {
namespace {

FakeOptions options() {
  FakeOptions o;
  o.max_streams = 4;
  o.max_rows = 16;
  o.num_states = 4;
  return o;
}

Request request(int first, int prompt = 20, int max_tokens = 8) {
  Request r;
  for (int i = 0; i < prompt; ++i) r.prompt_ids.push_back((first + i) % 300);
  r.max_tokens = max_tokens;
  return r;
}

struct Rig {
  explicit Rig(FakeOptions o = options()) : model(o, clock), engine(model, nullptr, o.costs, clock, {}) {}
  std::shared_ptr<RecordingSink> submit(Request r, RequestId* id = nullptr) {
    auto sink = std::make_shared<RecordingSink>();
    const auto submitted = engine.submit(std::move(r), sink);
    CHECK(submitted.has_value());
    if (id != nullptr) *id = *submitted;
    return sink;
  }
  void finish() {
    while (engine.turn()) {
    }
  }
  void expect_nothing_left() const {
    EXPECT_EQ(model.num_held_slots(), 0);
    EXPECT_EQ(engine.status().blocks_held, 0);
    EXPECT_EQ(engine.status().running + engine.status().queued, 0);
  }
  FakeClock clock;
  FakeModel model;
  Engine engine;
};

std::vector<std::int32_t> alone(Request r) {
  Rig s;
  const auto sink = s.submit(std::move(r));
  s.finish();
  CHECK(sink->end.has_value());
  return sink->ids;
}

// Whichever call of the model fails: those it ran for end with words, the others say what they say alone, and so does
// who comes after.
TEST(Failure, OfTheModelEndsWhomItRanForAndNobodyElse) {
  int failed = 0, unharmed = 0;
  for (int call = 0; call < 30; ++call) {
    Rig s;
    s.model.fails_at = call;
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (int i = 0; i < 3; ++i) sinks.push_back(s.submit(request(i * 50, 5 + 12 * i)));
    for (int turn = 0; turn < 3; ++turn) s.engine.turn();
    sinks.push_back(s.submit(request(200, 9)));
    s.finish();
    for (int i = 0; i < 4; ++i) {
      const auto& sink = sinks[static_cast<std::size_t>(i)];
      ASSERT_TRUE(sink->is_over()) << "call " << call << " request " << i;
      if (sink->failed) {
        ++failed;
        EXPECT_EQ(sink->failed->code, ErrorCode::Internal);
        EXPECT_NE(sink->failed->message.find("a worker failed"), std::string::npos);
        continue;
      }
      ++unharmed;
      EXPECT_EQ(sink->ids, alone(i < 3 ? request(i * 50, 5 + 12 * i) : request(200, 9))) << "call " << call;
    }
    s.expect_nothing_left();
    s.model.fails_at = -1;
    const auto after = s.submit(request(0, 5));
    s.finish();
    ASSERT_TRUE(after->end);
    EXPECT_EQ(after->ids, alone(request(0, 5)));
  }
  EXPECT_GT(failed, 15);
  EXPECT_GT(unharmed, 15);
}

TEST(Failure, OfARestoreEndsWhoWasToGoOnFromIt) {
  Rig s;
  s.submit(request(1, 30));
  s.finish();
  s.model.fails_at = s.model.calls;  // restoring is the first thing that is done for who finds a state
  const auto failed = s.submit(request(1, 50));
  s.finish();
  ASSERT_TRUE(failed->failed);
  EXPECT_EQ(failed->failed->message, "the model failed: a worker failed");
  EXPECT_EQ(s.engine.status().work.prefix_hits, 0u);
  EXPECT_EQ(s.engine.status().ended.failed, 1u);
  s.expect_nothing_left();
  const auto again = s.submit(request(1, 50));
  s.finish();
  EXPECT_EQ(again->ids, alone(request(1, 50)));
  EXPECT_GE(again->end->usage.cached_tokens, 16);
}

TEST(Failure, OfASaveAtTheEndOfAReplyLeavesTheReplyWhole) {
  Rig fine;
  fine.submit(request(1));
  fine.finish();
  Rig s;
  s.model.fails_at = fine.model.calls - 1;  // the last thing that is done for a request
  const auto sink = s.submit(request(1));
  s.finish();
  EXPECT_EQ(s.model.calls, fine.model.calls);
  ASSERT_TRUE(sink->end);
  EXPECT_EQ(sink->ids, alone(request(1)));
  EXPECT_EQ(s.engine.status().work.states_saved + 1, fine.engine.status().work.states_saved);
  s.expect_nothing_left();
}

class ThrowingRule final : public TokenRule {
 public:
  explicit ThrowingRule(int accepts) : left_(accepts) {}
  void reserve(int) override {
    if (left_ < 0) throw std::runtime_error("a broken rule");
  }
  void allow_after(std::span<const std::int32_t>, std::span<std::uint32_t> mask) override {
    if (left_ == 0) throw std::runtime_error("a broken rule");
    std::fill(mask.begin(), mask.end(), ~0u);
  }
  void accept(std::int32_t) override {
    if (--left_ == 0) throw std::runtime_error("a broken rule");
  }

 private:
  int left_;
};

TEST(Failure, OfOneRequestsRuleEndsThatRequestAlone) {
  for (int accepts = -1; accepts < 6; ++accepts) {
    Rig s;
    Request broken = request(7);
    broken.rule = std::make_shared<ThrowingRule>(accepts);
    const auto a = s.submit(request(1)), b = s.submit(std::move(broken)), c = s.submit(request(100, 3));
    s.finish();
    ASSERT_TRUE(b->failed) << accepts;
    EXPECT_EQ(b->failed->message, "a broken rule");
    EXPECT_EQ(a->ids, alone(request(1)));
    EXPECT_EQ(c->ids, alone(request(100, 3)));
    s.expect_nothing_left();
  }
}

class ThrowingSink final : public EventSink {
 public:
  explicit ThrowingSink(bool at_text) : at_text_(at_text) {}
  void on_text(const TextEvent&) override {
    if (at_text_) throw std::runtime_error("a broken sink");
  }
  void on_end(EndEvent) override { throw std::runtime_error("a broken sink"); }
  void on_failed(Error) override { throw std::runtime_error("a broken sink"); }

 private:
  bool at_text_;
};

TEST(Failure, OfOneRequestsSinkEndsThatRequestAloneWhateverItIsTold) {
  for (int turns = 0; turns < 4; ++turns) {
    Rig s;
    const auto a = s.submit(request(1));
    for (const bool at_text : {false, true}) {
      CHECK(s.engine.submit(request(7, 30), std::make_shared<ThrowingSink>(at_text)).has_value());
      const auto gone = s.engine.submit(request(50), std::make_shared<ThrowingSink>(at_text));
      for (int turn = 0; turn < turns; ++turn) s.engine.turn();
      s.engine.cancel(*gone);
      Request late = request(90);
      late.deadline_ms = 1;
      CHECK(s.engine.submit(std::move(late), std::make_shared<ThrowingSink>(at_text)).has_value());
    }
    s.finish();
    EXPECT_EQ(a->ids, alone(request(1)));
    s.expect_nothing_left();
  }
}

TEST(Failure, ACancelledFillLeavesItsPlaceAndAStateToGoOnFrom) {
  Rig s;
  RequestId id;
  const auto gone = s.submit(request(1, 50, 4), &id);
  s.engine.turn();
  s.engine.cancel(id);
  s.engine.turn();
  ASSERT_TRUE(gone->failed);
  EXPECT_EQ(gone->failed->code, ErrorCode::Cancelled);
  s.expect_nothing_left();
  const auto again = s.submit(request(1, 50, 4));
  s.finish();
  EXPECT_EQ(again->ids, alone(request(1, 50, 4)));
  EXPECT_GE(again->end->usage.cached_tokens, 16);
}

TEST(Failure, ADeadlineThatPassesEndsARequestWaitingOrRunning) {
  FakeOptions o = options();
  o.max_streams = 1;
  Rig s(o);
  Request hurried = request(1, 10, 40);
  hurried.deadline_ms = 6;  // a call of the fake model takes a millisecond
  hurried.max_draft_depth = 0;
  Request waiting = request(2);
  waiting.deadline_ms = 3;
  const auto a = s.submit(std::move(hurried)), b = s.submit(std::move(waiting)), c = s.submit(request(3));
  s.finish();
  ASSERT_TRUE(a->failed && b->failed);
  EXPECT_NE(a->failed->message.find("running"), std::string::npos);
  EXPECT_NE(b->failed->message.find("waiting"), std::string::npos);
  EXPECT_GT(a->ids.size(), 0u);
  EXPECT_EQ(c->ids, alone(request(3)));
  s.expect_nothing_left();
}

// n choices of one prompt, and agents with one system prompt, arriving together: the common part is computed once.
TEST(Sharing, WhoArrivesTogetherComputesACommonBeginningOnce) {
  Rig s;
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 4; ++i) {
    Request choice = request(1, 40, 4);
    choice.draw.temperature = 1;
    choice.draw.seed = static_cast<std::uint64_t>(i);
    choice.max_draft_depth = 0;
    sinks.push_back(s.submit(std::move(choice)));
  }
  s.finish();
  EXPECT_EQ(s.engine.status().work.prompt_tokens, 40u + 3u);
  EXPECT_EQ(s.engine.status().work.cached_tokens, 3u * 39u);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(sinks[static_cast<std::size_t>(i)]->end->usage.cached_tokens, 39);
}

TEST(Sharing, ARequestWhoseBlocksAreNotThereLetsABoundedNumberPass) {
  FakeOptions o = options();
  o.num_states = 0;
  o.num_blocks = 20;  // 80 positions
  Rig s(o);
  const auto large = s.submit(request(0, 30, 20));  // 13 blocks
  s.engine.turn();
  const auto blocked = s.submit(request(50, 30, 20));
  std::vector<std::shared_ptr<RecordingSink>> small;
  int before_blocked = 0;
  for (int i = 0; i < 200; ++i) {
    small.push_back(s.submit(request(i, 2, 2)));
    s.engine.turn();
    if (blocked->ids.empty() && small.back()->is_over()) ++before_blocked;
  }
  EXPECT_TRUE(small[0]->is_over());  // it passed
  s.finish();
  EXPECT_TRUE(large->end && blocked->end);
}

}  // namespace
}  // namespace rondo::test
