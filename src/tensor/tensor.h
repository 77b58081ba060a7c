// Tensor: a typed view of memory somebody else owns: dtype, shape, data. Contiguous, row-major, outermost first.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"

namespace rondo {

enum class DType : std::uint8_t { F32, F16, BF16, I64, I32, I16, I8, U8, Bool, F64, F8E4M3, F8E5M2, U32 };

std::size_t size_bytes(DType dtype);       // of one element
std::string_view dtype_name(DType dtype);  // as safetensors spells it: "BF16"
std::optional<DType> find_dtype(std::string_view safetensors_name);

class Shape {
 public:
  static constexpr int kMaxRank = 5;
  Shape() = default;  // rank 0: one element
  Shape(std::initializer_list<std::int64_t> dims);
  void append(std::int64_t dim);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const {
    DCHECK(axis >= 0 && axis < rank_);
    return dims_[static_cast<std::size_t>(axis)];
  }
  std::int64_t num_elements() const;
  std::string to_string() const;  // "[12, 64]"
  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// bfloat16 as its bits: the upper half of a float32.
struct BFloat16 {
  std::uint16_t bits;
};
inline float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
BFloat16 to_bfloat16(float value);  // to nearest, ties to even; NaN stays NaN
float half_to_float(std::uint16_t bits);

struct Tensor {
  const void* data = nullptr;
  DType dtype = DType::F32;
  Shape shape;

  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }

  // Activations: float32 [rows, width...]. A view is shallow: an op writes the tensors its contract names as outputs.
  float* f32() const {
    DCHECK(dtype == DType::F32);
    return static_cast<float*>(const_cast<void*>(data));
  }
  std::int32_t* i32() const {
    DCHECK(dtype == DType::I32);
    return static_cast<std::int32_t*>(const_cast<void*>(data));
  }
  const BFloat16* bf16() const {
    CHECK(dtype == DType::BF16);
    return as<BFloat16>();
  }
  int rows() const { return static_cast<int>(shape[0]); }
  std::int64_t width() const { return shape[0] == 0 ? 0 : shape.num_elements() / shape[0]; }  // elements a row
  Tensor slice(std::int64_t begin, std::int64_t count) const;  // rows of the outermost axis
};

}  // namespace rondo
