// What weight_readers.cuh has of CUDA, for a host that runs its lanes one after the other: it stands before src/ in the
// include path of the op tests.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#define __device__
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31u));
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  unsigned out = 0;
  for (unsigned i = 0; i < 4; ++i) out |= static_cast<unsigned>(bytes >> 8 * (which >> 4 * i & 7u) & 0xFFu) << 8 * i;
  return out;
}
inline void __syncwarp() {}

namespace rondo::cuda {

using std::min;
constexpr int kWarp = 32;
inline float from_bf16(std::uint16_t bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

}  // namespace rondo::cuda
