// The draft law and the row law as the engine keeps them, on a fake model and a fake clock: thousands of random
// schedules, and every request says what it says alone and undrafted.

#include <gtest/gtest.h>

#include "engine/decision_log.h"
#include "engine/round_costs.h"
#include "tests/engine/fake_model.h"
#include "tests/engine/schedules.h"
#include "tests/text/tiny_tokenizer.h"

namespace rondo::test {
namespace {

#ifdef RONDO_SANITIZED
constexpr int kSchedules = 300;
#else
constexpr int kSchedules = 4000;
#endif

const Tokenizer& tokenizer() {
  static const Tokenizer tiny = tiny_tokenizer();
  return tiny;
}

// Letters, pieces of code points, merges, special tokens, and ids without bytes: stop strings and end tokens come by.
const std::vector<std::int32_t> kAlphabet = {'a', 'b', 'o',    ' ',      0xC3,   0xA9, 0xE2, 0x82, 0xAC,
                                             kLo, kHe, kHello, kImStart, kThink, 270,  271,  'x',  'y'};

RequestSpace space() {
  RequestSpace s;
  s.alphabet = kAlphabet;
  s.end_ids = {kImStart, 271, 'x'};
  s.stops = {"ab", "loa", "\xC3\xA9", " he", "<think>a", "yyy", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"};
  return s;
}

// Costs of all characters: unpriced, drafting for nothing, dear, a staircase, random slopes.
CostTables random_costs(Dice& dice, const FakeOptions& options) {
  CostTables costs;
  const int kind = dice.below(6);
  if (kind == 0) return costs;
  const double row = kind == 1 ? 0 : kind == 2 ? 5 : 0.1 * dice.between(0, 9);
  costs.context_tokens[0] = 16;
  costs.context_tokens[1] = options.context_tokens;
  for (int i = 0; i < 2; ++i) {
    for (int rows = 0; rows <= options.max_rows; ++rows)
      costs.verify_ms[i].push_back(5 + i + row * (kind == 3 ? rows / 8 * 8 : rows));
  }
  if (!options.has_head) return costs;
  const double head = kind == 1 ? 0 : 0.1 * dice.between(0, 9);
  for (int rows = 0; rows <= options.max_rows; ++rows) costs.absorb_ms.push_back(head * (1 + 0.05 * rows));
  for (int streams = 0; streams <= options.max_streams; ++streams) costs.level_ms.push_back(head * (1 + 0.1 * streams));
  return costs;
}

FakeOptions random_options(Dice& dice) {
  FakeOptions options;
  options.max_streams = dice.chance(20) ? 1 : dice.chance(20) ? 32 : dice.between(2, 12);
  options.max_rows = options.max_streams + dice.below(30);
  options.max_drafts = dice.between(1, 8);
  options.block_tokens = dice.between(1, 9);
  const int each = (options.context_tokens + options.block_tokens - 1) / options.block_tokens;
  options.num_blocks = dice.chance(50) ? 0 : dice.between(each, each * options.max_streams);
  options.head_buffer_rows = dice.between(1, 12);
  options.has_head = dice.chance(90);
  options.num_states = dice.chance(20) ? 0 : dice.between(1, 12);
  if (options.num_states > 0 && options.num_blocks == 0 && dice.chance(70))
    options.num_blocks = each * options.max_streams + dice.below(3 * each);
  options.grid = dice.chance(80) ? 1 : 1 << dice.between(1, 3);
  options.max_rows = std::max(options.max_rows, options.grid);
  options.head_right = dice.chance(20) ? 0.1 : dice.chance(30) ? 0.95 : 0.7;
  options.alphabet = kAlphabet;
  options.costs = random_costs(dice, options);
  return options;
}

// Some prompts begin alike, and some are what was said before and more: the next turn of a conversation.
std::vector<Visit> random_visits(Dice& dice, int streams, Engine& lone) {
  std::vector<Visit> visits;
  RequestSpace drawn = space();
  for (int n = dice.below(4); n > 0; --n) {
    drawn.stems.emplace_back();
    for (int i = dice.between(1, 40); i > 0; --i) drawn.stems.back().push_back(dice.pick(kAlphabet));
  }
  for (int n = dice.between(1, 2 + streams + streams / 2); n > 0; --n) {
    Visit visit{random_request(dice, drawn), dice.below(40)};
    if (dice.chance(15)) visit.leaves_at = visit.joins_at + dice.below(30);
    if (dice.chance(25)) {
      const Request asked = visit.request();
      std::vector<std::int32_t> said = asked.prompt_ids;
      const auto reply = drive_alone(lone, {visit})[0]->ids;
      said.insert(said.end(), reply.begin(), reply.end());
      drawn.stems.push_back(said);
    }
    visits.push_back(std::move(visit));
  }
  return visits;
}

FakeOptions lone_options(int grid) {
  FakeOptions options;
  options.grid = grid;
  options.max_streams = 1;
  options.max_rows = 64;
  options.has_head = false;
  options.alphabet = kAlphabet;
  return options;
}

enum class Plant { None, Neighbour, SharedTooFar, EarlyState };

struct Tally {
  std::uint64_t hits = 0, cached = 0, saved = 0, completed = 0, cancelled = 0, drafted = 0, accepted = 0, stops = 0;
};

// What went wrong with schedule `seed`; empty when nothing did.
std::string run_schedule(std::uint64_t seed, Tally& tally, Plant plant = Plant::None) {
  Dice dice(seed);
  const FakeOptions options = random_options(dice);
  FakeClock clock;
  FakeModel model(options, clock), lone_model(lone_options(options.grid), clock);
  model.plant_neighbour = plant == Plant::Neighbour;
  model.plant_shared_too_far = plant == Plant::SharedTooFar;
  model.plant_early_state = plant == Plant::EarlyState;
  EngineOptions engine_options;
  engine_options.logged_rounds = 512;
  engine_options.least_shared_tokens = dice.between(1, 16);
  engine_options.step_tokens = dice.between(4, 40);
  engine_options.stall_ms = dice.between(1, 60);
  Engine engine(model, &tokenizer(), options.costs, clock, engine_options);
  Engine lone(lone_model, &tokenizer(), {}, clock, {});
  const std::vector<Visit> visits = random_visits(dice, options.max_streams, lone);
  const auto got = drive(engine, visits), alone = drive_alone(lone, visits);
  for (std::size_t i = 0; i < visits.size(); ++i) {
    const std::string differs = difference(*got[i], *alone[i]);
    if (!differs.empty()) return "request " + std::to_string(i) + ": " + differs;
    ++(got[i]->end ? tally.completed : tally.cancelled);
    if (!got[i]->end) continue;
    tally.drafted += static_cast<std::uint64_t>(got[i]->end->usage.drafted);
    tally.accepted += static_cast<std::uint64_t>(got[i]->end->usage.accepted);
    if (got[i]->end->stop_string) ++tally.stops;
    const int cached = got[i]->end->usage.cached_tokens;
    if (cached > 0 && !visits[i].request().use_prefix_cache) return "a hit for who wants none";
    tally.cached += static_cast<std::uint64_t>(cached);
    if (visits[i].request().max_draft_depth == 0 && got[i]->end->usage.drafted > 0) return "drafts for who wants none";
  }
  if (model.num_held_slots() != 0 || engine.status().running != 0 || engine.status().queued != 0)
    return "a place was not given back";
  if (engine.status().blocks_held != 0) return "a block was not given back";
  tally.hits += engine.status().work.prefix_hits;
  tally.saved += engine.status().work.states_saved;
  if (engine.status().work.completion_tokens > 0 && engine.log().rounds().empty()) return "nothing was logged";
  for (const RoundRecord* record : engine.log().rounds()) {
    if (replay(*record, engine.costs()) != record->drafts) return "a round is decided otherwise on replay";
    if (record->rows > options.max_rows) return "a round wider than there is room for";
  }
  return "";
}

TEST(Schedules, EveryRequestSaysWhatItSaysAloneAndUndrafted) {
  Tally tally;
  for (int seed = 0; seed < kSchedules; ++seed) {
    const std::string wrong = run_schedule(static_cast<std::uint64_t>(seed), tally);
    ASSERT_EQ(wrong, "") << "schedule " << seed;
  }
  // What the schedules were meant to meet, they met.
  EXPECT_GT(tally.completed, tally.cancelled);
  EXPECT_GT(tally.cancelled, 100u);
  EXPECT_GT(tally.accepted, tally.drafted / 4);
  EXPECT_GT(tally.drafted, tally.accepted + tally.accepted / 10);
  EXPECT_GT(tally.stops, 100u);
  EXPECT_GT(tally.hits, tally.completed / 8);
  printf(
      "%llu completed, %llu cancelled, %llu of %llu drafts kept, %llu stop strings; %llu hits of %llu tokens, %llu "
      "states\n",
      static_cast<unsigned long long>(tally.completed), static_cast<unsigned long long>(tally.cancelled),
      static_cast<unsigned long long>(tally.accepted), static_cast<unsigned long long>(tally.drafted),
      static_cast<unsigned long long>(tally.stops), static_cast<unsigned long long>(tally.hits),
      static_cast<unsigned long long>(tally.cached), static_cast<unsigned long long>(tally.saved));
}

// Planted controls: a block shared one token too far is written by two sequences; a state taken before the last row was
// accepted is not the past of what follows. The fake model's own checks see both.
TEST(SchedulesDeathTest, ABlockSharedOneTokenTooFarIsSeen) {
  Tally tally;
  EXPECT_DEATH(
      {
        for (std::uint64_t seed = 0; seed < 200; ++seed) run_schedule(seed, tally, Plant::SharedTooFar);
      },
      "readers == 0");
}

TEST(SchedulesDeathTest, AStateTakenBeforeTheLastRowWasAcceptedIsSeen) {
  Tally tally;
  EXPECT_DEATH(
      {
        for (std::uint64_t seed = 0; seed < 200; ++seed) run_schedule(seed, tally, Plant::EarlyState);
      },
      "== history");
}

// Planted control: the comparison sees a model whose rows hang on their neighbours.
TEST(Schedules, ADrawThatHangsOnANeighbourIsSeen) {
  Tally tally;
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) seen += run_schedule(seed, tally, Plant::Neighbour).empty() ? 0 : 1;
  EXPECT_GT(seen, 25);
}

}  // namespace
}  // namespace rondo::test
