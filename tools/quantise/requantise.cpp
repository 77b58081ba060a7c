#include "tools/quantise/requantise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/mmap_file.h"
#include "ckpt/check.h"
#include "ckpt/checkpoint.h"
#include "tensor/encode.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;
using Scheme = QuantiseSpec::Scheme;

constexpr std::string_view kWeight = ".weight";

struct Written {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;
};

bool holds_one_of(std::string_view name, std::initializer_list<std::string_view> fragments) {
  return std::any_of(fragments.begin(), fragments.end(),
                     [&](std::string_view each) { return name.find(each) != name.npos; });
}

bool is_projection(std::string_view name) {
  return holds_one_of(name, {".q_proj.", ".k_proj.", ".v_proj.", ".o_proj.", ".in_proj_qkv.", ".in_proj_z.",
                             ".in_proj_qkvz.", ".out_proj."});
}
bool is_expert(std::string_view name) { return name.find(".mlp.experts.") != name.npos; }
bool is_mlp(std::string_view name) {
  return name.find(".mlp.") != name.npos && holds_one_of(name, {".gate_proj.", ".up_proj.", ".down_proj."});
}

std::vector<std::uint8_t> bytes_of(const void* data, std::size_t size) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  return {from, from + size};
}

std::vector<std::uint8_t> f32_bytes(const std::vector<float>& values) {
  return bytes_of(values.data(), values.size() * sizeof(float));
}

std::vector<float> values_of(const Weight& weight) {
  const auto columns = static_cast<std::size_t>(weight.view.columns);
  std::vector<float> values(static_cast<std::size_t>(weight.view.rows) * columns);
  for (std::int64_t row = 0; row < weight.view.rows; ++row) {
    decode(weight.view, row, 0, std::span(values).subspan(static_cast<std::size_t>(row) * columns, columns));
  }
  return values;
}

class Writer {
 public:
  Writer(const Checkpoint& source, const QuantiseSpec& spec) : source_(source), spec_(spec) {}

  std::vector<Written> take() && {
    for (const TensorSpec& spec : inventory(source_.config(), source_.has_mtp())) {
      if (spec.tensor_class != TensorClass::Matrix) {
        add_vector(spec);
      } else if (is_expert(spec.name)) {
        if (spec.name.ends_with("gate_up_proj")) add_experts(spec.name.substr(0, spec.name.find(".experts.")));
      } else if (spec.name.find("ngram_embedding") != std::string::npos) {
        if (spec.name.find(".shard_0.") != std::string::npos) add_table(spec.name.substr(0, spec.name.find("shard_0")));
      } else {
        add_matrix(spec.name, *source_.find_weight(spec.name));
      }
    }
    return std::move(tensors_);
  }

