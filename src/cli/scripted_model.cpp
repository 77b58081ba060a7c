#include "cli/scripted_model.h"

#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace rondo {

namespace {

constexpr std::uint64_t kScriptKey = 0x5C819;  // keeps the script's draws apart from the noise tokens are drawn with

}  // namespace

int scripted_run(std::span<const double> survival, std::uint64_t seed, std::size_t position) {
  const double drawn = unit_interval(random_bits(kScriptKey, seed, position));
  int right = 0;
  while (right < static_cast<int>(survival.size()) && drawn < survival[static_cast<std::size_t>(right)]) ++right;
  return right;
}

ScriptedModel::ScriptedModel(Model& model, std::vector<double> survival)
    : CountingModel(model), survival_(std::move(survival)) {
  double before = 1;
  for (const double chance : survival_) {
    CHECK(chance > 0 && chance <= before);
    before = chance;
  }
  scripts_.reserve(static_cast<std::size_t>(facts().max_streams));
  drafts_.reserve(static_cast<std::size_t>(facts().max_streams));
}

void ScriptedModel::set_continuation(std::uint64_t seed, std::vector<std::int32_t> tokens) {
  continuations_[seed] = std::move(tokens);
}

std::span<const Drawn> ScriptedModel::draft_first(std::span<const DraftStream> streams) {
  const std::span<const Drawn> drawn = CountingModel::draft_first(streams);
  scripts_.clear();
  drafts_.clear();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::uint64_t seed = streams[i].draw->seed;
    const std::size_t position = streams[i].generated.size();
    const auto known = continuations_.find(seed);
    scripts_.push_back({.continuation = known == continuations_.end() ? nullptr : &known->second,
                        .position = position,
                        .right = scripted_run(survival_, seed, position),
                        .depth = 0});
    drafts_.push_back(next_draft(scripts_.back(), drawn[i]));
  }
  return drafts_;
}

std::span<const Drawn> ScriptedModel::draft_next(std::span<const int> still_drafting) {
  const std::span<const Drawn> drawn = CountingModel::draft_next(still_drafting);
  for (const int stream : still_drafting) {
    const auto i = static_cast<std::size_t>(stream);
    drafts_[i] = next_draft(scripts_[i], drawn[i]);
  }
  return drafts_;
}

Drawn ScriptedModel::next_draft(Script& script, Drawn drawn) const {
  const int depth = ++script.depth;
  if (script.continuation == nullptr) return drawn;
  const auto d = static_cast<std::size_t>(depth);
  const std::size_t at = script.position + d - 1;
  // Past the recorded text nothing is known to be right; no window reaches there.
  const std::int32_t truth = at < script.continuation->size() ? (*script.continuation)[at] : 0;
  const double chance = d > survival_.size() ? 0 : survival_[d - 1] / (d == 1 ? 1 : survival_[d - 2]);
  return {.token = depth <= script.right ? truth : (truth + 1) % facts().vocab_size,
          .probability = static_cast<float>(chance)};
}

}  // namespace rondo
