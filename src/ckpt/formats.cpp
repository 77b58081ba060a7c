#include "ckpt/formats.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace rondo {

namespace {

using Kind = ProblemLog::Kind;

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kMatrixDTypes = "BF16, F16, F32, F8_E4M3, U8 (NVFP4) or U32 (MLX)";

std::int64_t parts_of(std::int64_t whole, std::int64_t each) { return (whole + each - 1) / each; }

class Reader {
 public:
  Reader(const ModelConfig& config, const ShardSet& set, const TensorSpec& spec, ProblemLog& log,
         std::unordered_set<std::string>& parts)
      : config_(config), set_(set), spec_(spec), log_(log), parts_(parts), found_(set.tensors.find(spec.name)->second) {
    base_ = spec.name.ends_with(kWeight) ? spec.name.substr(0, spec.name.size() - kWeight.size()) : spec.name;
    columns_ = spec.shape[spec.shape.rank() - 1];
    rows_ = spec.shape.num_elements() / columns_;
  }

  std::optional<Weight> run() {
    switch (found_.stored->dtype) {
      case DType::BF16:
      case DType::F16:
      case DType::F32:
        if (!has_width(columns_, "") || !is_aligned(found_)) return std::nullopt;
        return Weight(Tensor{found_.data(), found_.stored->dtype, spec_.shape});
      case DType::F8E4M3: return fp8();
      case DType::U8: return nvfp4();
      case DType::U32: return affine();
      default: break;
    }
    log_.add(found_.shard->file, Kind::DType,
             fmt::format("tensor {} is {}, expected {}", found_.stored->name, dtype_name(found_.stored->dtype),
                         kMatrixDTypes),
             ErrorCode::Unsupported);
    return std::nullopt;
  }

 private:
  // The stored shape is spec's with `width` elements a row; `note` says what a row holds.
  bool has_width(std::int64_t width, std::string_view note) {
    Shape wanted;
    for (int axis = 0; axis + 1 < spec_.shape.rank(); ++axis) wanted.append(spec_.shape[axis]);
    wanted.append(width);
    if (found_.stored->shape == wanted) return true;
    log_.add(found_.shard->file, Kind::Shape,
             fmt::format("tensor {} has shape {}, config.json asks for {}{}", found_.stored->name,
                         found_.stored->shape.to_string(), wanted.to_string(), note));
    return false;
  }

  bool is_aligned(const FoundTensor& tensor) {
    if (tensor.stored->begin % size_bytes(tensor.stored->dtype) == 0) return true;
    log_.add(tensor.shard->file, Kind::Alignment,
             fmt::format("tensor {} begins at byte {}, which is not aligned for {}", tensor.stored->name,
                         tensor.stored->begin, dtype_name(tensor.stored->dtype)));
    return false;
  }

  const FoundTensor* find_beside(const std::string& name) {
    const auto beside = set_.tensors.find(name);
    if (beside == set_.tensors.end()) return nullptr;
    parts_.insert(name);
    return &beside->second;
  }

  // What must stand beside it, or a problem that says so; silent where one about that tensor says it already.
  const FoundTensor* demand_beside(const std::string& name) {
    const FoundTensor* beside = find_beside(name);
    if (beside == nullptr && !set_.may_hold_more && !set_.accounted.contains(name)) {
      log_.add(found_.shard->file, Kind::Missing,
               fmt::format("tensor {} is {}, but {} is missing", found_.stored->name, dtype_name(found_.stored->dtype),
                           name));
    }
    return beside;
  }

  void wrong_shape(const FoundTensor& tensor, const std::string& expected) {
    log_.add(tensor.shard->file, Kind::Shape,
             fmt::format("tensor {} has shape {}, expected {}", tensor.stored->name, tensor.stored->shape.to_string(),
                         expected));
  }

  bool has_dtype(const FoundTensor& tensor, bool accepted, std::string_view expected) {
    if (accepted) return is_aligned(tensor);
    log_.add(
        tensor.shard->file, Kind::DType,
        fmt::format("tensor {} is {}, expected {}", tensor.stored->name, dtype_name(tensor.stored->dtype), expected),
        ErrorCode::Unsupported);
    return false;
  }

