// encode: float32 values into one of the quantised formats, each code the nearest that its scales allow.
//
//   Fp8      scales so that the largest of a block (or of all, by_tensor) becomes 448; block scales bfloat16
//   Nvfp4    tensor_scale = largest / (6 * 448); a block's scale = its largest / (6 * tensor_scale), to E4M3
//   Affine   bias = the group's least, scale = (largest - least) / (2^bits - 1), both bfloat16
//
// A scale that came out as 0 (nothing but zeros) is 1. Values are finite. For checkpoints of tests and benches.
#pragma once

#include <span>
#include <vector>

#include "tensor/weight.h"

namespace rondo {

struct EncodedWeight {
  EncodedWeight() = default;
  EncodedWeight(EncodedWeight&&) noexcept = default;  // a copy's weight would point into the original
  EncodedWeight& operator=(EncodedWeight&&) noexcept = default;

  Weight weight;  // points into the three below
  std::vector<std::uint8_t> codes, scales, biases;
};

struct EncodeSpec {
  WeightFormat format = WeightFormat::Fp8;  // Fp8, Nvfp4 or Affine
  bool by_tensor = false;                   // Fp8: one scale
  std::int64_t block = 128;                 // Fp8: rows and columns of a block
  int bits = 4;                             // Affine
  std::int64_t group = 64;                  // Affine
};
bool can_encode(const EncodeSpec& spec, std::int64_t columns);  // whether rows of that length fall into whole groups
EncodedWeight encode(std::span<const float> values, std::int64_t columns, const EncodeSpec& spec);

}  // namespace rondo
