#include "ops/moe/moe.h"

#include <array>

#include "ops/common/fork.h"
#include "ops/linear/linear.h"
#include "ops/linear/linear_cuda.h"
#include "ops/moe/moe_cuda.h"
#include "ops/moe/moe_kernel.h"
#include "ops/pointwise/pointwise.h"

namespace rondo {

void gated_mlp(Stream& s, const GatedMlpWeights& w, Tensor x, Scratch scratch, Tensor out) {
  const Tensor gate = scratch.take_f32({x.rows(), w.gate.shape[0]});
  const Tensor up = scratch.take_f32({x.rows(), w.gate.shape[0]});
  linear(s, std::array{LinearPart{.weight = w.gate, .x = x, .out = gate, .rows = x.rows()},
                       LinearPart{.weight = w.up, .x = x, .out = up, .rows = x.rows()}});
  CHECK(gate.width() == w.down.shape[1] && out.width() == w.down.shape[0]);
  if (s.is_dry() || x.rows() == 0) return;
  RONDO_ON_CUDA(s, linear_of_product(s, w.down, gate, up, out));
  silu_product(s, gate, up, gate);
  linear(s, w.down, gate, out);
}

void route(Stream& s, Tensor logits, bool normalise_topk, Tensor chosen, Tensor weight) {
  CHECK(chosen.width() == weight.width() && chosen.width() <= logits.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, route(s, logits, normalise_topk, chosen, weight));
  const auto kernel = RONDO_PICK(s.isa(), route_range);
  const int experts = static_cast<int>(logits.width()), k = static_cast<int>(chosen.width());
  fork_rows(s, logits.rows(), static_cast<std::int64_t>(experts) * k, [&](int begin, int end) {
    kernel({.logits = logits.f32(),
            .chosen = chosen.i32(),
            .weight = weight.f32(),
            .experts = experts,
            .k = k,
            .normalise = normalise_topk,
            .begin = begin,
            .end = end});
  });
}

namespace {

// Rows gathered by expert: expert e reads rows[begin[e] .. begin[e + 1]), and a row's i-th expert leaves its output at
// place[row, i].
struct Gathered {
  Tensor begin;  // i32 [experts + 1]
  Tensor rows;   // i32 [rows * k]
  Tensor place;  // i32 [rows, k]
};

void gather(Tensor chosen, int experts, const Gathered& gathered) {
  std::int32_t* begin = gathered.begin.i32();
  const std::int64_t pairs = chosen.shape.num_elements(), k = chosen.width();
  std::fill_n(begin, experts + 1, 0);
  for (std::int64_t i = 0; i < pairs; ++i) ++begin[chosen.i32()[i] + 1];
  for (int e = 0; e < experts; ++e) begin[e + 1] += begin[e];
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int32_t at = begin[chosen.i32()[i]]++;
    gathered.rows.i32()[at] = static_cast<std::int32_t>(i / k);
    gathered.place.i32()[i] = at;
  }
  for (int e = experts; e > 0; --e) begin[e] = begin[e - 1];
  begin[0] = 0;
}

}  // namespace

MixtureSum take_mixture_sum(Scratch& scratch, std::int64_t rows, std::int64_t hidden, std::int64_t k) {
  return {.experts = scratch.take_f32({rows * k, hidden}),
          .place = scratch.take_i32({rows, k}),
          .weight = scratch.take_f32({rows, k}),
          .shared = scratch.take_f32({rows, hidden}),
          .shared_gate = scratch.take_f32({rows, 1})};
}

