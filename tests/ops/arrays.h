// Arrays: tensors with memory of their own, of exactly their size, so that the address sanitizer sees a read past the
// end; on a machine with a GPU in pinned memory, which its kernels read and write at the same address. Random contents
// are a function of a seed.
#pragma once

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace rondo {

class Array {
 public:
  Array(DType dtype, Shape shape);  // every bit set: as floats NaN, so that an element nobody wrote shows
  static Array f32(Shape shape) { return {DType::F32, shape}; }
  static Array zeros(Shape shape);

  operator Tensor() const { return tensor(); }
  Tensor tensor() const { return {bytes_.get(), dtype_, shape_}; }
  const Shape& shape() const { return shape_; }
  float* f32() const { return tensor().f32(); }
  std::int32_t* i32() const { return tensor().i32(); }
  std::int64_t* i64() const { return reinterpret_cast<std::int64_t*>(bytes_.get()); }
  int rows() const { return tensor().rows(); }
  std::int64_t width() const { return tensor().width(); }
  std::int64_t num_elements() const { return shape_.num_elements(); }
  float* row(std::int64_t r) const { return f32() + r * width(); }
  std::vector<float> to_vector() const { return {f32(), f32() + num_elements()}; }

 private:
  DType dtype_;
  Shape shape_;
  std::unique_ptr<std::byte[], void (*)(std::byte*)> bytes_;
};

// Even: between -1 and 1. Wild: zeros, values of some hundreds and of some millionths among them.
enum class Values { Even, Wild };
float random_value(std::uint64_t seed, std::uint64_t index, Values values);
Array random_f32(Shape shape, std::uint64_t seed, Values values = Values::Even);
Array random_bf16(Shape shape, std::uint64_t seed, Values values = Values::Even);
Array constant_f32(Shape shape, float value);

float bf16_at(Tensor weight, std::int64_t row, std::int64_t column);

// The given rows of x, side by side in that order; the tests' own copy loop, not the op.
Array rows_of(Tensor x, const std::vector<int>& rows);

}  // namespace rondo
