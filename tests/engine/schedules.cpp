#include "tests/engine/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "engine/thinking_budget.h"

namespace rondo::test {

namespace {

class TestRule final : public TokenRule {
 public:
  void reserve(int) override {}
  TestRule(std::uint64_t seed, std::vector<std::int32_t> always) : state_(seed), always_(std::move(always)) {}

  void allow_after(std::span<const std::int32_t> drafts, std::span<std::uint32_t> mask) override {
    std::uint64_t state = state_;
    for (const std::int32_t draft : drafts) state = next(state, draft);
    for (std::size_t word = 0; word < mask.size(); ++word) {
      CHECK(mask[word] == 0);
      const std::uint64_t a = random_bits(state, word, 1), b = random_bits(state, word, 2);
      mask[word] = static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b);  // three in four
    }
    for (const std::int32_t id : always_)
      mask[static_cast<std::size_t>(id) / 32] |= 1u << (static_cast<std::uint32_t>(id) % 32);
  }
  void accept(std::int32_t token) override { state_ = next(state_, token); }

 private:
  static std::uint64_t next(std::uint64_t state, std::int32_t token) {
    return random_bits(state, static_cast<std::uint64_t>(token), 5);
  }
  std::uint64_t state_;
  std::vector<std::int32_t> always_;
};

DrawSettings random_draw(Dice& dice, const RequestSpace& space) {
  DrawSettings draw;
  draw.temperature = dice.chance(40) ? 0.0F : dice.chance(50) ? 0.7F : 1.2F;
  draw.seed = dice.bits();
  if (dice.chance(30)) draw.top_k = dice.between(1, 40);
  if (dice.chance(30)) draw.top_p = 0.9F;
  if (dice.chance(30)) draw.min_p = 0.02F;
  if (dice.chance(25)) draw.presence_penalty = 0.7F;
  if (dice.chance(25)) draw.frequency_penalty = 0.4F;
  for (int n = dice.chance(40) ? dice.between(1, 3) : 0; n > 0; --n)
    draw.bias.push_back({dice.pick(space.alphabet), space.bias});
  return draw;
}

std::string ids_in_words(const std::vector<std::int32_t>& ids) { return fmt::format("{}", fmt::join(ids, " ")); }

}  // namespace

std::shared_ptr<TokenRule> make_test_rule(std::uint64_t seed, std::vector<std::int32_t> always) {
  return std::make_shared<TestRule>(seed, std::move(always));
}

std::function<Request()> random_request(Dice& dice, const RequestSpace& space) {
  Request request;
  int prompt = dice.between(1, space.most_prompt);
  if (!space.stems.empty() && dice.chance(75)) {
    const auto& stem = dice.pick(space.stems);
    const int most = std::min(static_cast<int>(stem.size()), space.context_tokens - 2);
    const int shared = dice.chance(60) ? most : dice.between(1, most);
    request.prompt_ids.assign(stem.begin(), stem.begin() + shared);
    prompt = std::clamp(prompt - shared, dice.below(2), space.context_tokens - 1 - shared);
  }
  for (int i = 0; i < prompt; ++i) request.prompt_ids.push_back(dice.pick(space.alphabet));
  prompt = static_cast<int>(request.prompt_ids.size());
  request.max_tokens = dice.between(1, std::min(space.most_reply, space.context_tokens - prompt));
  if (dice.chance(10)) {  // to the last position of the context
    request.prompt_ids.resize(static_cast<std::size_t>(space.context_tokens - request.max_tokens),
                              request.prompt_ids[0]);
  }
  request.draw = random_draw(dice, space);
  if (dice.chance(40) && !space.end_ids.empty()) request.end_ids.push_back(dice.pick(space.end_ids));
  for (int n = space.stops.empty() ? 0 : dice.below(3); n > 0; --n)
    request.stop_strings.push_back(dice.pick(space.stops));
  request.skip_special = dice.chance(50);
  request.max_draft_depth = dice.chance(20) ? 0 : dice.between(1, 8);
  request.num_top_logprobs = dice.chance(30) ? dice.below(6) : -1;
  request.use_prefix_cache = !dice.chance(10);
  const bool has_rule = space.rules && dice.chance(30);
  const std::uint64_t rule_seed = dice.bits();
  const std::int32_t always = space.alphabet[0];
  const int budget = space.rules && dice.chance(20) ? dice.below(8) : -1;
  const std::vector<std::int32_t> closing = {always, dice.pick(space.alphabet), dice.pick(space.alphabet)};
  return [=] {
    Request made = request;
    if (has_rule) made.rule = make_test_rule(rule_seed, {always});
    if (budget >= 0) made.rule = std::make_shared<ThinkingBudget>(budget, closing, closing.back(), made.rule);
    return made;
  };
}

