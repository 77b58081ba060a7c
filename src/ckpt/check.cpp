#include "ckpt/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "ckpt/formats.h"
#include "ckpt/ngram_hash.h"

namespace rondo {

namespace {

using Kind = ProblemLog::Kind;

constexpr int kMaxAbsentExperts = 100;  // of one layer, then no further ones are looked for: a config may ask for many
constexpr std::string_view kGateUp = "experts.gate_up_proj";
constexpr std::string_view kDown = "experts.down_proj";
constexpr std::string_view kShard = "ngram_embedding.shard_";

bool accepts(TensorClass tensor_class, DType dtype) {
  if (tensor_class == TensorClass::Integers) return dtype == DType::I64;
  return dtype == DType::BF16 || dtype == DType::F16 || dtype == DType::F32;
}

std::string_view accepted_names(TensorClass tensor_class) {
  return tensor_class == TensorClass::Integers ? "I64" : "BF16, F16 or F32";
}

// A convolution's weight as MLX stores it, [channels, kernel, 1]: the same numbers in the same order.
bool is_turned_conv(const TensorSpec& spec, const Shape& stored) {
  return spec.name.ends_with("conv1d.weight") && stored == Shape{spec.shape[0], spec.shape[2], 1};
}

// A norm whose gain is stored as its distance from one.
bool is_centred_gain(const TensorSpec& spec) {
  return spec.tensor_class == TensorClass::Vector && spec.name.find("norm") != std::string::npos &&
         !spec.name.ends_with("linear_attn.norm.weight");
}

class Checker {
 public:
  Checker(const ModelConfig& config, const ShardSet& set, ProblemLog& log) : config_(config), set_(set), log_(log) {}

  CheckedTensors run() && {
    const std::vector<TensorSpec> specs = inventory(config_, true);
    find_single_experts();
    checked_.has_mtp = std::any_of(specs.begin(), specs.end(), [this](const TensorSpec& spec) {
      return spec.name.starts_with("mtp.") && (holds(spec.name) || set_.accounted.contains(spec.name));
    });
    for (const TensorSpec& spec : specs) {
      if (!spec.name.starts_with("mtp.") || checked_.has_mtp) check(spec);
    }
    for (int p = 0; p < static_cast<int>(config_.ngram.layers.size()); ++p) check_hash(p);
    if (config_.quantization == kMlx) find_gains_with_one(specs);
    return std::move(checked_);
  }

 private:
  bool holds(std::string_view name) const { return set_.tensors.find(name) != set_.tensors.end(); }

  void check(const TensorSpec& spec) {
    if (holds(spec.name)) return check_found(spec);
    if (spec.tensor_class == TensorClass::Integers) return;  // computed instead
    if (spec.name.ends_with(kGateUp) || spec.name.ends_with(kDown)) return check_experts(spec);
    if (spec.name.find(kShard) != std::string::npos) return check_table(spec);
    report_missing(spec.name);
  }

  void check_found(const TensorSpec& spec) {
    const FoundTensor& found = set_.tensors.find(spec.name)->second;
    const StoredTensor& stored = *found.stored;
    const std::string& file = found.shard->file;
    if (spec.tensor_class == TensorClass::Matrix) {
      if (auto weight = read_weight(config_, set_, spec, log_, checked_.parts)) {
        checked_.weights.emplace(spec.name, *weight);
      }
    } else if (!accepts(spec.tensor_class, stored.dtype)) {
      log_.add(file, Kind::DType,
               fmt::format("tensor {} is {}, expected {}", stored.name, dtype_name(stored.dtype),
                           accepted_names(spec.tensor_class)),
               ErrorCode::Unsupported);
    } else if (stored.shape != spec.shape && !is_turned_conv(spec, stored.shape)) {
      log_.add(file, Kind::Shape,
               fmt::format("tensor {} has shape {}, config.json asks for {}", stored.name, stored.shape.to_string(),
                           spec.shape.to_string()));
    } else if (stored.begin % size_bytes(stored.dtype) != 0) {
      log_.add(file, Kind::Alignment,
               fmt::format("tensor {} begins at byte {}, which is not aligned for {}", stored.name, stored.begin,
                           dtype_name(stored.dtype)));
    } else {
      checked_.tensors.emplace(spec.name, Tensor{found.data(), stored.dtype, spec.shape});
    }
  }

  void report_missing(const std::string& name) {
    if (set_.may_hold_more || set_.accounted.contains(name)) return;
    log_.add(set_.list_file, Kind::Missing, fmt::format("tensor {} is missing", name));
  }

  // A stacked tensor is not there: the layer's experts are stacked as MLX does, or stand one by one, or it is missing.
  // Layers that hold either stacked tensor are stacked, so that one half of a pair is not looked for under other names.
  void check_experts(const TensorSpec& spec) {
    const bool is_down = spec.name.ends_with(kDown);
    const std::string prefix = spec.name.substr(0, spec.name.size() - (is_down ? kDown : kGateUp).size() - 1);
    const std::string other = fmt::format("{}.{}", prefix, is_down ? kGateUp : kDown);
    const std::int64_t size = config_.moe.expert_size, hidden = config_.hidden_size, experts = config_.moe.num_experts;
    if (holds(stacked_name(prefix, "gate")) || holds(stacked_name(prefix, "down"))) {
      if (is_down) return void(absent({stacked_name(prefix, "down"), {experts, hidden, size}, TensorClass::Matrix}));
      absent({stacked_name(prefix, "gate"), {experts, size, hidden}, TensorClass::Matrix});
      absent({stacked_name(prefix, "up"), {experts, size, hidden}, TensorClass::Matrix});
      return;
    }
    if (holds(other) || set_.accounted.contains(spec.name) || !single_experts_.contains(prefix)) {
      return report_missing(spec.name);
    }
    int num_absent = 0;
    for (int expert = 0; expert < experts && num_absent <= kMaxAbsentExperts; ++expert) {
      if (is_down) {
        num_absent += absent({expert_name(prefix, expert, "down"), {hidden, size}, TensorClass::Matrix});
      } else {
        num_absent += absent({expert_name(prefix, expert, "gate"), {size, hidden}, TensorClass::Matrix});
        num_absent += absent({expert_name(prefix, expert, "up"), {size, hidden}, TensorClass::Matrix});
      }
    }
  }

