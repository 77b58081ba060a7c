#include "model/weights_in.h"

namespace rondo {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kReportBytes = std::uint64_t{64} << 20;

struct Bytes {
  const std::uint8_t* data;
  std::uint64_t size;
};

// Codes, scales and biases of everything that one forward may read of the weights, but for the n-gram tables.
std::vector<Bytes> bytes_of(const std::vector<Weight>& weights) {
  std::vector<Bytes> bytes;
  for (const Weight& weight : weights) {
    const CodedView& view = weight.view;
    bytes.push_back({view.codes, static_cast<std::uint64_t>(view.rows * view.row_bytes)});
    if (view.scales != nullptr) bytes.push_back({view.scales, weight.scales_bytes()});
    if (view.biases != nullptr) bytes.push_back({view.biases, weight.scales_bytes()});
  }
  return bytes;
}

bool is_of_table(const std::string& name) { return name.find("ngram_embedding") != std::string::npos; }

}  // namespace

std::vector<Weight> mapped_weights(const WeightSource& source, Tables tables) {
  const ModelConfig& config = source.config();
  std::vector<Weight> weights;
  for (const TensorSpec& spec : inventory(config, source.has_mtp())) {
    // Experts and tables have several layouts.
    const bool elsewhere = is_of_table(spec.name) || spec.name.find(".mlp.experts.") != std::string::npos;
    if (elsewhere || spec.tensor_class != TensorClass::Matrix) continue;
    if (const auto weight = source.find_weight(spec.name)) weights.push_back(*weight);
  }
  const auto add_experts = [&](const std::string& prefix) {
    for (int e = 0; e < config.moe.num_experts; ++e) {
      const ExpertWeights expert = expert_weights(source, prefix, e);
      weights.insert(weights.end(), {expert.gate, expert.up, expert.down});
    }
  };
  for (int i = 0; i < config.num_layers(); ++i) add_experts("layers." + std::to_string(i) + ".mlp");
  if (source.has_mtp()) add_experts("mtp.layers.0.mlp");
  if (tables == Tables::Without) return weights;
  for (const int layer : config.ngram.layers) {
    const std::vector<Weight> table = ngram_table(source, layer);
    weights.insert(weights.end(), table.begin(), table.end());
  }
  return weights;
}

void read_weights_in(const WeightSource& source, const Progress& progress) {
  const std::vector<Bytes> all = bytes_of(mapped_weights(source, Tables::Without));
  std::uint64_t total = 0, done = 0, reported = 0;
  for (const Bytes& bytes : all) total += bytes.size;
  for (const Bytes& bytes : all) {
    const volatile std::uint8_t* data = bytes.data;
    for (std::uint64_t at = 0; at < bytes.size; at += kPageBytes) (void)data[at];
    done += bytes.size;
    if (progress && (done - reported >= kReportBytes || done == total)) {
      progress("weights", done, total);
      reported = done;
    }
  }
}

}  // namespace rondo
