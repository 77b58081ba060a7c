// Synthetic weights: each value is a function of (seed, tensor's name, index), spread so that activations keep their
// size from layer to layer: matrices about 1 / sqrt(inputs), zero-centred norms near 0, the plain norm near 1.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/thread_pool.h"
#include "ckpt/checkpoint.h"
#include "ckpt/ngram_hash.h"
#include "ckpt/shards.h"
#include "tensor/made_up.h"

namespace rondo {

namespace {

constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15u;

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::uint64_t name_key(std::string_view name, std::uint64_t seed) {
  std::uint64_t key = mix(seed + kGamma);
  for (const char c : name) key = mix(key ^ static_cast<unsigned char>(c)) + kGamma;
  return key;
}

// Centre of the n-th of 256 equal parts of [-1, 1]: fine enough for weights nobody trained.
float centred(std::uint64_t eight_bits) {
  return (static_cast<float>(static_cast<int>(eight_bits & 0xFFu)) - 127.5F) * (1.0F / 128.0F);
}

using Levels = std::array<BFloat16, 256>;

// out[i] = one of the levels, eight values from one counter; begin is a multiple of eight.
void fill_levels(BFloat16* out, std::int64_t begin, std::int64_t end, std::uint64_t key, const Levels& levels) {
  constexpr std::int64_t kDrawn = 8;
  for (std::int64_t i = begin; i < end; i += kDrawn) {
    std::uint64_t bits = mix(key + static_cast<std::uint64_t>(i) * kGamma);
    const std::int64_t n = std::min(kDrawn, end - i);
    for (std::int64_t j = 0; j < n; ++j, bits >>= 8) out[i + j] = levels[bits & 0xFFu];
  }
}

struct Spread {
  float mean, half_width;
};

Spread spread_of(const TensorSpec& spec) {
  constexpr float kUniform = 1.7320508F;  // half width of a uniform law of variance 1
  const std::string_view name = spec.name;
  if (name.ends_with("linear_attn.norm.weight")) return {1.0F, 0.1F};
  if (name.ends_with("conv1d.weight")) return {0.0F, 0.5F};
  if (name.ends_with("dt_bias")) return {0.0F, 1.0F};
  if (spec.tensor_class == TensorClass::Vector) return {0.0F, 0.1F};
  if (name == "embed_tokens.weight" || name.find("ngram_embedding") != name.npos) return {0.0F, kUniform};
  const auto inputs = static_cast<float>(spec.shape[spec.shape.rank() - 1]);
  return {0.0F, kUniform / std::sqrt(inputs)};
}

constexpr std::size_t kAlignBytes = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

bool is_feed_forward(std::string_view name) {
  return name.find(".mlp.") != name.npos && (name.find(".experts.") != name.npos || name.ends_with("_proj.weight"));
}
bool is_projection(std::string_view name) {
  if (name == "lm_head.weight") return true;
  if (name.find(".self_attn.") != name.npos) return name.ends_with("_proj.weight") && !name.ends_with("qk_proj.weight");
  for (const std::string_view each : {"in_proj_qkvz", "in_proj_qkv", "in_proj_z", "out_proj"}) {
    if (name.ends_with(fmt::format(".linear_attn.{}.weight", each))) return true;
  }
  return false;
}

std::int64_t parts_of(std::int64_t whole, std::int64_t each) { return (whole + each - 1) / each; }

// The matrix without its addresses; Bf16 for what stays plain.
CodedView view_of(const TensorSpec& spec, SyntheticFormat format) {
  CodedView view;
  view.columns = spec.shape[spec.shape.rank() - 1];
  view.rows = spec.shape.num_elements() / view.columns;
  const bool wide = is_feed_forward(spec.name);
  if (spec.tensor_class != TensorClass::Matrix || format == SyntheticFormat::Bf16) return view;
  if (!wide && !is_projection(spec.name)) return view;
  view.bits = 8;
  switch (format) {
    case SyntheticFormat::Bf16: break;
    case SyntheticFormat::Nvfp4:
      view.format = wide ? WeightFormat::Nvfp4 : WeightFormat::Fp8;
      if (!wide) break;
      view.bits = 4;
      view.scale_type = ScaleType::E4m3;
      view.scale_columns = kNvfp4Block;
      break;
    case SyntheticFormat::Fp8:
      view.format = WeightFormat::Fp8;
      view.scale_type = ScaleType::Bf16;
      view.scale_rows = view.scale_columns = 128;
      break;
    case SyntheticFormat::Affine4:
      view.format = WeightFormat::Affine;
      view.bits = 4;
      view.scale_type = ScaleType::Bf16;
      view.scale_columns = 64;
      break;
  }
  CHECK(view.columns % 128 == 0 && view.rows % view.scale_rows == 0);
  view.row_bytes = view.columns * view.bits / 8;
  view.scale_stride = parts_of(view.columns, view.scale_columns);
  view.tensor_scale = made_up(view).tensor_scale;
  return view;
}

class SyntheticWeights final : public WeightSource {
 public:
  static Result<std::unique_ptr<WeightSource>> create(const ModelConfig& config, bool has_mtp,
                                                      const SyntheticOptions& options) {
    const bool is_hollow = options.is_hollow;
    const std::vector<TensorSpec> specs = inventory(config, has_mtp);
    std::size_t total_bytes = 0;
    for (const TensorSpec& spec : specs) total_bytes += bytes_of(spec, options.format);
    // Of a hollow one only what is written gets memory.
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (is_hollow ? MAP_NORESERVE : 0);
    void* memory = ::mmap(nullptr, total_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) {
      return failure(ErrorCode::Io, fmt::format("no memory for {} bytes of synthetic weights", total_bytes));
    }
    // In huge pages, where the system has them: reading it then costs what reading weights costs.
    if (!is_hollow) ::madvise(memory, total_bytes, MADV_HUGEPAGE);
    auto made = std::unique_ptr<SyntheticWeights>(
        new SyntheticWeights(config, has_mtp, static_cast<std::byte*>(memory), total_bytes));
    made->is_hollow_ = is_hollow;
    made->fill_all(specs, options);
    return made;
  }
  ~SyntheticWeights() override { ::munmap(memory_, total_bytes_); }
  SyntheticWeights(const SyntheticWeights&) = delete;
  SyntheticWeights& operator=(const SyntheticWeights&) = delete;

