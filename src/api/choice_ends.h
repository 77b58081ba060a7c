// ChoiceEnds: how the choices of one reply ended, added up for its usage and its `rondo` object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"

namespace rondo {

class ChoiceEnds {
 public:
  // choices_a_prompt: that many in a row have one prompt, which counts once.
  ChoiceEnds(int num_choices, int choices_a_prompt)
      : choices_a_prompt_(choices_a_prompt), token_shas_(static_cast<std::size_t>(num_choices)) {}

  void add(int choice, const EndEvent& end);
  bool is_complete() const { return num_ended_ == token_shas_.size(); }
  const Usage& usage() const { return usage_; }
  // token_sha of a lone choice; of several, token_shas by index, and the counters of all.
  json::Object render_rondo(std::int64_t seed, const std::string& arithmetic) const;

 private:
  int choices_a_prompt_;
  std::size_t num_ended_ = 0;
  std::vector<std::string> token_shas_;
  Usage usage_;
};

}  // namespace rondo