  // Sets the type of scales or biases; false, and logged, where it is none.
  bool takes_scale_type(const FoundTensor& tensor, ScaleType& type) {
    switch (tensor.stored->dtype) {
      case DType::BF16: type = ScaleType::Bf16; break;
      case DType::F16: type = ScaleType::F16; break;
      case DType::F32: type = ScaleType::F32; break;
      default: return has_dtype(tensor, false, "BF16, F16 or F32");
    }
    return is_aligned(tensor);
  }

  std::optional<float> one_number(const FoundTensor& tensor, ScaleType type) {
    const CodedView number{.format = type == ScaleType::Bf16  ? WeightFormat::Bf16
                                     : type == ScaleType::F16 ? WeightFormat::F16
                                                              : WeightFormat::F32,
                           .rows = 1,
                           .columns = 1,
                           .codes = static_cast<const std::uint8_t*>(tensor.data())};
    float value = 0;
    decode(number, 0, 0, std::span(&value, 1));
    if (std::isfinite(value)) return value;
    log_.add(tensor.shard->file, Kind::Other,
             fmt::format("tensor {} is {}, expected a finite number", tensor.stored->name, value));
    return std::nullopt;
  }

  CodedView view_of(WeightFormat format, int bits) {
    return {.format = format,
            .bits = static_cast<std::uint8_t>(bits),
            .rows = rows_,
            .columns = columns_,
            .row_bytes = columns_ * bits / 8,
            .codes = static_cast<const std::uint8_t*>(found_.data())};
  }

  const FoundTensor* fp8_scale() {
    for (const std::string_view suffix : {".weight_scale_inv", ".weight_scale"}) {
      if (const FoundTensor* beside = find_beside(fmt::format("{}{}", base_, suffix))) return beside;
    }
    const std::size_t shard = base_.find(".shard_");
    if (shard != base_.npos) return demand_beside(base_.substr(0, shard) + ".weight_scale");
    return demand_beside(base_ + ".weight_scale_inv");
  }

  std::optional<Weight> fp8() {
    const FoundTensor* scale = has_width(columns_, "") ? fp8_scale() : nullptr;
    if (scale == nullptr) return std::nullopt;
    CodedView view = view_of(WeightFormat::Fp8, 8);
    if (!takes_scale_type(*scale, view.scale_type)) return std::nullopt;
    view.scales = static_cast<const std::uint8_t*>(scale->data());
    const Shape& shape = scale->stored->shape;
    const Shape blocks{parts_of(rows_, config_.fp8_block_rows), parts_of(columns_, config_.fp8_block_columns)};
    if (shape == blocks && spec_.shape.rank() == 2) {
      view.scale_rows = config_.fp8_block_rows;
      view.scale_columns = config_.fp8_block_columns;
      view.scale_stride = blocks[1];
    } else if (shape.num_elements() == 1) {
      const auto number = one_number(*scale, view.scale_type);
      if (!number) return std::nullopt;
      view.tensor_scale = *number;
      view.scale_type = ScaleType::None;
      view.scales = nullptr;
    } else if (shape == Shape{rows_} || shape == Shape{rows_, 1}) {
      view.scale_columns = columns_;
      view.scale_stride = 1;
    } else {
      wrong_shape(*scale, fmt::format("{} (blocks of {} x {}), [{}, 1] or one number", blocks.to_string(),
                                      config_.fp8_block_rows, config_.fp8_block_columns, rows_));
      return std::nullopt;
    }
    return Weight(spec_.shape, view);
  }

