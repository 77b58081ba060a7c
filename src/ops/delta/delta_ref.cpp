#include <cmath>
#include <cstring>
#include <vector>

#include "ops/delta/delta_kernel.h"

namespace rondo::reference {

namespace {

float silu(float x) { return x / (1.0F + std::exp(-x)); }

// One sequence's channel: the inputs before the span, then the span's.
std::vector<float> past_and_present(const ConvRange& r, const RowSpan& span, std::int64_t c) {
  const int past = (r.kernel - 1) * r.dilation;
  std::vector<float> line(static_cast<std::size_t>(past), 0.0F);
  const auto history = [&](int i) {
    return r.history[(static_cast<std::int64_t>(span.slot) * past + i) * r.channels + c];
  };
  if (span.start_pos > 0) {
    for (int i = 0; i < past; ++i) {
      const int from = i + span.fold;
      line[static_cast<std::size_t>(i)] =
          from < past ? history(from)
                      : r.log[(static_cast<std::int64_t>(span.slot) * r.log_rows + from - past) * r.channels + c];
    }
  }
  for (int t = 0; t < span.count; ++t) line.push_back(r.x[(span.begin + t) * r.channels + c]);
  return line;
}

}  // namespace

void causal_conv_range(const ConvRange& r) {
  const int past = (r.kernel - 1) * r.dilation;
  for (int i = 0; i < r.num_spans; ++i) {
    const RowSpan& span = r.spans[i];
    for (std::int64_t c = r.begin; c < r.end; ++c) {
      const std::vector<float> line = past_and_present(r, span, c);
      for (int t = 0; t < span.count; ++t) {
        float sum = 0;
        for (int j = 0; j < r.kernel; ++j) {
          sum += r.weight[j * r.channels + c] * line[static_cast<std::size_t>(t + j * r.dilation)];
        }
        r.out[(span.begin + t) * r.channels + c] = silu(sum);
      }
      for (int h = 0; h < past; ++h) {
        r.history[(static_cast<std::int64_t>(span.slot) * past + h) * r.channels + c] =
            line[static_cast<std::size_t>(span.certain + h)];
      }
      for (int t = span.certain; t < span.count; ++t) {
        r.log[(static_cast<std::int64_t>(span.slot) * r.log_rows + t - span.certain) * r.channels + c] =
            line[static_cast<std::size_t>(past + t)];
      }
    }
  }
}

namespace {

struct HeadRow {
  std::vector<float> q, k, v;
  float decay, beta;
};

std::vector<float> normalised(const float* x, int n, float scale) {
  float squares = 0;
  for (int i = 0; i < n; ++i) squares += x[i] * x[i];
  const float factor = scale / std::sqrt(squares + 1e-6F);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = x[i] * factor;
  return out;
}

HeadRow head_row(const DeltaRange& r, int row, int head) {
  const int k_head = head / (r.v_heads / r.k_heads);
  const std::int64_t keys = static_cast<std::int64_t>(r.k_heads) * r.k_dim;
  const float* u = r.u + row * (2 * keys + static_cast<std::int64_t>(r.v_heads) * r.v_dim);
  const float* v = u + 2 * keys + head * r.v_dim;
  const float x = r.a[row * r.v_heads + head] + r.dt_bias[head];
  const float softplus = x > 20 ? x : std::log1p(std::exp(x));
  return {.q = normalised(u + k_head * r.k_dim, r.k_dim, 1.0F / std::sqrt(static_cast<float>(r.k_dim))),
          .k = normalised(u + keys + k_head * r.k_dim, r.k_dim, 1.0F),
          .v = std::vector<float>(v, v + r.v_dim),
          .decay = std::exp(r.decay_rate[head] * softplus),
          .beta = 1.0F / (1.0F + std::exp(-r.b[row * r.v_heads + head]))};
}

void rank_one(float* memory, const float* k, const float* delta, float decay, int k_dim, int v_dim) {
  for (int i = 0; i < k_dim; ++i) {
    for (int j = 0; j < v_dim; ++j) memory[i * v_dim + j] = decay * memory[i * v_dim + j] + k[i] * delta[j];
  }
}

}  // namespace

void gated_delta_range(const DeltaRange& r) {
  for (int unit = r.begin; unit < r.end; ++unit) {
    const RowSpan& span = r.spans[unit / r.v_heads];
    const int head = unit % r.v_heads;
    float* memory = r.memory + (static_cast<std::int64_t>(span.slot) * r.v_heads + head) * r.k_dim * r.v_dim;
    const auto log_at = [&](int i) {
      return (static_cast<std::int64_t>(span.slot) * r.log_rows + i) * r.v_heads + head;
    };
    if (span.start_pos == 0) std::memset(memory, 0, sizeof(float) * static_cast<std::size_t>(r.k_dim * r.v_dim));
    for (int i = 0; i < span.fold; ++i) {
      rank_one(memory, r.key_log + log_at(i) * r.k_dim, r.delta_log + log_at(i) * r.v_dim, r.decay_log[log_at(i)],
               r.k_dim, r.v_dim);
    }
    std::vector<float> work(memory, memory + r.k_dim * r.v_dim);
    for (int t = 0; t < span.count; ++t) {
      const HeadRow row = head_row(r, span.begin + t, head);
      std::vector<float> delta(static_cast<std::size_t>(r.v_dim));
      for (int j = 0; j < r.v_dim; ++j) {
        float read = 0;
        for (int i = 0; i < r.k_dim; ++i) {
          read += row.k[static_cast<std::size_t>(i)] * (row.decay * work[static_cast<std::size_t>(i * r.v_dim + j)]);
        }
        delta[static_cast<std::size_t>(j)] = row.beta * (row.v[static_cast<std::size_t>(j)] - read);
      }
      rank_one(work.data(), row.k.data(), delta.data(), row.decay, r.k_dim, r.v_dim);
      for (int j = 0; j < r.v_dim; ++j) {
        float sum = 0;
        for (int i = 0; i < r.k_dim; ++i) {
          sum += row.q[static_cast<std::size_t>(i)] * work[static_cast<std::size_t>(i * r.v_dim + j)];
        }
        r.out[((span.begin + t) * r.v_heads + head) * static_cast<std::int64_t>(r.v_dim) + j] = sum;
      }
      if (t < span.certain) {
        std::memcpy(memory, work.data(), work.size() * sizeof(float));
      } else {
        const std::int64_t at = log_at(t - span.certain);
        std::memcpy(r.key_log + at * r.k_dim, row.k.data(), row.k.size() * sizeof(float));
        std::memcpy(r.delta_log + at * r.v_dim, delta.data(), delta.size() * sizeof(float));
        r.decay_log[at] = row.decay;
      }
    }
  }
}

}  // namespace rondo::reference
