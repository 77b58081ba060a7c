#include "api/choice_ends.h"

#include <utility>

namespace rondo {

void ChoiceEnds::add(int choice, const EndEvent& end) {
  ++num_ended_;
  token_shas_[static_cast<std::size_t>(choice)] = end.token_sha;
  if (choice % choices_a_prompt_ == 0) {
    usage_.prompt_tokens += end.usage.prompt_tokens;
    usage_.cached_tokens += end.usage.cached_tokens;
  }
  usage_.completion_tokens += end.usage.completion_tokens;
  usage_.rounds += end.usage.rounds;
  usage_.drafted += end.usage.drafted;
  usage_.accepted += end.usage.accepted;
}

json::Object ChoiceEnds::render_rondo(std::int64_t seed, const std::string& arithmetic) const {
  json::Object out;
  if (token_shas_.size() == 1) {
    out["token_sha"] = token_shas_[0];
  } else {
    out["token_shas"] = json::Array(token_shas_.begin(), token_shas_.end());
  }
  out["rounds"] = usage_.rounds;
  out["drafted"] = usage_.drafted;
  out["accepted"] = usage_.accepted;
  out["seed"] = seed;
  out["arithmetic"] = arithmetic;
  return out;
}

}  // namespace rondo