  const ModelConfig& config() const override { return config_; }
  bool has_mtp() const override { return has_mtp_; }
  bool is_hollow() const override { return is_hollow_; }
  std::optional<Tensor> find(std::string_view name) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return std::nullopt;
    return found->second;
  }
  std::optional<Weight> find_weight(std::string_view name) const override {
    const auto coded = coded_.find(name);
    return coded == coded_.end() ? WeightSource::find_weight(name) : std::optional(coded->second);
  }

 private:
  SyntheticWeights(const ModelConfig& config, bool has_mtp, std::byte* memory, std::size_t total_bytes)
      : config_(config), has_mtp_(has_mtp), total_bytes_(total_bytes), memory_(memory) {}

  void fill_all(const std::vector<TensorSpec>& specs, const SyntheticOptions& options) {
    ThreadPool pool(num_physical_threads());
    std::byte* at = memory_;
    for (const TensorSpec& spec : specs) {
      const std::uint64_t key = name_key(spec.name, options.seed);
      const Weight coded(spec.shape, view_of(spec, options.format));
      if (!coded.is_plain()) {
        add_coded(spec.name, coded, at, key, pool);
      } else {
        if (!is_hollow_ || spec.tensor_class == TensorClass::Vector) fill(spec, at, key, pool);
        tensors_.emplace(spec.name, Tensor{at, dtype_of(spec), spec.shape});
      }
      at += bytes_of(spec, options.format);
    }
    fill_hashes();
  }

  void add_coded(const std::string& name, Weight weight, std::byte* at, std::uint64_t key, ThreadPool& pool) {
    CodedView& view = weight.view;
    const MadeUp made = made_up(view);
    const auto put = [&](const std::uint8_t*& to, std::uint64_t bytes, const MadeUp::Bytes& pattern) {
      to = reinterpret_cast<const std::uint8_t*>(at);
      if (!is_hollow_)
        fill_bytes(reinterpret_cast<std::uint8_t*>(at), static_cast<std::int64_t>(bytes), ++key, pattern, pool);
      at += aligned(bytes);
    };
    put(view.codes, static_cast<std::uint64_t>(view.rows * view.row_bytes), made.codes);
    if (view.scale_type != ScaleType::None) put(view.scales, weight.scales_bytes(), made.scales);
    if (view.format == WeightFormat::Affine) put(view.biases, weight.scales_bytes(), made.biases);
    coded_.emplace(name, weight);
  }

