#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/attention_kernel.h"

namespace rondo::reference {

void head_norm_rope(const HeadNorm& r) {
  float squares = 0;
  for (int d = 0; d < r.dim; ++d) squares += r.x[d] * r.x[d];
  const float scale = 1.0F / std::sqrt(squares / static_cast<float>(r.dim) + r.eps);
  for (int d = 0; d < r.dim; ++d) r.out[d] = r.x[d] * scale * r.gain[d];
  const int half = r.rotary_dim / 2;
  for (int i = 0; i < half; ++i) {
    const float low = r.out[i], high = r.out[i + half];
    r.out[i] = low * r.cos[i] - high * r.sin[i];
    r.out[i + half] = high * r.cos[i] + low * r.sin[i];
  }
}

namespace {

std::vector<int> visible_positions(const AttentionUnit& r) {
  std::vector<int> positions;
  if (r.selected == nullptr) {
    for (int p = r.first_pos; p <= r.pos; ++p) positions.push_back(p);
    return positions;
  }
  for (int i = 0; i < r.num_selected; ++i) {
    for (int j = 0; j < r.selected_tokens; ++j) positions.push_back(r.selected[i] * r.selected_tokens + j);
  }
  for (int p = (r.pos + 1) / r.selected_tokens * r.selected_tokens; p <= r.pos; ++p) positions.push_back(p);
  return positions;
}

}  // namespace

void attend(const AttentionUnit& r) {
  const std::vector<int> positions = visible_positions(r);
  const auto row_of = [&](const float* cache, int p) {
    return cache + r.blocks[p / r.block_tokens] * r.block_stride +
           static_cast<std::int64_t>(p % r.block_tokens) * r.head_dim;
  };
  for (int h = 0; h < r.group; ++h) {
    const float* q = r.q + h * r.head_dim;
    std::vector<float> weights;
    for (const int p : positions) {
      float score = 0;
      for (int d = 0; d < r.head_dim; ++d) score += q[d] * row_of(r.keys, p)[d];
      weights.push_back(score / std::sqrt(static_cast<float>(r.head_dim)));
    }
    const float most = *std::max_element(weights.begin(), weights.end());
    float total = 0;
    for (float& w : weights) total += w = std::exp(w - most);
    for (int d = 0; d < r.head_dim; ++d) {
      float sum = 0;
      for (std::size_t i = 0; i < positions.size(); ++i) sum += weights[i] * row_of(r.values, positions[i])[d];
      const float gate = r.gate[h * 2 * r.head_dim + r.head_dim + d];
      r.out[h * r.head_dim + d] = sum / total / (1.0F + std::exp(-gate));
    }
  }
}

void score_blocks(const BlockScores& r) {
  for (int i = 0; i < r.num_blocks; ++i) {
    const int b = r.first_block + i;
    const float* key = r.pooled + (static_cast<std::int64_t>(r.blocks[b / r.pooled_per_block]) * r.pooled_per_block +
                                   b % r.pooled_per_block) *
                                      r.head_dim;
    float total = 0;
    for (int h = 0; h < r.heads; ++h) {
      float dot = 0;
      for (int d = 0; d < r.head_dim; ++d) dot += r.queries[h * r.head_dim + d] * key[d];
      total += std::max(dot, 0.0F);
    }
    r.scores[i] = total / std::sqrt(static_cast<float>(r.head_dim));
  }
}

}  // namespace rondo::reference
