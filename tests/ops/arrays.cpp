#include "tests/ops/arrays.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace rondo {

namespace {
std::size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.num_elements()) * size_bytes(dtype);
}
}  // namespace

Array::Array(DType dtype, Shape shape)
    : dtype_(dtype), shape_(shape), bytes_(std::make_unique<std::byte[]>(bytes_of(dtype, shape))) {
  std::memset(bytes_.get(), 0xFF, bytes_of(dtype, shape));
}

Array Array::zeros(Shape shape) { return constant_f32(shape, 0); }

float random_value(std::uint64_t seed, std::uint64_t index, Values values) {
  const auto even = static_cast<float>(2 * unit_interval(random_bits(seed, index, 1)) - 1);
  if (values == Values::Even) return even;
  switch (random_bits(seed, index, 2) % 8) {
    case 0: return 0;
    case 1: return even * 300;
    case 2: return even * 1e-6F;
    default: return even;
  }
}

Array random_f32(Shape shape, std::uint64_t seed, Values values) {
  Array out = Array::f32(shape);
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    out.f32()[i] = random_value(seed, static_cast<std::uint64_t>(i), values);
  }
  return out;
}

Array random_bf16(Shape shape, std::uint64_t seed, Values values) {
  Array out(DType::BF16, shape);
  auto* to = const_cast<BFloat16*>(out.tensor().bf16());
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    to[i] = to_bfloat16(random_value(seed, static_cast<std::uint64_t>(i), values));
  }
  return out;
}

Array constant_f32(Shape shape, float value) {
  Array out = Array::f32(shape);
  std::fill_n(out.f32(), out.num_elements(), value);
  return out;
}

float bf16_at(Tensor weight, std::int64_t row, std::int64_t column) {
  return to_float(weight.bf16()[row * weight.width() + column]);
}

Array rows_of(Tensor x, const std::vector<int>& rows) {
  Array out = Array::f32({static_cast<std::int64_t>(rows.size()), x.width()});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(x.f32() + rows[i] * x.width(), x.width(), out.row(static_cast<std::int64_t>(i)));
  }
  return out;
}

}  // namespace rondo
