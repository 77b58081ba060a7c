#include "ops/attention/attention_kernel.h"
#include "ops/common/simd.h"

namespace rondo::RONDO_ISA {

void head_norm_rope(const HeadNorm& r) {
  F32 squares = zeros();
  for_lanes(r.dim, [&](std::int64_t d, int lanes) {
    const F32 v = load_n(r.x + d, lanes);
    squares = fma(v, v, squares);
  });
  const F32 scale = all(1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(r.dim) + r.eps));
  for_lanes(r.dim, [&](std::int64_t d, int lanes) {
    store_n(r.out + d, load_n(r.x + d, lanes) * scale * load_n(r.gain + d, lanes), lanes);
  });
  const int half = r.rotary_dim / 2;
  for_lanes(half, [&](std::int64_t i, int lanes) {
    const F32 low = load_n(r.out + i, lanes), high = load_n(r.out + half + i, lanes);
    const F32 cos = load_n(r.cos + i, lanes), sin = load_n(r.sin + i, lanes);
    store_n(r.out + i, low * cos - high * sin, lanes);
    store_n(r.out + half + i, high * cos + low * sin, lanes);
  });
}

namespace {

constexpr int kTogether = 4;  // positions whose scores are summed up at once
constexpr int kMany = 16;     // and of long runs, by the same tree

// The positions a row sees, as runs inside one cache block, in ascending order: step(first position, count).
template <class Step>
void for_runs(const AttentionUnit& r, Step step) {
  const auto cut = [&](int begin, int end) {
    while (begin < end) {
      const int block_end = (begin / r.block_tokens + 1) * r.block_tokens;
      const int stop = block_end < end ? block_end : end;
      step(begin, stop - begin);
      begin = stop;
    }
  };
  if (r.selected == nullptr) return cut(r.first_pos, r.pos + 1);
  for (int i = 0; i < r.num_selected; ++i) {
    cut(r.selected[i] * r.selected_tokens, (r.selected[i] + 1) * r.selected_tokens);
  }
  cut((r.pos + 1) / r.selected_tokens * r.selected_tokens, r.pos + 1);
}

const float* row_of(const AttentionUnit& r, const float* cache, int pos) {
  return cache + r.blocks[pos / r.block_tokens] * r.block_stride +
         static_cast<std::int64_t>(pos % r.block_tokens) * r.head_dim;
}

// scores[0 .. 4 Quads) = q . the keys from `keys` on; `count` of them are there, further ones repeat the last.
template <int Quads>
void score_keys(const float* q, const float* keys, int count, std::int64_t head_dim, float* scores) {
  const float* k[Quads * kTogether];
  for (int j = 0; j < Quads * kTogether; ++j)
    k[j] = keys + static_cast<std::int64_t>(j < count ? j : count - 1) * head_dim;
  F32 sums[Quads][kTogether];
  for (int i = 0; i < Quads; ++i) {
    for (int j = 0; j < kTogether; ++j) sums[i][j] = zeros();
  }
  for_lanes(head_dim, [&](std::int64_t d, int lanes) {
    const F32 query = load_n(q + d, lanes);
    for (int i = 0; i < Quads; ++i) {
      for (int j = 0; j < kTogether; ++j) {
        sums[i][j] = fma(query, load_n(k[i * kTogether + j] + d, lanes), sums[i][j]);
      }
    }
  });
  if constexpr (Quads == 4) {
    sum4x4(sums, scores, kTogether);
  } else {
    sum4(sums[0][0], sums[0][1], sums[0][2], sums[0][3], scores);
  }
}

// scores[h, i] = q_h . k_i for the i-th visible position; returns how many there are.
std::int64_t score_positions(const AttentionUnit& r) {
  std::int64_t seen = 0;
  for_runs(r, [&](int first, int count) {
    const float* keys = row_of(r, r.keys, first);
    int i = 0;
    for (; i + kMany <= count; i += kMany) {
      for (int h = 0; h < r.group; ++h) {
        score_keys<kMany / kTogether>(r.q + h * r.head_dim, keys + static_cast<std::int64_t>(i) * r.head_dim, kMany,
                                      r.head_dim, r.scores + h * r.scores_stride + seen + i);
      }
    }
    for (; i < count; i += kTogether) {
      for (int h = 0; h < r.group; ++h) {
        float totals[kTogether];
        score_keys<1>(r.q + h * r.head_dim, keys + static_cast<std::int64_t>(i) * r.head_dim, count - i, r.head_dim,
                      totals);
        for (int j = 0; j < kTogether && i + j < count; ++j) r.scores[h * r.scores_stride + seen + i + j] = totals[j];
      }
    }
    seen += count;
  });
  return seen;
}

// scores = e^(scale (score - most)); returns 1 / their sum.
float soften(float* scores, std::int64_t n, float scale) {
  float most = scores[0];
  for (std::int64_t i = 1; i < n; ++i) most = scores[i] > most ? scores[i] : most;
  F32 sums = zeros();
  for_lanes(n, [&](std::int64_t i, int lanes) {
    const F32 weight = exp((load_n(scores + i, lanes) - all(most)) * all(scale));
    store_n(scores + i, weight, lanes);
    sums = sums + load_n(scores + i, lanes);  // read back: lanes past the end count as zero
  });
  return 1.0F / sum(sums);
}

// out_h[j ..] = sum_i weight[h, i] v_i[j ..], for Vectors vectors of the head.
template <int Vectors>
void mix_values(const AttentionUnit& r, int h, int j, int lanes, F32* mixed) {
  for (int i = 0; i < Vectors; ++i) mixed[i] = zeros();
  const float* weight = r.scores + h * r.scores_stride;
  for_runs(r, [&](int first, int count) {
    const float* values = row_of(r, r.values, first) + j;
    for (int i = 0; i < count; ++i) {
      const F32 w = all(*weight++);
      for (int v = 0; v < Vectors; ++v) {
        mixed[v] = fma(w, load_n(values + static_cast<std::int64_t>(i) * r.head_dim + v * kLanes, lanes), mixed[v]);
      }
    }
  });
}

template <int Vectors>
void mix_and_gate(const AttentionUnit& r, int h, int j, int lanes, float inverse_sum) {
  F32 mixed[Vectors];
  mix_values<Vectors>(r, h, j, lanes, mixed);
  const float* gate = r.gate + h * 2 * r.head_dim + r.head_dim + j;
  for (int v = 0; v < Vectors; ++v) {
    const F32 open = sigmoid(load_n(gate + v * kLanes, lanes));
    store_n(r.out + h * r.head_dim + j + v * kLanes, mixed[v] * all(inverse_sum) * open, lanes);
  }
}

}  // namespace

