// Memory that is reserved once: Buffer owns it, Arena hands it out for good, Scratch for the length of a call.
//
// Nothing here grows. A take that does not fit is a CHECK: the memory plan was wrong, and a wrong plan must not serve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace rondo {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

// Pages from the operating system, zeroed and touched: reserving them is having them.
class Buffer {
 public:
  static Result<Buffer> reserve(std::size_t size_bytes, const std::string& what);  // Io, naming `what` and the size
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

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

// What is reserved, line by line, before anything is.
struct MemoryPlan {
  struct Item {
    std::string what;
    std::uint64_t bytes = 0;
    bool mapped = false;  // stays in the mapped file, not reserved
  };
  std::vector<Item> lines;
  std::uint64_t reserved_bytes() const;
  std::string to_string() const;  // a table, one line an item, total last
};

}  // namespace rondo
