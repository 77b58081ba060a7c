#include "ops/common/simd.h"
#include "ops/delta/delta_kernel.h"

namespace rondo::RONDO_ISA {

namespace {

// history[i] = (history | fresh)[i + shift], in place: what a convolution still needs once `shift` inputs have passed.
void shift_history(float* history, const float* fresh, std::int64_t channels, int past, int shift, const ConvRange& r) {
  for (int i = 0; i < past; ++i) {
    const int from = i + shift;
    const float* source = from < past ? history + from * channels : fresh + (from - past) * channels;
    float* to = history + i * channels;
    for_lanes(r.end - r.begin, [&](std::int64_t at, int lanes) {
      store_n(to + r.begin + at, load_n(source + r.begin + at, lanes), lanes);
    });
  }
}

void conv_span(const ConvRange& r, const RowSpan& span) {
  const int past = (r.kernel - 1) * r.dilation;
  float* history = r.history + static_cast<std::int64_t>(span.slot) * past * r.channels;
  float* log = r.log + static_cast<std::int64_t>(span.slot) * r.log_rows * r.channels;
  const float* x = r.x + static_cast<std::int64_t>(span.begin) * r.channels;
  const std::size_t bytes = static_cast<std::size_t>(r.end - r.begin) * sizeof(float);
  if (span.start_pos == 0) {
    for (int i = 0; i < past; ++i) std::memset(history + i * r.channels + r.begin, 0, bytes);
  }
  if (span.fold > 0) shift_history(history, log, r.channels, past, span.fold, r);
  for (int t = 0; t < span.count; ++t) {
    float* out = r.out + (span.begin + t) * r.channels;
    for_lanes(r.end - r.begin, [&](std::int64_t at, int lanes) {
      const std::int64_t c = r.begin + at;
      F32 sum = zeros();
      for (int j = 0; j < r.kernel; ++j) {
        const int from = t - r.dilation * (r.kernel - 1 - j);
        const float* source = from >= 0 ? x + from * r.channels : history + (past + from) * r.channels;
        sum = fma(load_n(r.weight + j * r.channels + c, lanes), load_n(source + c, lanes), sum);
      }
      store_n(out + c, silu(sum), lanes);
    });
  }
  shift_history(history, x, r.channels, past, span.certain, r);
  for (int t = span.certain; t < span.count; ++t) {
    std::memcpy(log + (t - span.certain) * r.channels + r.begin, x + t * r.channels + r.begin, bytes);
  }
}

}  // namespace

void causal_conv_range(const ConvRange& r) {
  for (int i = 0; i < r.num_spans; ++i) conv_span(r, r.spans[i]);
}

namespace {

constexpr int kTile = 4;  // vectors of a memory row at a time: four chains hide the latency of the multiply-add

void normalise(const float* x, int n, float scale, float* out) {
  F32 squares = zeros();
  for_lanes(n, [&](std::int64_t i, int lanes) {
    const F32 v = load_n(x + i, lanes);
    squares = fma(v, v, squares);
  });
  const F32 factor = all(scale / __builtin_sqrtf(sum(squares) + 1e-6F));
  for_lanes(n, [&](std::int64_t i, int lanes) { store_n(out + i, load_n(x + i, lanes) * factor, lanes); });
}

// Calls step(j, vectors, lanes) over the columns of a memory row: kTile whole vectors at a time, then one by one.
template <class Step>
void for_tiles(int v_dim, Step step) {
  int j = 0;
  for (; j + kTile * kLanes <= v_dim; j += kTile * kLanes) step.template operator()<kTile>(j, kLanes);
  for (; j < v_dim; j += kLanes) step.template operator()<1>(j, v_dim - j < kLanes ? v_dim - j : kLanes);
}

// to = decay from;  delta = beta (v - to^T k)
void decay_and_read(const float* from, float* to, const float* k, const float* v, float decay, float beta, int k_dim,
                    int v_dim, float* delta) {
  for_tiles(v_dim, [&]<int Vectors>(int j, int lanes) {
    F32 read[Vectors];
    for (int i = 0; i < Vectors; ++i) read[i] = zeros();
    for (int row = 0; row < k_dim; ++row) {
      const F32 key = all(k[row]);
      for (int i = 0; i < Vectors; ++i) {
        const std::int64_t at = static_cast<std::int64_t>(row) * v_dim + j + i * kLanes;
        const F32 decayed = all(decay) * load_n(from + at, lanes);
        store_n(to + at, decayed, lanes);
        read[i] = fma(key, decayed, read[i]);
      }
    }
    for (int i = 0; i < Vectors; ++i) {
      const F32 value = load_n(v + j + i * kLanes, lanes);
      store_n(delta + j + i * kLanes, all(beta) * (value - read[i]), lanes);
    }
  });
}

// memory += k delta^T;  out = memory^T q
void write_and_query(float* memory, const float* k, const float* delta, const float* q, int k_dim, int v_dim,
                     float* out) {
  for_tiles(v_dim, [&]<int Vectors>(int j, int lanes) {
    F32 step[Vectors], answer[Vectors];
    for (int i = 0; i < Vectors; ++i) {
      step[i] = load_n(delta + j + i * kLanes, lanes);
      answer[i] = zeros();
    }
    for (int row = 0; row < k_dim; ++row) {
      const F32 key = all(k[row]), query = all(q[row]);
      for (int i = 0; i < Vectors; ++i) {
        float* at = memory + static_cast<std::int64_t>(row) * v_dim + j + i * kLanes;
        const F32 written = fma(key, step[i], load_n(at, lanes));
        store_n(at, written, lanes);
        answer[i] = fma(query, written, answer[i]);
      }
    }
    for (int i = 0; i < Vectors; ++i) store_n(out + j + i * kLanes, answer[i], lanes);
  });
}

// memory = decay memory + k delta^T, rounded where the two functions above round.
void fold_row(float* memory, const float* k, const float* delta, float decay, int k_dim, int v_dim) {
  for (int row = 0; row < k_dim; ++row) {
    float* line = memory + static_cast<std::int64_t>(row) * v_dim;
    for_lanes(v_dim, [&](std::int64_t j, int lanes) {
      const F32 decayed = all(decay) * load_n(line + j, lanes);
      store_n(line + j, fma(all(k[row]), load_n(delta + j, lanes), decayed), lanes);
    });
  }
}

float decay_of(const DeltaRange& r, std::int64_t row, int head) {
  const float x = r.a[row * r.v_heads + head] + r.dt_bias[head];
  const float softplus = x > 20.0F ? x : __builtin_log1pf(__builtin_expf(x));
  return __builtin_expf(r.decay_rate[head] * softplus);
}

// One sequence's rows through one head.
void delta_unit(const DeltaRange& r, const RowSpan& span, int head) {
  const std::int64_t size = static_cast<std::int64_t>(r.k_dim) * r.v_dim;
  float* memory = r.memory + (static_cast<std::int64_t>(span.slot) * r.v_heads + head) * size;
  float* work = r.work;
  float* q = r.work + size;
  float* k = q + r.k_dim;
  float* delta = k + r.k_dim;
  const auto log_at = [&](int i) { return (static_cast<std::int64_t>(span.slot) * r.log_rows + i) * r.v_heads + head; };
  if (span.start_pos == 0) std::memset(memory, 0, static_cast<std::size_t>(size) * sizeof(float));
  for (int i = 0; i < span.fold; ++i) {
    const std::int64_t at = log_at(i);
    fold_row(memory, r.key_log + at * r.k_dim, r.delta_log + at * r.v_dim, r.decay_log[at], r.k_dim, r.v_dim);
  }
  const std::int64_t keys = static_cast<std::int64_t>(r.k_heads) * r.k_dim;
  const int k_head = head / (r.v_heads / r.k_heads);
  for (int t = 0; t < span.count; ++t) {
    const std::int64_t row = span.begin + t;
    const float* u = r.u + row * (2 * keys + static_cast<std::int64_t>(r.v_heads) * r.v_dim);
    normalise(u + k_head * r.k_dim, r.k_dim, 1.0F / __builtin_sqrtf(static_cast<float>(r.k_dim)), q);
    normalise(u + keys + k_head * r.k_dim, r.k_dim, 1.0F, k);
    const float decay = decay_of(r, row, head);
    const float beta = 1.0F / (1.0F + __builtin_expf(-r.b[row * r.v_heads + head]));
    const float* from = t <= span.certain ? memory : work;  // the first draft leaves the certain state behind
    float* to = t < span.certain ? memory : work;
    decay_and_read(from, to, k, u + 2 * keys + head * r.v_dim, decay, beta, r.k_dim, r.v_dim, delta);
    write_and_query(to, k, delta, q, r.k_dim, r.v_dim, r.out + (row * r.v_heads + head) * r.v_dim);
    if (t >= span.certain) {
      const std::int64_t at = log_at(t - span.certain);
      std::memcpy(r.key_log + at * r.k_dim, k, static_cast<std::size_t>(r.k_dim) * sizeof(float));
      std::memcpy(r.delta_log + at * r.v_dim, delta, static_cast<std::size_t>(r.v_dim) * sizeof(float));
      r.decay_log[at] = decay;
    }
  }
}

}  // namespace

void gated_delta_range(const DeltaRange& r) {
  for (int unit = r.begin; unit < r.end; ++unit) delta_unit(r, r.spans[unit / r.v_heads], unit % r.v_heads);
}

}  // namespace rondo::RONDO_ISA
