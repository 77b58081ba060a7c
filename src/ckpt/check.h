// Checks what the files hold against the inventory of the config: every tensor there, of an accepted dtype for its
// class, of the right shape, aligned for its dtype; a matrix in any format; any expert layout and any table layout.
#pragma once

#include "ckpt/shards.h"

namespace rondo {

struct CheckedTensors {
  ByName<Tensor> tensors;                 // canonical names, those that passed: vectors and integers
  ByName<Weight> weights;                 // matrices
  std::unordered_set<std::string> parts;  // canonical names of scales and biases that belong to a matrix
  bool has_mtp = false;
  bool main_gains_hold_one = false, head_gains_hold_one = false;
};

CheckedTensors check_tensors(const ModelConfig& config, const ShardSet& set, ProblemLog& log);

// The parts of one layer's routed experts where they are stored one by one: gate, up and down of each.
std::string expert_name(std::string_view prefix, int expert, std::string_view part);
// All of one layer's, as MLX stacks them: [experts, out, in] each.
std::string stacked_name(std::string_view prefix, std::string_view part);

}  // namespace rondo