 private:
  std::string stored_name(const std::string& name) const {
    const bool at_root = name.starts_with("mtp.") || name.starts_with("lm_head.");
    if (spec_.scheme == Scheme::Affine) return "language_model." + (at_root ? name : "model." + name);
    return at_root ? name : "model." + name;
  }
  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, std::vector<std::uint8_t> bytes) {
    tensors_.push_back({stored_name(name), dtype, std::move(shape), std::move(bytes)});
  }

  void add_vector(const TensorSpec& spec) {
    const auto tensor = source_.find(spec.name);
    if (!tensor) return;  // hash buffers may be absent
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < spec.shape.rank(); ++axis) shape.push_back(spec.shape[axis]);
    const bool is_mlx = spec_.scheme == Scheme::Affine;
    if (is_mlx && spec.name.ends_with("conv1d.weight")) std::swap(shape[1], shape[2]);
    const bool is_gain = spec.name.find("norm") != std::string::npos && !spec.name.ends_with("linear_attn.norm.weight");
    if (is_mlx && is_gain) {
      const float one = source_.gains_hold_one(spec.name.starts_with("mtp.")) ? 0.0F : 1.0F;
      std::vector<float> values =
          values_of(Weight(Tensor{tensor->data, tensor->dtype, {1, spec.shape.num_elements()}}));
      for (float& value : values) value = one + value;
      return add(spec.name, DType::F32, shape, f32_bytes(values));
    }
    const auto size = static_cast<std::size_t>(spec.shape.num_elements()) * size_bytes(tensor->dtype);
    add(spec.name, tensor->dtype, shape, bytes_of(tensor->data, size));
  }

  void add_experts(const std::string& prefix) {
    std::vector<std::vector<float>> stacks(3);
    const char* const parts[] = {"gate", "up", "down"};
    Shape shapes[3];
    for (int e = 0; e < source_.config().moe.num_experts; ++e) {
      const ExpertWeights expert = expert_weights(source_, prefix, e);
      const Weight* weights[] = {&expert.gate, &expert.up, &expert.down};
      for (std::size_t i = 0; i < 3; ++i) {
        if (spec_.scheme != Scheme::Affine) {
          add_matrix(expert_name(prefix, e, parts[i]), *weights[i]);
          continue;
        }
        const std::vector<float> values = values_of(*weights[i]);
        stacks[i].insert(stacks[i].end(), values.begin(), values.end());
        shapes[i] = weights[i]->shape;
      }
    }
    if (spec_.scheme != Scheme::Affine) return;
    for (std::size_t i = 0; i < 3; ++i) {
      add_affine(stacked_name(prefix, parts[i]), stacks[i],
                 {source_.config().moe.num_experts, shapes[i][0], shapes[i][1]});
    }
  }

  // prefix: up to "shard_".
  void add_table(const std::string& prefix) {
    const std::string layer = prefix.substr(std::strlen("layers."));
    const std::vector<Weight> shards = ngram_table(source_, std::stoi(layer));
    if (spec_.scheme != Scheme::Fp8) {
      for (std::size_t k = 0; k < shards.size(); ++k) {
        add_matrix(fmt::format("{}shard_{}.weight", prefix, k), shards[k]);
      }
      return;
    }
    std::vector<float> all;
    for (const Weight& shard : shards) {
      const std::vector<float> values = values_of(shard);
      all.insert(all.end(), values.begin(), values.end());
    }
    const EncodedWeight coded = encode(all, shards[0].view.columns, {.format = WeightFormat::Fp8, .by_tensor = true});
    std::size_t at = 0;
    for (std::size_t k = 0; k < shards.size(); ++k) {
      const auto size = static_cast<std::size_t>(shards[k].shape.num_elements());
      add(fmt::format("{}shard_{}.weight", prefix, k), DType::F8E4M3, {shards[k].shape[0], shards[k].shape[1]},
          bytes_of(coded.codes.data() + at, size));
      at += size;
    }
    add(prefix + "weight_scale", DType::F32, {1}, f32_bytes({coded.weight.view.tensor_scale}));
  }

  void add_matrix(const std::string& name, const Weight& weight) {
    const std::vector<float> values = values_of(weight);
    const std::vector<std::int64_t> shape = {weight.view.rows, weight.view.columns};
    switch (spec_.scheme) {
      case Scheme::Decoded: return add(name, DType::F32, shape, f32_bytes(values));
      case Scheme::Affine: return add_affine(name, values, shape);
      case Scheme::Fp8:
        if (is_projection(name) || is_mlp(name)) return add_block_fp8(name, values, shape, ".weight_scale_inv");
        break;
      case Scheme::Nvfp4:
        if (is_projection(name)) return add_tensor_fp8(name, values, shape);
        if (is_expert(name) && name.starts_with("mtp.")) return add_block_fp8(name, values, shape, ".weight_scale");
        if ((is_mlp(name) || name.starts_with("lm_head.")) && shape[1] % kNvfp4Block == 0) {
          return add_nvfp4(name, values, shape);
        }
        break;
    }
    add_bf16(name, values, shape);
  }

  void add_bf16(const std::string& name, const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
    std::vector<BFloat16> rounded;
    for (const float value : values) rounded.push_back(to_bfloat16(value));
    add(name, DType::BF16, shape, bytes_of(rounded.data(), rounded.size() * sizeof(BFloat16)));
  }

  static std::string base_of(const std::string& name) { return name.substr(0, name.size() - kWeight.size()); }

  void add_block_fp8(const std::string& name, const std::vector<float>& values, const std::vector<std::int64_t>& shape,
                     const char* suffix) {
    const std::int64_t block = spec_.block;
    EncodedWeight coded = encode(values, shape[1], {.format = WeightFormat::Fp8, .block = block});
    add(name, DType::F8E4M3, shape, std::move(coded.codes));
    add(base_of(name) + suffix, DType::BF16, {(shape[0] + block - 1) / block, (shape[1] + block - 1) / block},
        std::move(coded.scales));
  }

  void add_tensor_fp8(const std::string& name, const std::vector<float>& values,
                      const std::vector<std::int64_t>& shape) {
    EncodedWeight coded = encode(values, shape[1], {.format = WeightFormat::Fp8, .by_tensor = true});
    add(name, DType::F8E4M3, shape, std::move(coded.codes));
    add(base_of(name) + ".weight_scale", DType::F32, {}, f32_bytes({coded.weight.view.tensor_scale}));
    add(base_of(name) + ".input_scale", DType::F32, {}, f32_bytes({1.0F}));  // there in such files; of no use to us
  }

  void add_nvfp4(const std::string& name, const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
    EncodedWeight coded = encode(values, shape[1], {.format = WeightFormat::Nvfp4});
    add(name, DType::U8, {shape[0], shape[1] / 2}, std::move(coded.codes));
    add(base_of(name) + ".weight_scale", DType::F8E4M3, {shape[0], shape[1] / kNvfp4Block}, std::move(coded.scales));
    add(base_of(name) + ".weight_scale_2", DType::F32, {}, f32_bytes({coded.weight.view.tensor_scale}));
  }

  void add_affine(const std::string& name, const std::vector<float>& values, const std::vector<std::int64_t>& shape) {
    const bool is_small = holds_one_of(name, {".mlp.gate.", ".shared_expert_gate."});
    const EncodeSpec spec{.format = WeightFormat::Affine, .bits = is_small ? 8 : spec_.bits};
    if (!can_encode(spec, shape.back())) return add_bf16(name, values, shape);
    EncodedWeight coded = encode(values, shape.back(), spec);
    std::vector<std::int64_t> words = shape, groups = shape;
    words.back() = shape.back() * spec.bits / 32;
    groups.back() = shape.back() / spec.group;
    add(name, DType::U32, words, std::move(coded.codes));
    add(base_of(name) + ".scales", DType::BF16, groups, std::move(coded.scales));
    add(base_of(name) + ".biases", DType::BF16, groups, std::move(coded.biases));
  }

  const Checkpoint& source_;
  const QuantiseSpec& spec_;
  std::vector<Written> tensors_;
};

