#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/ngram/ngram_cuda.h"
#include "ops/weight/bf16_lanes.h"

namespace rondo::cuda {

namespace {

constexpr int kThreads = 128;

// All have the first one's shape and format.
struct Shards {
  CodedView first;
  struct Own {
    const std::uint8_t *codes, *scales, *biases;
    float tensor_scale;
  } own[kMaxShards];
};

// One block a (row, head).
__global__ void gather(__grid_constant__ const Shards shards, std::int64_t shard_rows, const std::int64_t* rows,
                       int dim, float* out) {
  after_all_before();
  const auto at = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t row = rows[at];
  const Shards::Own& own = shards.own[row / shard_rows];
  CodedView view = shards.first;
  view.codes = own.codes, view.scales = own.scales, view.biases = own.biases, view.tensor_scale = own.tensor_scale;
  for (int d = threadIdx.x; d < dim; d += kThreads) {
    out[at * dim + d] = bf16_lanes::value_at(view, row % shard_rows, d);
  }
}

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

void ngram_gather(Stream& s, std::span<const Weight> shards, Tensor rows, Tensor out) {
  CHECK(shards.size() <= kMaxShards);
  if (out.rows() == 0) return;
  Shards tables{};
  tables.first = shards[0].view;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const CodedView& view = shards[i].view;
    CHECK(view.format == tables.first.format && view.scale_type == tables.first.scale_type);
    CHECK(view.scale_columns == tables.first.scale_columns && view.scale_rows == tables.first.scale_rows);
    tables.own[i] = {view.codes, view.scales, view.biases, view.tensor_scale};
  }
  const auto blocks = static_cast<unsigned>(out.rows() * rows.width());
  launch(s, "ngram_gather", {blocks, kThreads, 0}, gather, tables, shards[0].shape[0], rows.as<std::int64_t>(),
         static_cast<int>(shards[0].shape[1]), out.f32());
}

void ngram_gate(Stream& s, Tensor key, Tensor query, Tensor value, Tensor out) {
  if (key.rows() == 0) return;
  const auto streams = static_cast<int>(key.width() / value.width());
  launch(s, "ngram_gate", {static_cast<unsigned>(key.rows() * streams), kThreads, 0}, gate, key.f32(), query.f32(),
         value.f32(), out.f32(), static_cast<int>(value.width()), streams);
}

}  // namespace rondo::cuda
