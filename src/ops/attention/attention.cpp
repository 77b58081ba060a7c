#include "ops/attention/attention.h"

#include "ops/attention/attention_cuda.h"
#include "ops/attention/attention_kernel.h"
#include "ops/common/fork.h"

namespace rondo {

namespace {

// Where a row of the batch stands.
struct RowPlace {
  int pos, first_pos;
  const std::int32_t* blocks;
};

// place(row) for every row of the spans.
template <class Visit>
void for_rows(std::span<const RowSpan> spans, int begin, int end, Visit visit) {
  for (const RowSpan& span : spans) {
    const int first = std::max(begin, span.begin);
    const int last = std::min(end, span.begin + span.count);
    for (int row = first; row < last; ++row)
      visit(row, RowPlace{span.start_pos + row - span.begin, span.first_pos, span.blocks});
  }
}

std::int64_t cache_row(const RowPlace& place, std::int64_t block_tokens) {
  return place.blocks[place.pos / block_tokens] * block_tokens + place.pos % block_tokens;
}

HeadNorm turned(const float* x, const float* gain, Tensor rope_table, int pos, int dim, int rotary_dim, float eps,
                float* out) {
  const float* cos = rope_table.f32() + static_cast<std::int64_t>(pos) * rotary_dim;
  return {.x = x,
          .gain = gain,
          .cos = cos,
          .sin = cos + rotary_dim / 2,
          .out = out,
          .dim = dim,
          .rotary_dim = rotary_dim,
          .eps = eps};
}

}  // namespace

void attention_write(Stream& s, const RowSpans& batch, Tensor q_gate, Tensor k, Tensor v, HeadGains gains,
                     Tensor rope_table, AttentionSpec spec, KvCache cache, Tensor q) {
  const std::int64_t dim = spec.head_dim;
  CHECK(q_gate.width() == 2 * spec.q_heads * dim && k.width() == spec.kv_heads * dim && v.width() == k.width());
  CHECK(q.width() == spec.q_heads * dim && cache.keys.shape[2] == spec.block_tokens);
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, attention_write(s, batch, q_gate, k, v, gains, rope_table, spec, cache, q));
  const std::span<const RowSpan> spans = batch.host;
  const auto norm_rope = RONDO_PICK(s.isa(), head_norm_rope);
  const auto write_row = [&](int row, RowPlace place) {
    for (int h = 0; h < spec.q_heads; ++h) {
      norm_rope(turned(q_gate.f32() + row * q_gate.width() + 2 * h * dim, gains.q.f32(), rope_table, place.pos,
                       spec.head_dim, spec.rotary_dim, spec.eps, q.f32() + row * q.width() + h * dim));
    }
    const std::int64_t block = place.blocks[place.pos / spec.block_tokens], offset = place.pos % spec.block_tokens;
    for (int h = 0; h < spec.kv_heads; ++h) {
      const std::int64_t at = ((block * spec.kv_heads + h) * spec.block_tokens + offset) * dim;
      const std::int64_t from = row * k.width() + h * dim;
      norm_rope(turned(k.f32() + from, gains.k.f32(), rope_table, place.pos, spec.head_dim, spec.rotary_dim, spec.eps,
                       cache.keys.f32() + at));
      std::copy_n(v.f32() + from, dim, cache.values.f32() + at);
    }
  };
  fork_rows(s, q_gate.rows(), 4 * q_gate.width(), [&](int begin, int end) { for_rows(spans, begin, end, write_row); });
}

void attention(Stream& s, const RowSpans& batch, Tensor q, Tensor q_gate, KvCache cache, const Selection* selection,
               AttentionSpec spec, int max_positions, Scratch scratch, Tensor out) {
  RONDO_ON_CUDA(s, attention(s, batch, q, q_gate, cache, selection, spec, max_positions, scratch, out));
  const std::span<const RowSpan> spans = batch.host;
  const int group = spec.q_heads / spec.kv_heads;
  const Tensor scores = scratch.take_f32({s.pool().num_threads(), group, max_positions});
  if (s.is_dry()) return;
  const auto kernel = RONDO_PICK(s.isa(), attend);
  const std::int64_t dim = spec.head_dim, head_block = spec.block_tokens * dim;
  // A unit is one row and KV head; units of a row stand side by side.
  const auto run_unit = [&](int part, int unit, int row, RowPlace place) {
    const int kv_head = unit % spec.kv_heads;
    const int count = selection != nullptr ? selection->count.i32()[row] : kDense;
    const std::int64_t head =
        static_cast<std::int64_t>(row) * spec.q_heads + static_cast<std::int64_t>(kv_head) * group;
    kernel({.q = q.f32() + head * dim,
            .gate = q_gate.f32() + head * 2 * dim,
            .keys = cache.keys.f32() + kv_head * head_block,
            .values = cache.values.f32() + kv_head * head_block,
            .blocks = place.blocks,
            .selected = count == kDense ? nullptr : selection->blocks.i32() + row * selection->blocks.width(),
            .scores = scores.slice(part, 1).f32(),
            .out = out.f32() + head * dim,
            .block_stride = spec.kv_heads * head_block,
            .scores_stride = max_positions,
            .num_selected = count,
            .selected_tokens = selection != nullptr ? selection->block_tokens : 0,
            .block_tokens = spec.block_tokens,
            .head_dim = spec.head_dim,
            .group = group,
            .first_pos = place.first_pos,
            .pos = place.pos});
  };
  std::int64_t positions = 0;
  for (const RowSpan& span : spans) positions += static_cast<std::int64_t>(span.count) * (span.start_pos + span.count);
  const int units = q.rows() * spec.kv_heads;
  fork_parts(s, units, 2 * positions * group * dim / std::max(q.rows(), 1), [&](int part, int begin, int end) {
    for (int unit = begin; unit < end;) {
      const int row = unit / spec.kv_heads;
      const int stop = std::min(end, (row + 1) * spec.kv_heads);
      for_rows(spans, row, row + 1, [&](int at, RowPlace place) {
        for (int u = unit; u < stop; ++u) run_unit(part, u, at, place);
      });
      unit = stop;
    }
  });
}