  // "layers.3.mlp" of each layer that holds "layers.3.mlp.experts.7.up_proj.weight" or the like.
  void find_single_experts() {
    constexpr std::string_view kExperts = ".experts.";
    const auto look_at = [&](std::string_view name) {
      const std::size_t at = name.find(kExperts);
      if (at == name.npos || at + kExperts.size() == name.size()) return;
      const char first = name[at + kExperts.size()];
      if (first >= '0' && first <= '9') single_experts_.emplace(name.substr(0, at));
    };
    for (const auto& [name, found] : set_.tensors) look_at(name);
    for (const std::string& name : set_.accounted) look_at(name);
  }

  // Checks it where it is there; 1 where it is not, and then that is said.
  int absent(const TensorSpec& spec) {
    if (holds(spec.name)) {
      check_found(spec);
      return 0;
    }
    report_missing(spec.name);
    return 1;
  }

  // A table shard is not there: the table may be whole, under the name without the shard.
  void check_table(const TensorSpec& spec) {
    const std::size_t at = spec.name.find(kShard);
    const std::string whole = spec.name.substr(0, at) + "ngram_embedding.weight";
    if (!holds(whole) && !set_.accounted.contains(whole)) return report_missing(spec.name);
    const bool is_first = spec.name.substr(at + kShard.size()) == "0.weight";
    if (!is_first) return;  // checked once, at the first shard's turn
    const Shape shape{spec.shape[0] * config_.ngram.table_shards, spec.shape[1]};
    absent({whole, shape, TensorClass::Matrix});
  }

  // MLX files hold zero-centred gains as they are or with the one added, and do not say which: trained ones lie near 0
  // or near 1. The head may have come from elsewhere than the rest.
  void find_gains_with_one(const std::vector<TensorSpec>& specs) {
    double sums[2] = {0, 0};
    std::int64_t counts[2] = {0, 0};
    std::vector<float> values;
    for (const TensorSpec& spec : specs) {
      const auto tensor = checked_.tensors.find(spec.name);
      if (tensor == checked_.tensors.end() || !is_centred_gain(spec)) continue;
      const int place = spec.name.starts_with("mtp.") ? 1 : 0;
      values.resize(static_cast<std::size_t>(spec.shape.num_elements()));
      const Weight as_row(Tensor{tensor->second.data, tensor->second.dtype, {1, spec.shape.num_elements()}});
      decode(as_row.view, 0, 0, values);
      for (const float value : values) sums[place] += static_cast<double>(value);
      counts[place] += spec.shape.num_elements();
    }
    checked_.main_gains_hold_one = sums[0] >= 0.5 * static_cast<double>(counts[0]) && counts[0] > 0;
    checked_.head_gains_hold_one = sums[1] >= 0.5 * static_cast<double>(counts[1]) && counts[1] > 0;
  }

  // The hash buffers of a file must be what its config gives, or every n-gram would read another row.
  void check_hash(int ordinal) {
    const NgramHash hash = ngram_hash(config_, ordinal);
    const int layer = config_.ngram.layers[static_cast<std::size_t>(ordinal)];
    const std::string prefix = fmt::format("layers.{}.ple.ple_embedding.", layer);
    check_buffer(prefix + "layer_multipliers", hash.multipliers);
    check_buffer(prefix + "ngram_heads_offsets", hash.head_offsets);
    check_buffer(prefix + "ngram_heads_vocab_sizes", hash.head_sizes);
  }

  void check_buffer(const std::string& name, const std::vector<std::int64_t>& computed) {
    const auto tensor = checked_.tensors.find(name);
    if (tensor == checked_.tensors.end()) return;
    const auto* stored = tensor->second.as<std::int64_t>();
    for (std::size_t i = 0; i < computed.size(); ++i) {
      if (stored[i] == computed[i]) continue;
      const FoundTensor& found = set_.tensors.find(name)->second;
      log_.add(found.shard->file, Kind::Other,
               fmt::format("tensor {}: number {} is {}, config.json gives {}", found.stored->name, i, stored[i],
                           computed[i]));
      checked_.tensors.erase(tensor);
      return;
    }
  }

  const ModelConfig& config_;
  const ShardSet& set_;
  ProblemLog& log_;
  CheckedTensors checked_;
  std::unordered_set<std::string> single_experts_;  // prefixes
};

}  // namespace

CheckedTensors check_tensors(const ModelConfig& config, const ShardSet& set, ProblemLog& log) {
  return Checker(config, set, log).run();
}

std::string expert_name(std::string_view prefix, int expert, std::string_view part) {
  return fmt::format("{}.experts.{}.{}_proj.weight", prefix, expert, part);
}

std::string stacked_name(std::string_view prefix, std::string_view part) {
  return fmt::format("{}.switch_mlp.{}_proj.weight", prefix, part);
}

}  // namespace rondo