void mixture_of_experts(Stream& s, const MoeWeights& w, Tensor x, Scratch scratch, const MixtureSum& sum) {
  CHECK(sum.experts.rows() == x.rows() * w.experts_per_token && sum.experts.width() == x.width());
  RONDO_ON_CUDA(s, mixture_of_experts(s, w, x, scratch, sum));
  const std::int64_t rows = x.rows(), k = w.experts_per_token;
  const auto experts = static_cast<std::int64_t>(w.experts.size());
  const std::int64_t size = w.experts[0].gate.shape[0], shared_size = w.shared.gate.shape[0];
  const Tensor logits = scratch.take_f32({rows, experts}), chosen = scratch.take_i32({rows, k});
  const Gathered gathered{scratch.take_i32({experts + 1}), scratch.take_i32({rows * k}), sum.place};
  const Tensor gate = scratch.take_f32({rows * k, size}), up = scratch.take_f32({rows * k, size});
  const Tensor shared_act = scratch.take_f32({rows, shared_size}), shared_up = scratch.take_f32({rows, shared_size});
  const Tensor part_room = scratch.take(DType::U8, {static_cast<std::int64_t>(sizeof(LinearPart)) * 2 * (experts + 1)});

  linear(s, std::array{LinearPart{.weight = w.router, .x = x, .out = logits, .rows = x.rows()},
                       LinearPart{.weight = w.shared_gate, .x = x, .out = sum.shared_gate, .rows = x.rows()}});
  route(s, logits, w.normalise_topk, chosen, sum.weight);
  if (s.is_dry()) return;
  gather(chosen, static_cast<int>(experts), gathered);

  auto* parts = static_cast<LinearPart*>(const_cast<void*>(part_room.data));
  std::size_t num_parts = 0;
  const auto add_part = [&](const LinearPart& part) { new (parts + num_parts++) LinearPart(part); };
  const auto for_experts = [&](auto visit) {
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::int32_t begin = gathered.begin.i32()[e], count = gathered.begin.i32()[e + 1] - begin;
      if (count > 0) visit(w.experts[static_cast<std::size_t>(e)], begin, count);
    }
  };
  for_experts([&](const GatedMlpWeights& expert, std::int32_t begin, std::int32_t count) {
    const std::int32_t* in_rows = gathered.rows.i32() + begin;
    add_part({.weight = expert.gate, .x = x, .out = gate.slice(begin, count), .in_rows = in_rows, .rows = count});
    add_part({.weight = expert.up, .x = x, .out = up.slice(begin, count), .in_rows = in_rows, .rows = count});
  });
  add_part({.weight = w.shared.gate, .x = x, .out = shared_act, .rows = x.rows()});
  add_part({.weight = w.shared.up, .x = x, .out = shared_up, .rows = x.rows()});
  linear(s, std::span(parts, num_parts));
  silu_product(s, gate, up, gate);
  silu_product(s, shared_act, shared_up, shared_act);

  num_parts = 0;
  for_experts([&](const GatedMlpWeights& expert, std::int32_t begin, std::int32_t count) {
    add_part(
        {.weight = expert.down, .x = gate.slice(begin, count), .out = sum.experts.slice(begin, count), .rows = count});
  });
  add_part({.weight = w.shared.down, .x = shared_act, .out = sum.shared, .rows = x.rows()});
  linear(s, std::span(parts, num_parts));
}

void add_up(Stream& s, const MixtureSum& sum, Tensor out) {
  CHECK(out.width() == sum.shared.width() && out.rows() >= sum.shared.rows());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, add_up(s, sum, out));
  const auto combine = RONDO_PICK(s.isa(), combine_range);
  const std::int64_t hidden = out.width(), k = sum.place.width();
  fork_rows(s, sum.shared.rows(), hidden * (k + 1), [&](int begin, int end) {
    combine({.expert_out = sum.experts.f32(),
             .place = sum.place.i32(),
             .weight = sum.weight.f32(),
             .shared_out = sum.shared.f32(),
             .shared_gate = sum.shared_gate.f32(),
             .out = out.f32(),
             .hidden = hidden,
             .k = static_cast<int>(k),
             .begin = begin,
             .end = end});
  });
}

void add_up_norm(Stream& s, const MixtureSum& sum, Tensor y, Tensor residual, Tensor gain, NormSpec spec, Tensor out) {
  CHECK(sum.shared.width() == residual.width() && sum.shared.rows() == residual.rows() && spec.group == y.width());
  CHECK(gain.shape.num_elements() == residual.width() && out.width() == residual.width());
  if (s.is_dry()) return;
  RONDO_ON_CUDA(s, add_up_norm(s, sum, residual, gain, spec, out));
  add_up(s, sum, y);
  add_norm(s, y, residual, gain, spec, out);
}

}  // namespace rondo