namespace {

// The rows' index keys into the cache, and the pooled key of each block they complete.
void write_index_keys(Stream& s, std::span<const RowSpan> spans, Tensor index_qk, HeadGains gains, Tensor rope_table,
                      const IndexerSpec& spec, IndexCache cache) {
  const auto norm_rope = RONDO_PICK(s.isa(), head_norm_rope);
  const std::int64_t dim = spec.head_dim;
  for_rows(spans, 0, index_qk.rows(), [&](int row, RowPlace place) {
    const float* key = index_qk.f32() + row * index_qk.width() + spec.heads * dim;
    std::copy_n(key, dim, cache.raw.f32() + cache_row(place, spec.cache_block_tokens) * dim);
  });
  for_rows(spans, 0, index_qk.rows(), [&](int, RowPlace place) {
    if ((place.pos + 1) % spec.block_tokens != 0) return;
    const RowPlace first{place.pos + 1 - spec.block_tokens, place.first_pos, place.blocks};
    const std::int64_t raw_row = cache_row(first, spec.cache_block_tokens);
    float* pooled = cache.pooled.f32() + raw_row / spec.block_tokens * dim;
    for (std::int64_t d = 0; d < dim; ++d) {
      float total = 0;
      for (int i = 0; i < spec.block_tokens; ++i) total += cache.raw.f32()[(raw_row + i) * dim + d];
      pooled[d] = total / static_cast<float>(spec.block_tokens);
    }
    norm_rope(turned(pooled, gains.k.f32(), rope_table, first.pos, spec.head_dim, spec.rotary_dim, spec.eps, pooled));
  });
}

// The `keep` best of the n blocks from `first`, ascending; ties to the lower block. order: scratch [n].
void best_blocks(const float* scores, int first, int n, int keep, std::int32_t* order, std::int32_t* chosen) {
  for (int i = 0; i < n; ++i) order[i] = i;
  std::nth_element(order, order + keep, order + n, [&](std::int32_t a, std::int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  std::sort(order, order + keep);
  for (int i = 0; i < keep; ++i) chosen[i] = first + order[i];
}

}  // namespace

void select_blocks(Stream& s, const RowSpans& batch, Tensor index_qk, HeadGains gains, Tensor rope_table,
                   IndexerSpec spec, IndexCache cache, int max_positions, Scratch scratch, Selection selection) {
  CHECK(index_qk.width() == (spec.heads + 1) * spec.head_dim && spec.cache_block_tokens % spec.block_tokens == 0);
  RONDO_ON_CUDA(s,
                select_blocks(s, batch, index_qk, gains, rope_table, spec, cache, max_positions, scratch, selection));
  const std::span<const RowSpan> spans = batch.host;
  const std::int64_t max_blocks = max_positions / spec.block_tokens + 1;
  const Tensor scores = scratch.take_f32({s.pool().num_threads(), max_blocks});
  const Tensor order = scratch.take_i32({s.pool().num_threads(), max_blocks});
  if (s.is_dry()) return;
  write_index_keys(s, spans, index_qk, gains, rope_table, spec, cache);
  const auto norm_rope = RONDO_PICK(s.isa(), head_norm_rope);
  const auto score = RONDO_PICK(s.isa(), score_blocks);
  const auto choose = [&](int part, int row, RowPlace place) {
    const int first_block = place.first_pos / spec.block_tokens;
    const int whole = (place.pos + 1) / spec.block_tokens - first_block;
    selection.count.i32()[row] = whole <= spec.budget_blocks ? kDense : spec.budget_blocks;
    if (whole <= spec.budget_blocks) return;  // everything is visible: the same as dense
    float* queries = index_qk.f32() + row * index_qk.width();
    for (int h = 0; h < spec.heads; ++h) {
      float* query = queries + h * spec.head_dim;
      norm_rope(turned(query, gains.q.f32(), rope_table, place.pos, spec.head_dim, spec.rotary_dim, spec.eps, query));
    }
    float* row_scores = scores.slice(part, 1).f32();
    score({.queries = queries,
           .pooled = cache.pooled.f32(),
           .blocks = place.blocks,
           .scores = row_scores,
           .pooled_per_block = spec.cache_block_tokens / spec.block_tokens,
           .heads = spec.heads,
           .head_dim = spec.head_dim,
           .first_block = first_block,
           .num_blocks = whole});
    best_blocks(row_scores, first_block, whole, spec.budget_blocks, order.slice(part, 1).i32(),
                selection.blocks.i32() + row * selection.blocks.width());
  };
  std::int64_t positions = 0;
  for (const RowSpan& span : spans) positions += static_cast<std::int64_t>(span.count) * (span.start_pos + span.count);
  const std::int64_t each = positions / spec.block_tokens * spec.heads * spec.head_dim / std::max(index_qk.rows(), 1);
  fork_parts(s, index_qk.rows(), each, [&](int part, int begin, int end) {
    for_rows(spans, begin, end, [&](int row, RowPlace place) { choose(part, row, place); });
  });
}

}  // namespace rondo
