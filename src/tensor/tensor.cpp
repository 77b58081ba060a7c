#include "tensor/tensor.h"

#include <bit>
#include <cmath>

namespace rondo {

namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr DTypeRow kDTypes[] = {
    {DType::F32, "F32", 4},   {DType::F16, "F16", 2}, {DType::BF16, "BF16", 2},      {DType::I64, "I64", 8},
    {DType::I32, "I32", 4},   {DType::I16, "I16", 2}, {DType::I8, "I8", 1},          {DType::U8, "U8", 1},
    {DType::Bool, "BOOL", 1}, {DType::F64, "F64", 8}, {DType::F8E4M3, "F8_E4M3", 1}, {DType::F8E5M2, "F8_E5M2", 1},
    {DType::U32, "U32", 4},
};

const DTypeRow& row(DType dtype) {
  const auto& found = kDTypes[static_cast<std::size_t>(dtype)];
  DCHECK(found.dtype == dtype);
  return found;
}

}  // namespace

std::size_t size_bytes(DType dtype) { return row(dtype).bytes; }
std::string_view dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> find_dtype(std::string_view safetensors_name) {
  for (const auto& each : kDTypes) {
    if (each.name == safetensors_name) return each.dtype;
  }
  return std::nullopt;
}

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  for (const std::int64_t dim : dims) append(dim);
}

void Shape::append(std::int64_t dim) {
  CHECK(rank_ < kMaxRank);
  dims_[static_cast<std::size_t>(rank_++)] = dim;
}

std::int64_t Shape::num_elements() const {
  std::int64_t n = 1;
  for (int axis = 0; axis < rank_; ++axis) n *= dims_[static_cast<std::size_t>(axis)];
  return n;
}

std::string Shape::to_string() const {
  std::string out = "[";
  for (int axis = 0; axis < rank_; ++axis) {
    if (axis > 0) out += ", ";
    out += std::to_string(dims_[static_cast<std::size_t>(axis)]);
  }
  return out + "]";
}

Tensor Tensor::slice(std::int64_t begin, std::int64_t count) const {
  CHECK(begin >= 0 && count >= 0 && begin + count <= shape[0]);
  Shape sliced{count};
  for (int axis = 1; axis < shape.rank(); ++axis) sliced.append(shape[axis]);
  if (data == nullptr) return {nullptr, dtype, sliced};
  const auto row_bytes = static_cast<std::int64_t>(size_bytes(dtype)) * width();
  return {static_cast<const std::byte*>(data) + begin * row_bytes, dtype, sliced};
}

BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

float half_to_float(std::uint16_t bits) {
  const bool negative = (bits & 0x8000u) != 0;
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  }
  return negative ? -magnitude : magnitude;
}

}  // namespace rondo
