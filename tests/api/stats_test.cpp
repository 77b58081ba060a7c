#include "api/stats.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/api/answers.h"

namespace rondo {
namespace {

ServedModel model() {
  ServedModel m = served_demo();
  m.context_tokens = 4096;
  m.drafts_priced = true;
  m.memory.lines = {{"weights", 1000, true},
                    {"KV blocks", 800, false, MemoryPlan::Held::ByBlocks},
                    {"state", 400, false, MemoryPlan::Held::BySlots},
                    {"stacks", 100, false, MemoryPlan::Held::AsUsed}};
  return m;
}

EngineStatus busy() {
  EngineStatus status;
  status.running = 3;
  status.filling = 1;
  status.queued = 2;
  status.max_streams = 4;
  status.blocks_held = 2;
  status.num_blocks = 8;
  status.requests = 9;
  status.work.rounds = 100;
  status.work.completion_tokens = 250;
  status.work.drafted[0] = 80;
  status.work.drafted[1] = 40;
  status.work.accepted[0] = 60;
  status.work.lone_tokens = 30;
  status.work.lone_ms = 10;
  status.recent.rounds = 10;
  status.recent.windows = 20;
  status.recent.rows = 50;
  status.recent.completion_tokens = 30;
  status.recent.planned_ms = 45;
  status.recent.real_ms = 50;
  status.recent.decode_tokens = 30;
  status.recent.decode_ms = 60;
  status.recent.decode_stream_ms = 120;
  status.recent.drafted[0] = 8;
  status.recent.accepted[0] = 6;
  status.tokens_by_second.back() = 30;
  return status;
}

json::Object stats_of(const ServedModel& m, const EngineStatus& status) {
  return parse_json(render_stats(m, status)).value().as_object();
}

TEST(Stats, SaysWhatTheEngineIsDoing) {
  const json::Object stats = stats_of(model(), busy());
  EXPECT_EQ(stats.at("model"), "demo");
  EXPECT_EQ(stats.at("arithmetic"), "fake");
  EXPECT_EQ(to_json(stats.at("streams")), R"({"running":3,"filling":1,"queued":2,"max":4})");
  EXPECT_EQ(to_json(stats.at("recent")),
            R"({"seconds":10,"rounds":10,"streams_a_round":2.0,"rows_a_round":5.0,"planned_ms":4.5,"real_ms":5.0,)"
            R"("drafted":[8,0],"accepted":[6,0]})");
  EXPECT_EQ(to_json(stats.at("total")),
            R"({"requests":9,"rounds":100,"rows":0,"prompt_tokens":0,"completion_tokens":250,)"
            R"("drafted":[80,40],"accepted":[60,0]})");
}

TEST(Stats, RatesAreOfTheTimeOfRoundsThatDecode) {
  const json::Object tokens = stats_of(model(), busy()).at("tokens_per_s").as_object();
  EXPECT_EQ(tokens.at("together").to_number<double>(), 500);  // 30 tokens in 60 ms
  EXPECT_EQ(tokens.at("each").to_number<double>(), 250);      // two streams a round
  EXPECT_EQ(tokens.at("alone").to_number<double>(), 3000);    // lately none: 30 in 10 ms, since the start
  EXPECT_EQ(tokens.at("by_second").as_array().size(), static_cast<std::size_t>(StatusBoard::kSeconds));
}

TEST(Stats, MemoryIsReservedAsAWholeAndUsedByWhatIsHeld) {
  EXPECT_EQ(to_json(stats_of(model(), busy()).at("memory")),
            R"([{"what":"weights","bytes":1000,"used_bytes":1000,"mapped":true},)"
            R"({"what":"KV blocks","bytes":800,"used_bytes":200,"mapped":false},)"
            R"({"what":"state","bytes":400,"used_bytes":300,"mapped":false}])");
}

TEST(Stats, WhatIsNotKnownIsNull) {
  ServedModel unpriced = model();
  unpriced.drafts_priced = false;
  EXPECT_TRUE(stats_of(unpriced, busy()).at("recent").as_object().at("planned_ms").is_null());
  const json::Object idle = stats_of(model(), EngineStatus{});
  for (const char* rate : {"together", "each", "alone"}) {
    EXPECT_TRUE(idle.at("tokens_per_s").as_object().at(rate).is_null()) << rate;
  }
  EXPECT_TRUE(idle.at("recent").as_object().at("real_ms").is_null());
}

}  // namespace
}  // namespace rondo
