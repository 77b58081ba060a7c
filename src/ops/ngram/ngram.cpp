#include "ops/ngram/ngram.h"

#include "ops/common/fork.h"
#include "ops/ngram/ngram_cuda.h"
#include "ops/ngram/ngram_kernel.h"
#include "ops/pointwise/pointwise_kernel.h"

namespace rondo {

void ngram_rows(const NgramSpec& spec, std::span<const std::int32_t> history, std::int64_t* rows) {
  CHECK(!history.empty());
  std::uint64_t hash = 0;
  bool cut = false;  // an eos stands between here and the token
  for (int back = 0; back < spec.ngram_size; ++back) {
    const auto at = static_cast<std::int64_t>(history.size()) - 1 - back;
    const bool reaches = at >= 0 && !cut;
    const std::int32_t token = reaches ? history[static_cast<std::size_t>(at)] : spec.eos;
    if (back > 0 && token == spec.eos) cut = true;
    hash ^= static_cast<std::uint64_t>(token) *
            static_cast<std::uint64_t>(spec.multipliers[static_cast<std::size_t>(back)]);
    if (back == 0) continue;  // no unigram heads
    for (int h = 0; h < spec.heads_per_ngram; ++h) {
      const auto head = static_cast<std::size_t>((back - 1) * spec.heads_per_ngram + h);
      rows[head] =
          static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(spec.head_sizes[head])) + spec.head_offsets[head];
    }
  }
}

void ngram_gather(Stream& s, std::span<const Weight> shards, Tensor rows, Tensor out) {
  const std::int64_t heads = rows.width(), dim = shards[0].shape[1], shard_rows = shards[0].shape[0];
  CHECK(out.width() == heads * dim);
  if (s.is_dry()) return;
  CHECK(!s.on_cuda());
  const auto kernel = RONDO_PICK(s.isa(), embed_range);
  fork_rows(s, out.rows(), out.width(), [&](int begin, int end) {
    for (std::int64_t i = begin * heads; i < end * heads; ++i) {
      const std::int64_t row = rows.as<std::int64_t>()[i];
      const auto in_shard = static_cast<std::int32_t>(row % shard_rows);
      kernel({.table = shards[static_cast<std::size_t>(row / shard_rows)].view,
              .ids = &in_shard,
              .out = out.f32() + i * dim,
              .copies = 1,
              .begin = 0,
              .end = 1});
    }
  });
}

void ngram_gate(Stream& s, Tensor key, Tensor query, Tensor value, Tensor out) {
  CHECK(key.width() == query.width() && out.width() == key.width() && key.width() % value.width() == 0);
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, ngram_gate(s, key, query, value, out));
  const auto kernel = RONDO_PICK(s.isa(), ngram_gate_range);
  fork_rows(s, key.rows(), 2 * key.width(), [&](int begin, int end) {
    kernel({.key = key.f32(),
            .query = query.f32(),
            .value = value.f32(),
            .out = out.f32(),
            .hidden = value.width(),
            .streams = static_cast<int>(key.width() / value.width()),
            .begin = begin,
            .end = end});
  });
}

}  // namespace rondo