  static void fill_bytes(std::uint8_t* to, std::int64_t n, std::uint64_t key, const MadeUp::Bytes& pattern,
                         ThreadPool& pool) {
    constexpr std::int64_t kRun = 1 << 16;  // bytes handed to a thread at a time, a multiple of eight
    pool.split(static_cast<int>(parts_of(n, kRun)), 1, [&](int first, int last) {
      for (std::int64_t i = first * kRun; i < std::min(n, last * kRun); i += 8) {
        const std::uint64_t bits = mix(key + static_cast<std::uint64_t>(i) * kGamma);
        for (std::int64_t j = i; j < std::min(n, i + 8); ++j) {
          to[j] = pattern.at(j, static_cast<std::uint8_t>(bits >> (8 * (j - i))));
        }
      }
    });
  }

  static DType dtype_of(const TensorSpec& spec) {
    return spec.tensor_class == TensorClass::Integers ? DType::I64 : DType::BF16;
  }
  static std::size_t bytes_of(const TensorSpec& spec, SyntheticFormat format) {
    const Weight coded(spec.shape, view_of(spec, format));
    if (coded.is_plain()) {
      return aligned(static_cast<std::size_t>(spec.shape.num_elements()) * size_bytes(dtype_of(spec)));
    }
    const std::size_t grids = coded.view.format == WeightFormat::Affine ? 2 : 1;
    return aligned(static_cast<std::size_t>(coded.view.rows * coded.view.row_bytes)) +
           grids * aligned(coded.scales_bytes());
  }

  static void fill(const TensorSpec& spec, std::byte* at, std::uint64_t key, ThreadPool& pool) {
    if (spec.tensor_class == TensorClass::Integers) return;  // fill_hashes()
    auto* values = reinterpret_cast<BFloat16*>(at);
    const std::int64_t n = spec.shape.num_elements();
    if (spec.name.ends_with("A_log")) {
      // As the family is initialised: a decay rate spread evenly over (0, 6].
      for (std::int64_t i = 0; i < n; ++i) {
        const float unit = 0.5F * centred(mix(key + static_cast<std::uint64_t>(i))) + 0.5F;
        values[i] = to_bfloat16(std::log(0.01F + 5.99F * unit));
      }
      return;
    }
    const Spread spread = spread_of(spec);
    Levels levels;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      levels[i] = to_bfloat16(spread.mean + spread.half_width * centred(i));
    }
    constexpr std::int64_t kRun = 1 << 16;  // values handed to a thread at a time, a multiple of eight
    const auto num_runs = static_cast<int>((n + kRun - 1) / kRun);
    pool.split(num_runs, 1,
               [&](int first, int last) { fill_levels(values, first * kRun, std::min(n, last * kRun), key, levels); });
  }

  void fill_hashes() {
    for (std::size_t p = 0; p < config_.ngram.layers.size(); ++p) {
      const NgramHash hash = ngram_hash(config_, static_cast<int>(p));
      const std::string prefix = fmt::format("layers.{}.ple.ple_embedding.", config_.ngram.layers[p]);
      write(prefix + "layer_multipliers", hash.multipliers);
      write(prefix + "ngram_heads_offsets", hash.head_offsets);
      write(prefix + "ngram_heads_vocab_sizes", hash.head_sizes);
    }
  }
  void write(const std::string& name, const std::vector<std::int64_t>& numbers) {
    const auto offset = static_cast<const std::byte*>(tensors_.find(name)->second.data) - memory_;
    std::memcpy(memory_ + offset, numbers.data(), numbers.size() * sizeof(std::int64_t));
  }

  ModelConfig config_;
  bool has_mtp_, is_hollow_ = false;
  std::size_t total_bytes_;
  std::byte* memory_;
  ByName<Tensor> tensors_;
  ByName<Weight> coded_;
};

ModelConfig qwen35_08b() {
  ModelConfig config;
  config.architecture = Architecture::Qwen35;
  config.vocab_size = 248320;
  config.hidden_size = 1024;
  for (int i = 0; i < 24; ++i) config.layers.push_back(i % 4 == 3 ? LayerKind::Attention : LayerKind::Linear);
  config.tied_embeddings = true;
  config.context_tokens = 262144;
  config.q_heads = 8;
  config.kv_heads = 2;
  config.head_dim = 256;
  config.linear_k_heads = config.linear_v_heads = 16;
  config.linear_k_dim = config.linear_v_dim = 128;
  config.mlp_size = 3584;
  config.eos_token = 248044;
  config.end_tokens = {248046, 248044};
  config.num_mtp_layers = 1;
  return config;
}

