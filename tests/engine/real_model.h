// Checkpoints that are really run: the four fixtures, whose weights are random, and the bundled model.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "model/model.h"

namespace rondo::test {

struct RealModel {
  std::string name, folder;
  bool has_tokenizer;
  Isa isa = best_isa();
};

inline void PrintTo(const RealModel& model, std::ostream* out) { *out << model.name; }

inline std::vector<RealModel> real_models() {
  std::vector<RealModel> all;
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"})
    all.push_back({fixture, std::string(RONDO_FIXTURES) + "/" + fixture, false});
  all.push_back({"bundled", RONDO_BUNDLED_MODEL, true});
  if (has_isa(Isa::Sm90)) {  // the same on a GPU, where there is one
    for (std::size_t i = 0, models = all.size(); i < models; ++i) {
      all.push_back(all[i]);
      all.back().name += "_on_the_gpu";
      all.back().isa = Isa::Sm90;
    }
  }
  return all;
}

// Costs that make every draft pay (flat forwards, a head for nothing), or few.
inline CostTables costs_of(const ModelFacts& facts, double row_ms, double head_ms) {
  CostTables costs;
  costs.context_tokens[1] = facts.context_tokens;
  for (auto& table : costs.verify_ms) {
    for (int rows = 0; rows <= facts.max_rows; ++rows) table.push_back(1000 + row_ms * rows);
  }
  costs.absorb_ms.assign(static_cast<std::size_t>(facts.max_rows) + 1, head_ms);
  costs.level_ms.assign(static_cast<std::size_t>(facts.max_streams) + 1, head_ms);
  return costs;
}

}  // namespace rondo::test