  std::optional<Weight> nvfp4() {
    if (columns_ % kNvfp4Block != 0) {
      log_.add(found_.shard->file, Kind::Shape,
               fmt::format("tensor {} is U8, but its {} inputs are no multiple of the {} that share a scale in NVFP4",
                           found_.stored->name, columns_, kNvfp4Block));
      return std::nullopt;
    }
    if (!has_width(columns_ / 2, ", two codes a byte")) return std::nullopt;
    const FoundTensor* scales = demand_beside(base_ + ".weight_scale");
    const FoundTensor* number = demand_beside(base_ + ".weight_scale_2");
    if (scales == nullptr || number == nullptr) return std::nullopt;
    const Shape wanted{rows_, columns_ / kNvfp4Block};
    if (!has_dtype(*scales, scales->stored->dtype == DType::F8E4M3, "F8_E4M3") ||
        !has_dtype(*number, number->stored->dtype == DType::F32, "F32")) {
      return std::nullopt;
    }
    if (scales->stored->shape != wanted || spec_.shape.rank() != 2) {
      wrong_shape(*scales, wanted.to_string());
      return std::nullopt;
    }
    if (number->stored->shape.num_elements() != 1) {
      wrong_shape(*number, "one number");
      return std::nullopt;
    }
    const auto tensor_scale = one_number(*number, ScaleType::F32);
    if (!tensor_scale) return std::nullopt;
    CodedView view = view_of(WeightFormat::Nvfp4, 4);
    view.scale_type = ScaleType::E4m3;
    view.scales = static_cast<const std::uint8_t*>(scales->data());
    view.scale_columns = kNvfp4Block;
    view.scale_stride = wanted[1];
    view.tensor_scale = *tensor_scale;
    return Weight(spec_.shape, view);
  }

  // Bits from the width of a row of codes, the group from that of a row of scales.
  std::optional<Weight> affine() {
    const Shape& stored = found_.stored->shape;
    const std::int64_t words = stored.rank() == spec_.shape.rank() ? stored[stored.rank() - 1] : 0;
    int bits = 0;
    for (const int each : {4, 6, 8}) bits = words * 32 == columns_ * each ? each : bits;
    if (bits == 0) {
      log_.add(found_.shard->file, Kind::Shape,
               fmt::format("tensor {} has shape {}: {} inputs of 4, 6 or 8 bits would be {}, {} or {} words a row",
                           found_.stored->name, stored.to_string(), columns_, columns_ / 8, columns_ * 6 / 32,
                           columns_ / 4));
      return std::nullopt;
    }
    if (!has_width(words, "") || !is_aligned(found_)) return std::nullopt;
    const FoundTensor* scales = demand_beside(base_ + ".scales");
    const FoundTensor* biases = demand_beside(base_ + ".biases");
    if (scales == nullptr || biases == nullptr) return std::nullopt;
    CodedView view = view_of(WeightFormat::Affine, bits);
    ScaleType bias_type = ScaleType::None;
    if (!takes_scale_type(*scales, view.scale_type) || !takes_scale_type(*biases, bias_type)) return std::nullopt;
    if (!has_dtype(*biases, bias_type == view.scale_type, dtype_name(scales->stored->dtype))) return std::nullopt;
    for (const std::int64_t group : {32, 64, 128}) {
      Shape grid;
      for (int axis = 0; axis + 1 < spec_.shape.rank(); ++axis) grid.append(spec_.shape[axis]);
      grid.append(columns_ / group);
      if (columns_ % group != 0 || scales->stored->shape != grid) continue;
      if (biases->stored->shape != grid) {
        wrong_shape(*biases, grid.to_string());
        return std::nullopt;
      }
      view.scale_columns = group;
      view.scale_stride = columns_ / group;
      view.scales = static_cast<const std::uint8_t*>(scales->data());
      view.biases = static_cast<const std::uint8_t*>(biases->data());
      return Weight(spec_.shape, view);
    }
    wrong_shape(*scales, fmt::format("a scale for each 32, 64 or 128 of {} inputs", columns_));
    return std::nullopt;
  }

  const ModelConfig& config_;
  const ShardSet& set_;
  const TensorSpec& spec_;
  ProblemLog& log_;
  std::unordered_set<std::string>& parts_;
  const FoundTensor& found_;
  std::string base_;
  std::int64_t rows_, columns_;
};

}  // namespace

std::optional<Weight> read_weight(const ModelConfig& config, const ShardSet& set, const TensorSpec& spec,
                                  ProblemLog& log, std::unordered_set<std::string>& parts) {
  return Reader(config, set, spec, log, parts).run();
}

}  // namespace rondo