std::vector<LayerKind> layers_of(int count) {
  std::vector<LayerKind> layers;
  for (int i = 0; i < count; ++i) layers.push_back(i % 4 == 3 ? LayerKind::Attention : LayerKind::Linear);
  return layers;
}

ModelConfig qwen38_27b() {
  ModelConfig config = qwen35_08b();
  config.hidden_size = 5120;
  config.layers = layers_of(64);
  config.tied_embeddings = false;
  config.q_heads = 24;
  config.kv_heads = 4;
  config.linear_v_heads = 48;
  config.mlp_size = 17408;
  return config;
}

ModelConfig qwen35_35b_a3b() {
  ModelConfig config = qwen35_08b();
  config.architecture = Architecture::Qwen35Moe;
  config.hidden_size = 2048;
  config.layers = layers_of(40);
  config.tied_embeddings = false;
  config.q_heads = 16;
  config.kv_heads = 2;
  config.linear_v_heads = 32;
  config.mlp_size = 0;
  config.moe = {.num_experts = 256, .experts_per_token = 8, .expert_size = 512, .shared_expert_size = 512};
  return config;
}

ModelConfig qwen38_flash_next() {
  ModelConfig config = qwen35_08b();
  config.architecture = Architecture::Qwen4Exp;
  config.hidden_size = 2560;
  config.layers = layers_of(48);
  config.tied_embeddings = false;
  config.q_heads = 24;
  config.kv_heads = 2;
  config.linear_v_heads = 48;
  config.linear_gate = GateActivation::Sigmoid;
  config.mlp_size = 0;
  config.moe = {.num_experts = 512, .experts_per_token = 10, .expert_size = 640, .shared_expert_size = 640};
  config.hyper = {.num_streams = 4, .rank = 320};
  config.ngram.layers = {1};
  config.ngram.embed_dim = 2560;
  config.ngram.vocab_base = 2'000'000;  // published: ten times that
  config.indexer = {.num_heads = 4, .head_dim = 128, .budget_tokens = 2048, .block_tokens = 4};
  return config;
}

struct PublishedShape {
  std::string_view name;
  ModelConfig (*config)();
};
constexpr PublishedShape kShapes[] = {{"qwen3.5-0.8b", qwen35_08b},
                                      {"qwen3.8-27b", qwen38_27b},
                                      {"qwen3.5-35b-a3b", qwen35_35b_a3b},
                                      {"qwen3.8-flash-next", qwen38_flash_next}};

}  // namespace

Result<ModelConfig> synthetic_config(std::string_view shape_name) {
  std::string known;
  for (const PublishedShape& each : kShapes) {
    if (each.name == shape_name) return each.config();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
  }
  return failure(ErrorCode::InvalidArgument,
                 fmt::format("unknown synthetic shape \"{}\" (known: {})", shape_name, known));
}

Result<SyntheticFormat> synthetic_format(std::string_view name) {
  constexpr std::pair<std::string_view, SyntheticFormat> kFormats[] = {{"bf16", SyntheticFormat::Bf16},
                                                                       {"nvfp4", SyntheticFormat::Nvfp4},
                                                                       {"fp8", SyntheticFormat::Fp8},
                                                                       {"affine4", SyntheticFormat::Affine4}};
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return failure(ErrorCode::InvalidArgument,
                 fmt::format("unknown weight format \"{}\" (known: bf16, nvfp4, fp8, affine4)", name));
}

Result<std::unique_ptr<WeightSource>> make_synthetic(std::string_view shape_name, const SyntheticOptions& options) {
  TRY(ModelConfig config, synthetic_config(shape_name));
  if (options.num_layers > 0) {
    if (options.num_layers > config.num_layers()) {
      return failure(ErrorCode::InvalidArgument,
                     fmt::format("{} layers: {} has {}", options.num_layers, shape_name, config.num_layers()));
    }
    config.layers.resize(static_cast<std::size_t>(options.num_layers));
  }
  return SyntheticWeights::create(config, true, options);
}

std::unique_ptr<WeightSource> make_synthetic(const ModelConfig& config, bool has_mtp, std::uint64_t seed) {
  auto made = SyntheticWeights::create(config, has_mtp, {.seed = seed});
  CHECK(made.has_value());
  return *std::move(made);
}

}  // namespace rondo
