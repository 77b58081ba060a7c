#include "tensor/arena.h"

#include <algorithm>

namespace rondo {

namespace {

std::size_t rounded_up(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::size_t tensor_bytes(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.num_elements()) * size_bytes(dtype);
}

}  // namespace

Tensor Arena::take(DType dtype, Shape shape) {
  const std::size_t begin = used_bytes_;
  used_bytes_ += rounded_up(tensor_bytes(dtype, shape));
  if (base_ == nullptr) return {nullptr, dtype, shape};
  CHECK(used_bytes_ <= capacity_bytes_);
  return {base_ + begin, dtype, shape};
}

Tensor Scratch::take(DType dtype, Shape shape) {
  const std::size_t begin = used_bytes_;
  used_bytes_ += rounded_up(tensor_bytes(dtype, shape));
  *peak_bytes_ = std::max(*peak_bytes_, used_bytes_);
  if (base_ == nullptr) return {nullptr, dtype, shape};
  CHECK(used_bytes_ <= capacity_bytes_);
  return {base_ + begin, dtype, shape};
}

}  // namespace rondo
