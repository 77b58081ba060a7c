// Routed experts in every quantised format: to the bits of the same experts decoded beforehand.
#include "ops/moe/moe.h"

#include <cmath>

#include "tests/ops/coded.h"
#include "tests/ops/row_law.h"

namespace rondo {
namespace {

RONDO_ON_ALL(MoeWeightOn);

constexpr int kExperts = 8, kChosen = 3;
constexpr std::int64_t kHidden = 256, kSize = 128;

// Every third expert's tensor scale is 2^-1, then 2^-2: powers of two, so that they may stand before a sum as well as
// behind it, and bfloat16 has every weight of such a format exactly.
float scale_of(const EncodeSpec& spec, int expert) {
  const bool has_one = spec.by_tensor || spec.format == WeightFormat::Nvfp4;
  return has_one ? std::ldexp(1.0F, -(expert % 3) - (spec.by_tensor ? 9 : 11)) : 1.0F;
}

CodedWeights random_experts(std::int64_t rows, std::int64_t columns, const EncodeSpec& spec, std::uint64_t seed) {
  std::vector<EncodedWeight> kept;
  std::vector<CodedView> views;
  for (int e = 0; e < kExperts; ++e) {
    const auto of_expert = seed + static_cast<std::uint64_t>(e);
    kept.push_back(encode(random_f32({rows, columns}, of_expert).to_vector(), columns, spec));
    views.push_back(kept.back().weight.view);
    views.back().tensor_scale = scale_of(spec, e);
  }
  return CodedWeights(views);
}

// As decode() has them: on a GPU as bfloat16, evenly spaced as its code wants them.
class PlainExperts {
 public:
  PlainExperts(Isa isa, const CodedWeights& coded) : isa_(isa) {
    const Shape one = coded[0].shape;
    const DType dtype = isa == Isa::Sm90 ? DType::BF16 : DType::F32;
    all_.emplace_back(dtype, Shape{static_cast<std::int64_t>(coded.size()), one[0], one[1]});
    std::vector<float> row(static_cast<std::size_t>(one[1]));
    for (std::size_t e = 0; e < coded.size(); ++e) {
      const Tensor to = all_[0].tensor().slice(static_cast<std::int64_t>(e), 1);
      weights_.emplace_back(Tensor{to.data, dtype, one});
      for (std::int64_t n = 0; n < one[0]; ++n) {
        decode(coded[e].view, n, 0, row);
        put(weights_.back().plain(), n, row);
      }
    }
  }
  const Weight& operator[](std::size_t e) const { return weights_[e]; }

 private:
  void put(Tensor to, std::int64_t n, const std::vector<float>& row) const {
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::size_t at = static_cast<std::size_t>(n) * row.size() + k;
      if (isa_ == Isa::Sm90) {
        const_cast<BFloat16*>(to.bf16())[at] = to_bfloat16(row[k]);
      } else {
        to.f32()[at] = row[k];
      }
    }
  }
  Isa isa_;
  std::vector<Array> all_;
  std::vector<Weight> weights_;
};

struct Mixture {
  explicit Mixture(const EncodeSpec& spec)
      : gate(random_experts(kSize, kHidden, spec, 10)),
        up(random_experts(kSize, kHidden, spec, 30)),
        down(random_experts(kHidden, kSize, spec, 50)) {
    for (std::size_t e = 0; e < kExperts; ++e) {
      tensor_scales.f32()[e] = gate[e].view.tensor_scale;
      tensor_scales.f32()[kExperts + e] = up[e].view.tensor_scale;
      tensor_scales.f32()[2 * kExperts + e] = down[e].view.tensor_scale;
    }
  }

  MoeWeights weights(std::span<const GatedMlpWeights> experts, Tensor scales) const {
    return {.router = router,
            .experts = experts,
            .shared = {.gate = shared_wide, .up = shared_wide, .down = shared_down},
            .shared_gate = shared_gate,
            .experts_per_token = kChosen,
            .normalise_topk = true,
            .tensor_scales = scales};
  }

  CodedWeights gate, up, down;
  Array tensor_scales = Array::f32({3, kExperts});
  Array router = random_bf16({kExperts, kHidden}, 1), shared_gate = random_bf16({1, kHidden}, 2);
  Array shared_wide = random_bf16({64, kHidden}, 3), shared_down = random_bf16({kHidden, 64}, 4);
};

Array run(Machine& machine, const MoeWeights& w, Tensor x) {
  Array out = Array::f32({x.rows(), x.width()});
  Scratch scratch = machine.scratch();
  const MixtureSum sum = take_mixture_sum(scratch, x.rows(), x.width(), w.experts_per_token);
  mixture_of_experts(machine.stream(), w, x, scratch, sum);
  add_up(machine.stream(), sum, out);
  return out;
}

TEST_P(MoeWeightOn, QuantisedExpertsAreTheSameExpertsDecoded) {
  for (const EncodeSpec& spec : all_specs()) {
    const Mixture mixture(spec);
    const PlainExperts gate(GetParam(), mixture.gate), up(GetParam(), mixture.up), down(GetParam(), mixture.down);
    std::vector<GatedMlpWeights> coded, plain;
    for (std::size_t e = 0; e < kExperts; ++e) {
      coded.push_back({mixture.gate[e], mixture.up[e], mixture.down[e]});
      plain.push_back({gate[e], up[e], down[e]});
    }
    Machine machine(GetParam(), 2);
    for (const int rows : {1, 3, 9, 40}) {
      const Array x = random_f32({rows, kHidden}, 5);
      EXPECT_TRUE(same_bits(run(machine, mixture.weights(coded, mixture.tensor_scales), x),
                            run(machine, mixture.weights(plain, {}), x)))
          << format_name(mixture.gate.view()) << ", " << rows << " rows";
    }
  }
}

TEST_P(MoeWeightOn, ARowOfQuantisedExpertsKeepsItsBits) {
  for (const EncodeSpec& spec : fast_specs()) {
    if (GetParam() != Isa::Sm90 && spec.format != WeightFormat::Nvfp4) continue;  // a CPU has one code for all
    const Mixture mixture(spec);
    std::vector<GatedMlpWeights> experts;
    for (std::size_t e = 0; e < kExperts; ++e) experts.push_back({mixture.gate[e], mixture.up[e], mixture.down[e]});
    const Array x = random_f32({kPopulation, kHidden}, 5);
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      return run(machine, mixture.weights(experts, mixture.tensor_scales), rows_of(x, rows));
    })) << format_name(mixture.gate.view());
  }
}

// Planted control: an expert read with its neighbour's tensor scale is seen.
TEST(MoeWeight, ANeighboursTensorScaleIsSeen) {
  const EncodeSpec spec{.format = WeightFormat::Nvfp4};
  const Mixture mixture(spec);
  std::vector<GatedMlpWeights> right, wrong;
  for (std::size_t e = 0; e < kExperts; ++e) {
    right.push_back({mixture.gate[e], mixture.up[e], mixture.down[e]});
    wrong.push_back(right.back());
    wrong.back().up.view.tensor_scale = mixture.up[(e + 1) % kExperts].view.tensor_scale;
  }
  Machine machine(best_isa());
  const Array x = random_f32({9, kHidden}, 5);
  EXPECT_FALSE(same_bits(run(machine, mixture.weights(wrong, {}), x), run(machine, mixture.weights(right, {}), x)));
}

}  // namespace
}  // namespace rondo
