// Tensors cut from reserved memory: Arena hands it out for good, Scratch for the length of a call.
//
// Nothing here grows. A take that does not fit is a CHECK: the memory plan was wrong, and a wrong plan must not serve.
#pragma once

#include "device/memory.h"
#include "tensor/tensor.h"

namespace rondo {

// Cuts tensors from a region, one after the other. Without a region it only counts: the plan and the reservation then
// run through the same code, and cannot disagree.
class Arena {
 public:
  Arena() = default;  // counts
  explicit Arena(const Buffer& buffer) : base_(buffer.data()), capacity_bytes_(buffer.size_bytes()) {}

  Tensor take(DType dtype, Shape shape);
  std::size_t used_bytes() const { return used_bytes_; }
  bool counts_only() const { return base_ == nullptr; }

 private:
  std::byte* base_ = nullptr;
  std::size_t capacity_bytes_ = 0;
  std::size_t used_bytes_ = 0;
};

// Scratch goes by value: what a callee takes is free again when it returns. `peak` remembers the most ever in use.
class Scratch {
 public:
  Scratch(const Buffer& buffer, std::size_t* peak_bytes)
      : base_(buffer.data()), capacity_bytes_(buffer.size_bytes()), peak_bytes_(peak_bytes) {}
  static Scratch counting(std::size_t* peak_bytes) { return Scratch(peak_bytes); }

  Tensor take(DType dtype, Shape shape);
  Tensor take_f32(std::initializer_list<std::int64_t> dims) { return take(DType::F32, Shape(dims)); }
  Tensor take_i32(std::initializer_list<std::int64_t> dims) { return take(DType::I32, Shape(dims)); }

 private:
  explicit Scratch(std::size_t* peak_bytes) : peak_bytes_(peak_bytes) {}
  std::byte* base_ = nullptr;
  std::size_t capacity_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t* peak_bytes_;
};

}  // namespace rondo
