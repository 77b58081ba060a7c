// Weight: a view of a weight matrix in whatever format its checkpoint has it, read where it lies; and its exact values.
#pragma once

#include <concepts>
#include <span>
#include <string>

#include "tensor/coded_view.h"
#include "tensor/tensor.h"

namespace rondo {

// [out, in], or a stack of such [n, out, in], whose view has n * out rows.
struct Weight {
  Shape shape;
  CodedView view;

  Weight() = default;
  // Plain values: BF16, F16 or F32, anything else is a CHECK. Implicit, so that a tensor can stand for a weight.
  Weight(const Tensor& plain);  // NOLINT(google-explicit-constructor)
  template <class T>
  requires(!std::same_as<T, Tensor> && std::convertible_to<const T&, Tensor>) Weight(const T& plain)
      : Weight(static_cast<Tensor>(plain)) {}  // NOLINT(google-explicit-constructor)
  Weight(Shape of_values, const CodedView& coded) : shape(of_values), view(coded) {}

  bool is_plain() const { return view.format <= WeightFormat::F32; }
  Tensor plain() const;  // CHECKs that it is
  // Rows [begin, begin + count) of the view, as [count, in]. Where rows share scales (Fp8), begin is the first of such.
  Weight row_range(std::int64_t begin, std::int64_t count) const;

  std::uint64_t scales_bytes() const;  // of scales; biases have as many
  std::uint64_t size_bytes() const;    // codes, scales and biases: what reading it reads
};

std::uint64_t size_bytes(ScaleType type);
std::string format_name(const CodedView& view);  // "BF16", "FP8 128x128", "NVFP4", "affine 4-bit, groups of 64"

// Columns [begin, begin + out.size()) of one row, by the formula of coded_view.h: the definition kernels are held to.
void decode(const CodedView& view, std::int64_t row, std::int64_t begin, std::span<float> out);

}  // namespace rondo
