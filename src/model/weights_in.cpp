#include "model/weights_in.h"

#include <vector>

namespace rondo {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kReportBytes = std::size_t{64} << 20;

std::vector<Tensor> mapped_matrices(const WeightSource& source) {
  const ModelConfig& config = source.config();
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : inventory(config, source.has_mtp())) {
    const bool elsewhere = spec.name.find("ngram_embedding") != std::string::npos ||  // stays in the file
                           spec.name.find(".mlp.experts.") != std::string::npos;  // below, whichever way it is stored
    const auto tensor = source.find(spec.name);
    if (tensor && !elsewhere && spec.tensor_class == TensorClass::Matrix) tensors.push_back(*tensor);
  }
  const auto add_experts = [&](const std::string& prefix) {
    for (int e = 0; e < config.moe.num_experts; ++e) {
      const ExpertWeights expert = expert_weights(source, prefix, e);
      tensors.insert(tensors.end(), {expert.gate, expert.up, expert.down});
    }
  };
  for (int i = 0; i < config.num_layers(); ++i) add_experts("layers." + std::to_string(i) + ".mlp");
  if (source.has_mtp()) add_experts("mtp.layers.0.mlp");
  return tensors;
}

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.num_elements()) * size_bytes(tensor.dtype);
}

}  // namespace

void read_weights_in(const WeightSource& source, const Progress& progress) {
  const std::vector<Tensor> tensors = mapped_matrices(source);
  std::size_t total = 0, done = 0, reported = 0;
  for (const Tensor& tensor : tensors) total += bytes_of(tensor);
  for (const Tensor& tensor : tensors) {
    const auto* bytes = tensor.as<volatile std::uint8_t>();
    for (std::size_t at = 0; at < bytes_of(tensor); at += kPageBytes) (void)bytes[at];
    done += bytes_of(tensor);
    if (progress && (done - reported >= kReportBytes || done == total)) {
      progress("weights", done, total);
      reported = done;
    }
  }
}

}  // namespace rondo
