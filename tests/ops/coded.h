// Quantised weights where ops of any instruction set read them, and the plain weights that they stand for.
#pragma once

#include <functional>

#include "tensor/encode.h"
#include "tests/ops/machine.h"

namespace rondo {

// Matrices of one shape and format, evenly spaced, in memory that a GPU reads too.
class CodedWeights {
 public:
  explicit CodedWeights(const std::vector<CodedView>& views);
  explicit CodedWeights(const CodedView& view) : CodedWeights(std::vector{view}) {}
  // random_f32({rows, columns}, seed, values), encoded.
  static CodedWeights random(std::int64_t rows, std::int64_t columns, const EncodeSpec& spec,
                             Values values = Values::Even, std::uint64_t seed = 7);

  std::size_t size() const { return weights_.size(); }
  const Weight& operator[](std::size_t i) const { return weights_[i]; }
  operator const Weight&() const { return weights_[0]; }
  const CodedView& view() const { return weights_[0].view; }

 private:
  std::vector<Array> kept_;
  std::vector<Weight> weights_;
};

// Weights whose product, multiplied by `factor`, has the bits of the quantised one's: on a CPU decode()'s, in float32;
// on a GPU bfloat16 without the tensor scale (ops/linear/linear_cuda.h).
struct Decoded {
  Array weight;
  float factor;
};
Decoded decoded_for(Isa isa, const Weight& weight);

// Every quantised format, in the shapes that a GPU has kernels of their own for, and in others.
std::vector<EncodeSpec> all_specs();
std::vector<EncodeSpec> fast_specs();

}  // namespace rondo