std::vector<std::shared_ptr<RecordingSink>> drive(Engine& engine, const std::vector<Visit>& visits) {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::vector<RequestId> ids(visits.size());
  for (std::size_t i = 0; i < visits.size(); ++i) sinks.push_back(std::make_shared<RecordingSink>());
  const auto all_over = [&] {
    return std::all_of(sinks.begin(), sinks.end(), [](const auto& s) { return s->is_over(); });
  };
  for (int turn = 0; !all_over(); ++turn) {
    CHECK(turn < 20'000);  // else somebody starves
    for (std::size_t i = 0; i < visits.size(); ++i) {
      if (visits[i].joins_at == turn) {
        const auto id = engine.submit(visits[i].request(), sinks[i]);
        CHECK(id.has_value());
        ids[i] = *id;
      }
      if (visits[i].leaves_at == turn) engine.cancel(ids[i]);
    }
    engine.turn();
  }
  engine.turn();  // the places of the last are free again
  return sinks;
}

std::vector<std::shared_ptr<RecordingSink>> drive_alone(Engine& engine, const std::vector<Visit>& visits) {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (const Visit& visit : visits) {
    Visit alone{visit.request};
    sinks.push_back(drive(engine, {alone})[0]);
  }
  return sinks;
}

std::string difference(const RecordingSink& got, const RecordingSink& alone) {
  if (!alone.end) return "alone it did not end";
  if (got.failed) {
    if (got.failed->code != ErrorCode::Cancelled) return "it failed: " + got.failed->message;
    const bool begins = got.ids.size() <= alone.ids.size() &&
                        std::equal(got.ids.begin(), got.ids.end(), alone.ids.begin()) &&
                        alone.text.starts_with(got.text);
    return begins
               ? ""
               : fmt::format("cancelled, but [{}] does not begin [{}]", ids_in_words(got.ids), ids_in_words(alone.ids));
  }
  if (got.ids != alone.ids) return fmt::format("ids [{}], alone [{}]", ids_in_words(got.ids), ids_in_words(alone.ids));
  if (got.text != alone.text) return fmt::format("text {:?}, alone {:?}", got.text, alone.text);
  if (got.end->reason != alone.end->reason || got.end->stop_string != alone.end->stop_string ||
      got.end->token_sha != alone.end->token_sha)
    return "another end";
  if (got.end->usage.completion_tokens != static_cast<int>(got.ids.size()) ||
      got.end->usage.prompt_tokens != alone.end->usage.prompt_tokens)
    return "another usage";
  if (got.logprobs.size() != alone.logprobs.size()) return "as many logprobs";
  for (std::size_t i = 0; i < got.logprobs.size(); ++i) {
    const RowLogprobs &a = got.logprobs[i], &b = alone.logprobs[i];
    const auto n = static_cast<std::size_t>(a.num_top);
    if (a.num_top != b.num_top || std::memcmp(&a.chosen, &b.chosen, sizeof a.chosen) != 0 ||
        std::memcmp(a.top_ids, b.top_ids, n * sizeof a.top_ids[0]) != 0 ||
        std::memcmp(a.top, b.top, n * sizeof a.top[0]) != 0)
      return fmt::format("logprobs of token {}", i);
  }
  return "";
}

}  // namespace rondo::test
