#include "tensor/weight.h"

#include <cmath>
#include <cstring>

#include "tensor/small_floats.h"

namespace rondo {

namespace {

template <class T>
T read(const std::uint8_t* from, std::int64_t index) {
  T value;
  std::memcpy(&value, from + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

float scale_at(const CodedView& view, const std::uint8_t* scales, std::int64_t row, std::int64_t column) {
  const std::int64_t index = row / view.scale_rows * view.scale_stride + column / view.scale_columns;
  switch (view.scale_type) {
    case ScaleType::None: return 1;
    case ScaleType::Bf16: return to_float(BFloat16{read<std::uint16_t>(scales, index)});
    case ScaleType::F16: return half_to_float(read<std::uint16_t>(scales, index));
    case ScaleType::F32: return read<float>(scales, index);
    case ScaleType::E4m3: return e4m3_to_float(scales[index]);
  }
  return 1;
}

unsigned affine_code(const std::uint8_t* row, std::int64_t column, int bits) {
  unsigned code = 0;
  for (int b = 0; b < bits; ++b) {
    const std::int64_t at = column * bits + b;
    code |= ((row[at / 8] >> (at % 8)) & 1u) << b;
  }
  return code;
}

float value_at(const CodedView& view, std::int64_t row, std::int64_t column) {
  const std::uint8_t* codes = view.codes + row * view.row_bytes;
  switch (view.format) {
    case WeightFormat::Bf16: return to_float(BFloat16{read<std::uint16_t>(codes, column)});
    case WeightFormat::F16: return half_to_float(read<std::uint16_t>(codes, column));
    case WeightFormat::F32: return read<float>(codes, column);
    case WeightFormat::Fp8:
      return e4m3_to_float(codes[column]) * scale_at(view, view.scales, row, column) * view.tensor_scale;
    case WeightFormat::Nvfp4: {
      const int pair = codes[column / 2];
      const float code = e2m1_to_float(static_cast<std::uint8_t>(column % 2 == 0 ? pair & 15 : pair >> 4));
      return code * scale_at(view, view.scales, row, column) * view.tensor_scale;
    }
    case WeightFormat::Affine: {
      const auto code = static_cast<float>(affine_code(codes, column, view.bits));
      return std::fma(code, scale_at(view, view.scales, row, column), scale_at(view, view.biases, row, column));
    }
  }
  return 0;
}

WeightFormat plain_format(DType dtype) {
  switch (dtype) {
    case DType::BF16: return WeightFormat::Bf16;
    case DType::F16: return WeightFormat::F16;
    default: break;
  }
  CHECK(dtype == DType::F32);
  return WeightFormat::F32;
}

DType plain_dtype(WeightFormat format) {
  switch (format) {
    case WeightFormat::Bf16: return DType::BF16;
    case WeightFormat::F16: return DType::F16;
    default: break;
  }
  CHECK(format == WeightFormat::F32);
  return DType::F32;
}

}  // namespace

Weight::Weight(const Tensor& plain) : shape(plain.shape) {
  if (shape.rank() == 0) return;  // no weight at all
  view.format = plain_format(plain.dtype);
  view.bits = static_cast<std::uint8_t>(8 * rondo::size_bytes(plain.dtype));
  view.columns = shape[shape.rank() - 1];
  view.rows = view.columns == 0 ? 0 : shape.num_elements() / view.columns;
  view.row_bytes = view.columns * view.bits / 8;
  view.codes = plain.as<std::uint8_t>();
}

Tensor Weight::plain() const { return {view.codes, plain_dtype(view.format), shape}; }

Weight Weight::row_range(std::int64_t begin, std::int64_t count) const {
  CHECK(begin >= 0 && count >= 0 && begin + count <= view.rows && begin % view.scale_rows == 0);
  Weight part({count, view.columns}, view);
  part.view.rows = count;
  if (view.codes != nullptr) part.view.codes += begin * view.row_bytes;
  const auto scales_before =
      begin / view.scale_rows * view.scale_stride * static_cast<std::int64_t>(rondo::size_bytes(view.scale_type));
  if (view.scales != nullptr) part.view.scales += scales_before;
  if (view.biases != nullptr) part.view.biases += scales_before;
  return part;
}

std::uint64_t Weight::scales_bytes() const {
  if (view.scale_type == ScaleType::None) return 0;
  const std::int64_t rows = (view.rows + view.scale_rows - 1) / view.scale_rows;
  return static_cast<std::uint64_t>(rows * view.scale_stride) * rondo::size_bytes(view.scale_type);
}

std::uint64_t Weight::size_bytes() const {
  const std::uint64_t grids = view.format == WeightFormat::Affine ? 2 : 1;
  return static_cast<std::uint64_t>(view.rows * view.row_bytes) + grids * scales_bytes();
}

std::uint64_t size_bytes(ScaleType type) {
  switch (type) {
    case ScaleType::None: return 0;
    case ScaleType::Bf16: return 2;
    case ScaleType::F16: return 2;
    case ScaleType::F32: return 4;
    case ScaleType::E4m3: return 1;
  }
  return 0;
}

std::string format_name(const CodedView& view) {
  switch (view.format) {
    case WeightFormat::Bf16: return "BF16";
    case WeightFormat::F16: return "F16";
    case WeightFormat::F32: return "F32";
    case WeightFormat::Fp8:
      if (view.scale_type == ScaleType::None) return "FP8, one scale";
      if (view.scale_columns >= view.columns && view.scale_rows == 1) return "FP8, a scale a row";
      return "FP8, scales " + std::to_string(view.scale_rows) + " x " + std::to_string(view.scale_columns);
    case WeightFormat::Nvfp4: return "NVFP4";
    case WeightFormat::Affine:
      return "affine " + std::to_string(view.bits) + "-bit, groups of " + std::to_string(view.scale_columns);
  }
  return "";
}

void decode(const CodedView& view, std::int64_t row, std::int64_t begin, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = value_at(view, row, begin + static_cast<std::int64_t>(i));
}

}  // namespace rondo
