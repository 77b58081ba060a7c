// Checks what the files hold against the inventory of the config: every tensor there, of an accepted dtype for its
// class, of the right shape, aligned for its dtype; either expert layout and either table layout.
#pragma once

#include "ckpt/shards.h"

namespace rondo {

struct CheckedTensors {
  ByName<Tensor> tensors;  // canonical names, those that passed
  bool has_mtp = false;
};

CheckedTensors check_tensors(const ModelConfig& config, const ShardSet& set, ProblemLog& log);

// The parts of one layer's routed experts where they are stored one by one: gate, up and down of each.
std::string expert_name(std::string_view prefix, int expert, std::string_view part);

}  // namespace rondo
