#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/ngram/ngram_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kThreads = 128;

// One block a (row, stream).
__global__ void gate(const float* key, const float* query, const float* value, float* out, int hidden, int streams) {
  after_all_before();
  const auto at = static_cast<std::int64_t>(blockIdx.x) * hidden;
  float dot = 0;
  for (int d = threadIdx.x; d < hidden; d += kThreads) dot = fmaf(key[at + d], query[at + d], dot);
  const float score = block_sum<kThreads>(dot) / sqrtf(static_cast<float>(hidden));
  const float root = copysignf(sqrtf(fmaxf(fabsf(score), 1e-6F)), score);
  const float open = score == 0 ? 0.5F : 1.0F / (1.0F + expf(-root));
  const float* from = value + static_cast<std::int64_t>(blockIdx.x / streams) * hidden;
  for (int d = threadIdx.x; d < hidden; d += kThreads) out[at + d] = open * from[d];
}

}  // namespace

void ngram_gate(Stream& s, Tensor key, Tensor query, Tensor value, Tensor out) {
  if (key.rows() == 0) return;
  const auto streams = static_cast<int>(key.width() / value.width());
  launch(s, "ngram_gate", {static_cast<unsigned>(key.rows() * streams), kThreads, 0}, gate, key.f32(), query.f32(),
         value.f32(), out.f32(), static_cast<int>(value.width()), streams);
}

}  // namespace rondo::cuda
