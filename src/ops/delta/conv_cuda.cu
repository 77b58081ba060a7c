#include "ops/common/launch.cuh"
#include "ops/common/warp.cuh"
#include "ops/delta/delta_cuda.h"

namespace rondo::cuda {

namespace {

constexpr int kThreads = 128;

struct ConvArgs {
  const RowSpan* spans;
  const float* x;
  const float* weight;
  float* history;
  float* log;
  float* out;
  int channels, kernel, dilation, log_rows;
};

// One thread a channel of a sequence: its rows in order, then its state moves on.
__global__ void convolve(ConvArgs a) {
  after_all_before();
  const int c = blockIdx.x * kThreads + threadIdx.x;
  if (c >= a.channels) return;
  const RowSpan span = a.spans[blockIdx.y];
  const int past = (a.kernel - 1) * a.dilation;
  float* history = a.history + static_cast<std::int64_t>(span.slot) * past * a.channels + c;
  float* log = a.log + static_cast<std::int64_t>(span.slot) * a.log_rows * a.channels + c;
  const float* x = a.x + static_cast<std::int64_t>(span.begin) * a.channels + c;
  const auto at = [&](int i) { return static_cast<std::int64_t>(i) * a.channels; };
  // The inputs before the span (0 .. past - 1, the folded ones among them), then its own.
  const auto line = [&](int i) {
    if (i >= past) return x[at(i - past)];
    if (span.start_pos == 0) return 0.0F;
    const int from = i + span.fold;
    return from < past ? history[at(from)] : log[at(from - past)];
  };
  for (int t = 0; t < span.count; ++t) {
    float sum = 0;
    for (int j = 0; j < a.kernel; ++j) sum = fmaf(a.weight[at(j) + c], line(t + j * a.dilation), sum);
    a.out[static_cast<std::int64_t>(span.begin + t) * a.channels + c] = silu(sum);
  }
  // In place: what is read stands behind what is written.
  for (int i = 0; i < past; ++i) history[at(i)] = line(span.certain + i);
  for (int t = span.certain; t < span.count; ++t) log[at(t - span.certain)] = x[at(t)];
}

}  // namespace

void causal_conv(Stream& s, const RowSpans& rows, Tensor x, Tensor weight, ConvSpec spec, ConvState state, Tensor out) {
  if (rows.host.empty()) return;
  const auto channels = static_cast<int>(x.width());
  const dim3 grid(static_cast<unsigned>((channels + kThreads - 1) / kThreads), static_cast<unsigned>(rows.host.size()));
  launch(s, "causal_conv", {grid, kThreads, 0}, convolve,
         ConvArgs{.spans = rows.on_device,
                  .x = x.f32(),
                  .weight = weight.f32(),
                  .history = state.history.f32(),
                  .log = state.log.f32(),
                  .out = out.f32(),
                  .channels = channels,
                  .kernel = spec.kernel,
                  .dilation = spec.dilation,
                  .log_rows = static_cast<int>(state.log.shape[1])});
}

}  // namespace rondo::cuda
