// See warp.cuh beside this. A copy is done at once: what is shown is where from and where to, not when.
#pragma once

#include <cstddef>
#include <cstring>

#include "base/check.h"
#include "ops/common/warp.cuh"

namespace rondo::cuda {

inline uint4 read_weight(const std::uint16_t* at) {
  uint4 out;
  std::memcpy(&out, at, sizeof out);
  return out;
}
// A warp's matrices: every lane says where its row is, in a first run of the lanes, and reads in a second one.
struct MatrixRows {
  const std::byte* row[kWarp] = {};
  int lane = 0;
  bool is_read = false;
};
inline MatrixRows matrix_rows;
inline uint4 read_matrices(const void* row) {
  MatrixRows& of = matrix_rows;
  if (!of.is_read) {
    of.row[of.lane] = static_cast<const std::byte*>(row);
    return {};
  }
  unsigned words[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&words[i], of.row[i * 8 + of.lane / 4] + of.lane % 4 * 4, sizeof words[i]);
  return {words[0], words[1], words[2], words[3]};
}
template <int Bytes>
void copy_async(void* to, const void* from) {
  CHECK(reinterpret_cast<std::uintptr_t>(to) % Bytes == 0 && reinterpret_cast<std::uintptr_t>(from) % Bytes == 0);
  std::memcpy(to, from, Bytes);
}
inline void commit_copies() {}
template <int Pending>
void wait_for_copies() {}

}  // namespace rondo::cuda