void attend(const AttentionUnit& r) {
  const std::int64_t seen = score_positions(r);
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(r.head_dim));
  for (int h = 0; h < r.group; ++h) {
    const float inverse_sum = soften(r.scores + h * r.scores_stride, seen, scale);
    int j = 0;
    for (; j + 4 * kLanes <= r.head_dim; j += 4 * kLanes) mix_and_gate<4>(r, h, j, kLanes, inverse_sum);
    for (; j < r.head_dim; j += kLanes) {
      mix_and_gate<1>(r, h, j, r.head_dim - j < kLanes ? r.head_dim - j : kLanes, inverse_sum);
    }
  }
}

void score_blocks(const BlockScores& r) {
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(r.head_dim));
  for (int i = 0; i < r.num_blocks; ++i) {
    const int b = r.first_block + i;
    const float* key = r.pooled + (static_cast<std::int64_t>(r.blocks[b / r.pooled_per_block]) * r.pooled_per_block +
                                   b % r.pooled_per_block) *
                                      r.head_dim;
    float total = 0;
    for (int h = 0; h < r.heads; ++h) {
      F32 dot = zeros();
      for_lanes(r.head_dim, [&](std::int64_t d, int lanes) {
        dot = fma(load_n(r.queries + h * r.head_dim + d, lanes), load_n(key + d, lanes), dot);
      });
      const float product = sum(dot);
      total += product > 0 ? product : 0.0F;
    }
    r.scores[i] = total * scale;
  }
}

}  // namespace rondo::RONDO_ISA
