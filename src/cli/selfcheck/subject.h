// What is checked: a model, seen through the contract of model/model.h alone, and ids to make rows and prompts of.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace rondo {

inline constexpr int kCheckedStreams = 16;
inline constexpr int kCheckedDepth = 8;
inline constexpr int kSmallestContext = 160;  // positions the checks need of one sequence

struct Subject {
  Model& model;
  std::vector<std::int32_t> text;

  // Ids from anywhere in the text, the same for the same arguments.
  std::vector<std::int32_t> ids(std::uint64_t key, int count) const;
};

// The settings that sequence or request i draws with: greedy and sampled, with every one that shapes a draw among them.
DrawSettings settings(int i, int vocab_size);
inline bool is_greedy(int i) { return i % 8 == 0 || i % 8 == 3 || i % 8 == 6; }

bool same_bits(float a, float b);
bool same_bits(const RowLogprobs& a, const RowLogprobs& b);

}  // namespace rondo
