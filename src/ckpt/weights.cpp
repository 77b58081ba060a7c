#include <fmt/format.h>

#include "ckpt/check.h"
#include "ckpt/checkpoint.h"
#include "ckpt/ngram_hash.h"

namespace rondo {

namespace {

// Rows [first, first + rows) of the matrix that stands at `index` of a stack [n, all_rows, columns].
Tensor slice(const Tensor& stack, int index, std::int64_t first, std::int64_t rows) {
  const std::int64_t all_rows = stack.shape[1], columns = stack.shape[2];
  CHECK(index >= 0 && index < stack.shape[0] && first + rows <= all_rows);
  const auto offset = static_cast<std::size_t>((index * all_rows + first) * columns) * size_bytes(stack.dtype);
  return {static_cast<const std::byte*>(stack.data) + offset, stack.dtype, Shape{rows, columns}};
}

Tensor demand(const WeightSource& source, const std::string& name) {
  const auto tensor = source.find(name);
  CHECK(tensor.has_value());
  return *tensor;
}

}  // namespace

ExpertWeights expert_weights(const WeightSource& source, const std::string& prefix, int expert) {
  const std::int64_t size = source.config().moe.expert_size, hidden = source.config().hidden_size;
  if (const auto gate_up = source.find(prefix + ".experts.gate_up_proj")) {
    const Tensor down = demand(source, prefix + ".experts.down_proj");
    return {slice(*gate_up, expert, 0, size), slice(*gate_up, expert, size, size), slice(down, expert, 0, hidden)};
  }
  return {demand(source, expert_name(prefix, expert, "gate")), demand(source, expert_name(prefix, expert, "up")),
          demand(source, expert_name(prefix, expert, "down"))};
}

std::vector<Tensor> ngram_table(const WeightSource& source, int layer) {
  const ModelConfig& config = source.config();
  const std::string prefix = fmt::format("layers.{}.ple.ple_embedding.ngram_embedding.", layer);
  std::vector<Tensor> parts;
  if (const auto whole = source.find(prefix + "weight")) {
    parts.push_back(*whole);
  } else {
    for (int k = 0; k < config.ngram.table_shards; ++k) {
      parts.push_back(demand(source, fmt::format("{}shard_{}.weight", prefix, k)));
    }
  }
  std::int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape[0];
  int ordinal = 0;
  while (config.ngram.layers[static_cast<std::size_t>(ordinal)] != layer) ++ordinal;
  CHECK(rows == ngram_hash(config, ordinal).padded_rows);
  return parts;
}

}  // namespace rondo