Result<void> write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return failure(ErrorCode::Io, path.string() + ": cannot be written");
  return {};
}

// Wide elements first, so that each begins where its dtype may.
Result<void> write_tensors(const fs::path& path, std::vector<Written> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const Written& a, const Written& b) { return size_bytes(a.dtype) > size_bytes(b.dtype); });
  json::Object header;
  std::string data;
  for (const Written& tensor : tensors) {
    json::Array shape;
    for (const std::int64_t dim : tensor.shape) shape.emplace_back(dim);
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    header[tensor.name] =
        json::Object{{"dtype", dtype_name(tensor.dtype)}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = to_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i));
  return write_file(path, file + text + data);
}

json::Value quantization_config(const QuantiseSpec& spec) {
  switch (spec.scheme) {
    case Scheme::Fp8:
      return json::Object{{"quant_method", "fp8"},
                          {"fmt", "e4m3"},
                          {"activation_scheme", "dynamic"},
                          {"weight_block_size", {spec.block, spec.block}},
                          {"modules_to_not_convert", {"lm_head", "model.embed_tokens", "mtp.fc"}}};
    case Scheme::Nvfp4:
      return json::Object{{"quant_method", "modelopt"},
                          {"quant_algo", "MIXED_PRECISION"},
                          {"weight_block_size", {spec.block, spec.block}},
                          {"ignore", {"*.in_proj_a", "*.in_proj_b", "*.gate"}}};
    case Scheme::Affine: return json::Object{{"group_size", 64}, {"bits", spec.bits}, {"mode", "affine"}};
    case Scheme::Decoded: break;
  }
  return nullptr;
}

Result<void> write_config(const fs::path& from, const fs::path& to, const QuantiseSpec& spec) {
  TRY(const std::string text, read_file(from.string()));
  TRY(json::Value document, parse_json(text));
  json::Object& config = document.as_object();
  // What it was decoded from still says how its norms are stored; what the matrices are, the file says.
  if (spec.scheme != Scheme::Decoded) {
    config.erase("quantization_config");
    config.erase("quantization");
    config[spec.scheme == Scheme::Affine ? "quantization" : "quantization_config"] = quantization_config(spec);
  }
  return write_file(to, to_json(document));
}

}  // namespace

Result<void> requantise(const std::string& folder, const std::string& out_folder, const QuantiseSpec& spec) {
  TRY(const Checkpoint source, Checkpoint::open(folder));
  std::error_code error;
  fs::create_directories(out_folder, error);
  const fs::path out(out_folder);
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.find(".safetensors") != name.npos || name == "config.json") continue;
    fs::copy_file(entry.path(), out / name, fs::copy_options::overwrite_existing, error);
    if (error) return failure(ErrorCode::Io, fmt::format("{}: {}", (out / name).string(), error.message()));
  }
  TRY_VOID(write_config(fs::path(folder) / "config.json", out / "config.json", spec));
  return write_tensors(out / "model.safetensors", Writer(source, spec).take());
}

}  // namespace rondo
