#include "ops/delta/delta.h"

#include "ops/common/fork.h"
#include "ops/delta/delta_cuda.h"
#include "ops/delta/delta_kernel.h"

namespace rondo {

namespace {

void check_spans(std::span<const RowSpan> spans, std::int64_t slots, std::int64_t log_rows, int rows) {
  for (const RowSpan& span : spans) {
    CHECK(span.slot >= 0 && span.slot < slots);
    CHECK(span.certain >= (span.count > 0 ? 1 : 0) && span.certain <= span.count);
    CHECK(span.count - span.certain <= log_rows);
    CHECK(span.fold >= 0 && span.fold <= log_rows && (span.start_pos > 0 || span.fold == 0));
    CHECK(span.begin >= 0 && span.begin + span.count <= rows);
  }
}

void check_inputs(std::span<const RowSpan> spans, Tensor u, Tensor a, Tensor b, DeltaSpec spec, const DeltaState& state,
                  Tensor out) {
  CHECK(u.width() == 2 * spec.k_heads * spec.k_dim + spec.v_heads * spec.v_dim);
  CHECK(a.width() == spec.v_heads && b.width() == spec.v_heads && out.width() == spec.v_heads * spec.v_dim);
  check_spans(spans, state.memory.shape[0], state.decay_log.shape[1], u.rows());
}

int rows_in(std::span<const RowSpan> spans) {
  int rows = 0;
  for (const RowSpan& span : spans) rows += span.count;
  return rows;
}

}  // namespace

void causal_conv(Stream& s, const RowSpans& rows, Tensor x, Tensor weight, ConvSpec spec, ConvState state, Tensor out) {
  const std::int64_t channels = x.width();
  const std::span<const RowSpan> spans = rows.host;
  CHECK(weight.shape == (Shape{spec.kernel, channels}) && out.width() == channels);
  CHECK(state.history.shape[1] == (spec.kernel - 1) * spec.dilation && state.history.shape[2] == channels);
  check_spans(spans, state.history.shape[0], state.log.shape[1], x.rows());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, causal_conv(s, rows, x, weight, spec, state, out));
  const auto kernel = RONDO_PICK(s.isa(), causal_conv_range);
  fork_rows(s, static_cast<int>(channels), static_cast<std::int64_t>(rows_in(spans)) * spec.kernel,
            [&](int begin, int end) {
              kernel({.spans = spans.data(),
                      .num_spans = static_cast<int>(spans.size()),
                      .x = x.f32(),
                      .weight = weight.f32(),
                      .history = state.history.f32(),
                      .log = state.log.f32(),
                      .out = out.f32(),
                      .channels = channels,
                      .kernel = spec.kernel,
                      .dilation = spec.dilation,
                      .log_rows = static_cast<int>(state.log.shape[1]),
                      .begin = begin,
                      .end = end});
            });
}

void gated_delta(Stream& s, const RowSpans& rows, Tensor u, Tensor a, Tensor b, DeltaGains gains, DeltaSpec spec,
                 DeltaState state, Scratch scratch, Tensor out) {
  const std::span<const RowSpan> spans = rows.host;
  check_inputs(spans, u, a, b, spec, state, out);
  if (s.on_cuda() && s.is_dry()) return;
  RONDO_ON_CUDA(s, gated_delta(s, rows, u, a, b, gains, spec, state, out));
  const std::int64_t size = static_cast<std::int64_t>(spec.k_dim) * spec.v_dim;
  const Tensor work = scratch.take_f32({s.pool().num_threads(), size + 2 * spec.k_dim + 2 * spec.v_dim});
  if (s.is_dry()) return;
  const auto kernel = RONDO_PICK(s.isa(), gated_delta_range);
  const int units = static_cast<int>(spans.size()) * spec.v_heads;
  const std::int64_t each =
      4 * size * rows_in(spans) / std::max<std::int64_t>(1, static_cast<std::int64_t>(spans.size()));
  fork_parts(s, units, each, [&](int part, int begin, int end) {
    kernel({.spans = spans.data(),
            .u = u.f32(),
            .a = a.f32(),
            .b = b.f32(),
            .decay_rate = gains.decay_rate.f32(),
            .dt_bias = gains.dt_bias.f32(),
            .memory = state.memory.f32(),
            .key_log = state.key_log.f32(),
            .delta_log = state.delta_log.f32(),
            .decay_log = state.decay_log.f32(),
            .work = work.slice(part, 1).f32(),
            .out = out.f32(),
            .k_heads = spec.k_heads,
            .v_heads = spec.v_heads,
            .k_dim = spec.k_dim,
            .v_dim = spec.v_dim,
            .log_rows = static_cast<int>(state.decay_log.shape[1]),
            .begin = begin,
            .end = end});
  });
}

void delta_net(Stream& s, const RowSpans& rows, const DeltaInputs& in, const DeltaNet& net, Scratch scratch,
               Tensor out) {
  CHECK(in.z.width() == out.width() && net.norm_gain.shape.num_elements() == net.spec.v_dim);
  const Tensor u = scratch.take_f32({in.qkv.rows(), in.qkv.width()});
#ifdef RONDO_CUDA
  if (s.on_cuda() && cuda::has_delta_net(net.spec, net.conv)) {
    check_inputs(rows.host, in.qkv, in.a, in.b, net.spec, net.state, out);
    check_spans(rows.host, net.conv_state.history.shape[0], net.conv_state.log.shape[1], in.qkv.rows());
    const Tensor heads = scratch.take_f32({in.qkv.rows(), net.spec.v_heads, 2});
    if (!s.is_dry()) cuda::delta_net(s, rows, in, net, u, heads, out);
    return;
  }
#endif
  causal_conv(s, rows, in.qkv, net.conv_weight, net.conv, net.conv_state, u);
  gated_delta(s, rows, u, in.a, in.b, net.gains, net.spec, net.state, scratch, out);
  if (rows_in(rows.host) > 0) gated_norm(s, out, in.z, net.norm_gain, net.eps, net.gate, out);
}

}  // namespace rondo
