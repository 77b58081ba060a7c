#include <fmt/format.h>

#include "ckpt/check.h"
#include "ckpt/checkpoint.h"
#include "ckpt/ngram_hash.h"

namespace rondo {

namespace {

Weight demand(const WeightSource& source, const std::string& name) {
  const auto weight = source.find_weight(name);
  CHECK(weight.has_value());
  return *weight;
}

// Rows [first, first + rows) of the matrix that stands at `index` of a stack [n, all_rows, columns].
Weight part(const Weight& stack, int index, std::int64_t first, std::int64_t rows) {
  const std::int64_t all_rows = stack.shape[1];
  CHECK(index >= 0 && index < stack.shape[0] && first + rows <= all_rows);
  return stack.row_range(index * all_rows + first, rows);
}

}  // namespace

ExpertWeights expert_weights(const WeightSource& source, const std::string& prefix, int expert) {
  const std::int64_t size = source.config().moe.expert_size, hidden = source.config().hidden_size;
  if (const auto gate_up = source.find_weight(prefix + ".experts.gate_up_proj")) {
    const Weight down = demand(source, prefix + ".experts.down_proj");
    return {part(*gate_up, expert, 0, size), part(*gate_up, expert, size, size), part(down, expert, 0, hidden)};
  }
  if (const auto gate = source.find_weight(stacked_name(prefix, "gate"))) {
    return {part(*gate, expert, 0, size), part(demand(source, stacked_name(prefix, "up")), expert, 0, size),
            part(demand(source, stacked_name(prefix, "down")), expert, 0, hidden)};
  }
  return {demand(source, expert_name(prefix, expert, "gate")), demand(source, expert_name(prefix, expert, "up")),
          demand(source, expert_name(prefix, expert, "down"))};
}

std::vector<Weight> ngram_table(const WeightSource& source, int layer) {
  const ModelConfig& config = source.config();
  const std::string prefix = fmt::format("layers.{}.ple.ple_embedding.ngram_embedding.", layer);
  std::vector<Weight> parts;
  if (const auto whole = source.find_weight(prefix + "weight")) {
    parts.push_back(*whole);
  } else {
    for (int k = 0; k < config.ngram.table_shards; ++k) {
      parts.push_back(demand(source, fmt::format("{}shard_{}.weight", prefix, k)));
    }
  }
  std::int64_t rows = 0;
  for (const Weight& each : parts) rows += each.shape[0];
  int ordinal = 0;
  while (config.ngram.layers[static_cast<std::size_t>(ordinal)] != layer) ++ordinal;
  CHECK(rows == ngram_hash(config, ordinal).padded_rows);
  return parts;
}

}  // namespace rondo
