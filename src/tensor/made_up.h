// made_up: contents for a quantised matrix that nobody trained: bytes whose decoded values have a mean square of about
// one over the matrix's inputs. The bytes at an even address are (random bits & random) | fixed of the lower half,
// those at an odd one of the upper; so no E4M3 code is NaN, and two bytes make a bfloat16.
#pragma once

#include "tensor/coded_view.h"

namespace rondo {

struct MadeUp {
  struct Bytes {
    std::uint16_t random = 0, fixed = 0;
    constexpr std::uint8_t at(std::int64_t index, std::uint8_t bits) const {
      const int shift = static_cast<int>(index % 2) * 8;
      return static_cast<std::uint8_t>((bits & (random >> shift)) | (fixed >> shift));
    }
  };
  Bytes codes, scales, biases;
  float tensor_scale = 1;
};

// Of Fp8 (scales bfloat16, or one for all), Nvfp4 and Affine (bfloat16).
MadeUp made_up(const CodedView& view);

}  // namespace rondo
