// Schedules: who joins an engine when, and leaves when, drawn at random; and what must hold whatever they are: every
// request says what it says alone and undrafted.
#pragma once

#include <functional>
#include <random>

#include "engine/engine.h"
#include "model/model.h"
#include "tests/engine/fake_clock.h"
#include "tests/engine/recording_sink.h"

namespace rondo::test {

struct Visit {
  std::function<Request()> request;  // afresh each time: a rule belongs to one run
  int joins_at = 0;                  // turn
  int leaves_at = -1;                // turn of a cancel; -1: stays to its end
};

// What requests may be made of.
struct RequestSpace {
  int context_tokens = 64;
  int most_prompt = 24, most_reply = 24;
  std::vector<std::int32_t> alphabet;  // prompts and biases are drawn from it
  std::vector<std::int32_t> end_ids;   // may end a reply
  std::vector<std::string> stops;      // stop strings; empty: none
  bool rules = true;
  float bias = 2;
  std::vector<std::vector<std::int32_t>> stems;  // beginnings that prompts share; empty: none do
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }
  std::uint64_t bits() { return random_(); }

 private:
  std::mt19937_64 random_;
};

// A rule whose allowed tokens hang on what was accepted and drafted, about seven in ten.
std::shared_ptr<TokenRule> make_test_rule(std::uint64_t seed, std::vector<std::int32_t> always);

std::function<Request()> random_request(Dice& dice, const RequestSpace& space);

// Turns the engine until every visit is over; cancels and joins at their turns. One sink a visit.
std::vector<std::shared_ptr<RecordingSink>> drive(Engine& engine, const std::vector<Visit>& visits);

// The visits' requests one at a time through `engine`, without drafts: what each must say.
std::vector<std::shared_ptr<RecordingSink>> drive_alone(Engine& engine, const std::vector<Visit>& visits);

// Empty when `got` is `alone`, or its beginning when `got` was cancelled; else what differs.
std::string difference(const RecordingSink& got, const RecordingSink& alone);

}  // namespace rondo::test
