#include "model/mixers.h"

#include <algorithm>
#include <array>

#include "ops/linear/linear.h"

namespace rondo {

int num_kv_blocks(const ModelOptions& options) {
  return options.max_streams * ((options.context_tokens + kKvBlockTokens - 1) / kKvBlockTokens) + options.cache_blocks;
}

namespace {

// Rows of one part of qwen3_next's interleaved projections: K head g holds [q: d | k: d | v: r d | z: r d] one after
// the other (and [b: r | a: r] in the small one); the parts are taken out head by head.
std::vector<std::int64_t> interleaved_rows(int heads, std::int64_t head_rows, std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> rows;
  for (int g = 0; g < heads; ++g) {
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(g * head_rows + begin + i);
  }
  return rows;
}

void append(std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

}  // namespace

GatedDeltaNet::GatedDeltaNet(Loader& loader, const std::string& prefix) {
  const ModelConfig& c = loader.config();
  net_.spec = {c.linear_k_heads, c.linear_v_heads, c.linear_k_dim, c.linear_v_dim};
  net_.conv = {.kernel = c.conv_kernel, .dilation = 1};
  net_.gate = c.linear_gate == GateActivation::Sigmoid ? Gate::Sigmoid : Gate::Silu;
  net_.eps = c.norm_eps;
  if (c.architecture == Architecture::Qwen3Next) {
    const int heads = c.linear_k_heads, r = c.linear_v_heads / c.linear_k_heads;
    const std::int64_t d = c.linear_k_dim, v = static_cast<std::int64_t>(r) * c.linear_v_dim, all = 2 * d + 2 * v;
    std::vector<std::int64_t> qkv = interleaved_rows(heads, all, 0, d);
    append(qkv, interleaved_rows(heads, all, d, d));
    append(qkv, interleaved_rows(heads, all, 2 * d, v));
    qkv_ = loader.matrix_rows(prefix + ".in_proj_qkvz.weight", qkv);
    z_ = loader.matrix_rows(prefix + ".in_proj_qkvz.weight", interleaved_rows(heads, all, 2 * d + v, v));
    b_ = loader.matrix_rows(prefix + ".in_proj_ba.weight", interleaved_rows(heads, 2 * r, 0, r));
    a_ = loader.matrix_rows(prefix + ".in_proj_ba.weight", interleaved_rows(heads, 2 * r, r, r));
  } else {
    qkv_ = loader.matrix(prefix + ".in_proj_qkv.weight");
    z_ = loader.matrix(prefix + ".in_proj_z.weight");
    b_ = loader.matrix(prefix + ".in_proj_b.weight");
    a_ = loader.matrix(prefix + ".in_proj_a.weight");
  }
  net_.conv_weight = loader.conv_weight(prefix + ".conv1d.weight");
  net_.gains = {loader.decay_rate(prefix + ".A_log"), loader.vector(prefix + ".dt_bias")};
  net_.norm_gain = loader.vector(prefix + ".norm.weight");
  out_proj_ = loader.matrix(prefix + ".out_proj.weight");

  const ModelOptions& o = loader.options();
  Arena& slots = loader.arenas().slots;
  const auto log = [&](Shape shape) { return slots.take(DType::F32, shape); };
  net_.conv_state = {loader.slot_state({o.max_streams, net_.conv.kernel - 1, c.linear_channels()}),
                     log({o.max_streams, o.max_drafts, c.linear_channels()})};
  net_.state = {loader.slot_state({o.max_streams, net_.spec.v_heads, net_.spec.k_dim, net_.spec.v_dim}),
                log({o.max_streams, o.max_drafts, net_.spec.v_heads, net_.spec.k_dim}),
                log({o.max_streams, o.max_drafts, net_.spec.v_heads, net_.spec.v_dim}),
                log({o.max_streams, o.max_drafts, net_.spec.v_heads})};
}

void GatedDeltaNet::forward(Stream& s, const Batch& batch, Scratch scratch, Tensor x, Tensor out) const {
  const Tensor qkv = scratch.take_f32({batch.rows, qkv_.shape[0]});
  const Tensor z = scratch.take_f32({batch.rows, z_.shape[0]}), o = scratch.take_f32({batch.rows, z_.shape[0]});
  const Tensor a = scratch.take_f32({batch.rows, net_.spec.v_heads}),
               b = scratch.take_f32({batch.rows, net_.spec.v_heads});
  linear(s, std::array{LinearPart{.weight = qkv_, .x = x, .out = qkv, .rows = batch.rows},
                       LinearPart{.weight = z_, .x = x, .out = z, .rows = batch.rows},
                       LinearPart{.weight = a_, .x = x, .out = a, .rows = batch.rows},
                       LinearPart{.weight = b_, .x = x, .out = b, .rows = batch.rows}});
  delta_net(s, batch.spans, {.qkv = qkv, .z = z, .a = a, .b = b}, net_, scratch, o);
  linear(s, out_proj_, o, out);
}

void GatedDeltaNet::settle(Stream& s, const RowSpans& spans, Scratch scratch) const {
  const Tensor qkv = scratch.take_f32({1, qkv_.shape[0]}), heads = scratch.take_f32({1, net_.spec.v_heads});
  const Tensor out = scratch.take_f32({1, z_.shape[0]});
  delta_net(s, spans, {.qkv = qkv, .z = out, .a = heads, .b = heads}, net_, scratch, out);
}

GatedAttention::GatedAttention(Loader& loader, const std::string& prefix, Tensor rope_table) : rope_table_(rope_table) {
  const ModelConfig& c = loader.config();
  spec_ = {c.q_heads, c.kv_heads, c.head_dim, c.rope.rotary_dim, kKvBlockTokens, c.norm_eps};
  indexer_ = {.heads = c.indexer.num_heads,
              .head_dim = c.indexer.head_dim,
              .rotary_dim = c.rope.rotary_dim,
              .budget_blocks = c.indexer.budget_tokens / std::max(c.indexer.block_tokens, 1),
              .block_tokens = c.indexer.block_tokens,
              .cache_block_tokens = kKvBlockTokens,
              .eps = c.norm_eps};
  context_tokens_ = loader.options().context_tokens;
  q_gate_ = loader.matrix(prefix + ".q_proj.weight");
  k_ = loader.matrix(prefix + ".k_proj.weight");
  v_ = loader.matrix(prefix + ".v_proj.weight");
  o_ = loader.matrix(prefix + ".o_proj.weight");
  gains_ = {loader.gain(prefix + ".q_norm.weight"), loader.gain(prefix + ".k_norm.weight")};

  const std::int64_t blocks = num_kv_blocks(loader.options());
  const Shape shape{blocks, c.kv_heads, kKvBlockTokens, c.head_dim};
  cache_ = {loader.block_state(loader.kv_dtype(), shape), loader.block_state(loader.kv_dtype(), shape)};
  if (!is_sparse()) return;
  index_qk_ = loader.matrix(prefix + ".indexer.index_qk_proj.weight");
  index_gains_ = {loader.gain(prefix + ".indexer.q_layernorm.weight"),
                  loader.gain(prefix + ".indexer.k_layernorm.weight")};
  index_cache_ = {loader.block_state(DType::F32, {blocks, kKvBlockTokens, indexer_.head_dim}),
                  loader.block_state(DType::F32, {blocks, kKvBlockTokens / indexer_.block_tokens, indexer_.head_dim})};
}

void GatedAttention::forward(Stream& s, const Batch& batch, Scratch scratch, Tensor x, Tensor out) const {
  const Tensor q_gate = scratch.take_f32({batch.rows, q_gate_.shape[0]}),
               q = scratch.take_f32({batch.rows, q_gate_.shape[0] / 2});
  const Tensor k = scratch.take_f32({batch.rows, k_.shape[0]}), v = scratch.take_f32({batch.rows, v_.shape[0]});
  const Tensor mixed = scratch.take_f32({batch.rows, o_.shape[1]});
  LinearPart projections[] = {{.weight = q_gate_, .x = x, .out = q_gate, .rows = batch.rows},
                              {.weight = k_, .x = x, .out = k, .rows = batch.rows},
                              {.weight = v_, .x = x, .out = v, .rows = batch.rows},
                              {.weight = index_qk_, .x = x, .out = {}, .rows = batch.rows}};
  Selection selection{};
  if (is_sparse()) {
    projections[3].out = scratch.take_f32({batch.rows, index_qk_.shape[0]});
    selection = {.blocks = scratch.take_i32({batch.rows, indexer_.budget_blocks}),
                 .count = scratch.take_i32({batch.rows}),
                 .block_tokens = indexer_.block_tokens};
  }
  linear(s, std::span(projections, is_sparse() ? 4 : 3));
  attention_write(s, batch.spans, q_gate, k, v, gains_, rope_table_, spec_, cache_, q);
  int most_visible = context_tokens_;
  if (is_sparse()) {
    select_blocks(s, batch.spans, projections[3].out, index_gains_, rope_table_, indexer_, index_cache_,
                  context_tokens_, scratch, selection);
    most_visible = std::min(most_visible, (indexer_.budget_blocks + 1) * indexer_.block_tokens);
  }
  attention(s, batch.spans, q, q_gate, cache_, is_sparse() ? &selection : nullptr, spec_, most_visible, scratch, mixed);
  linear(s, o_, mixed, out);
}

}  // namespace rondo
