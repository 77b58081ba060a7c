#include "ops/norm/norm.h"

#include <cmath>

#include "ops/pointwise/pointwise.h"
#include "tests/ops/row_law.h"

namespace rondo {
namespace {

constexpr double kTolerance = 1e-5;
constexpr float kEps = 1e-6F;

RONDO_ON_ALL(NormOn);

struct Sizes {
  int rows, width, group;
};
constexpr Sizes kSizes[] = {{1, 1, 1},     {3, 16, 16},  {5, 17, 17},  {2, 63, 63}, {7, 64, 64},
                            {3, 130, 130}, {2, 300, 75}, {5, 256, 64}, {3, 93, 31}};

Array naive_rms(Tensor x, Tensor gain, int group) {
  Array out = Array::f32({x.rows(), x.width()});
  for (int r = 0; r < x.rows(); ++r) {
    for (std::int64_t g = 0; g < x.width(); g += group) {
      double squares = 0;
      for (int d = 0; d < group; ++d) squares += std::pow(static_cast<double>(x.f32()[r * x.width() + g + d]), 2);
      const double scale = 1 / std::sqrt(squares / group + kEps);
      for (int d = 0; d < group; ++d) {
        out.row(r)[g + d] = static_cast<float>(x.f32()[r * x.width() + g + d] * scale * gain.f32()[g + d]);
      }
    }
  }
  return out;
}

TEST_P(NormOn, RmsNormIsTheFormulaWholeAndInGroups) {
  Machine machine(GetParam(), 2);
  for (const Values values : {Values::Even, Values::Wild}) {
    for (const Sizes& size : kSizes) {
      const Array x = random_f32({size.rows, size.width}, 1, values), gain = random_f32({size.width}, 2);
      const Array out = Array::f32({size.rows, size.width});
      rms_norm(machine.stream(), x, gain, {kEps, size.group}, out);
      ASSERT_TRUE(close(out, naive_rms(x, gain, size.group), kTolerance)) << size.width << " by " << size.group;
      rms_norm(machine.stream(), x, gain, {kEps, size.group}, x);
      EXPECT_TRUE(same_bits(x, out)) << "in place";
    }
  }
}

TEST_P(NormOn, RmsNormOfTinyAndZeroRowsIsHeldUpByEps) {
  Machine machine(GetParam());
  const Array x = constant_f32({2, 20}, 1e-7F), gain = constant_f32({20}, 1), out = Array::f32({2, 20});
  std::fill_n(x.row(1), 20, 0.0F);
  rms_norm(machine.stream(), x, gain, {kEps, 20}, out);
  EXPECT_NEAR(out.f32()[0], 1e-7 / std::sqrt(1e-6), 1e-8);
  EXPECT_EQ(out.row(1)[19], 0);
}

Array naive_gated(Tensor x, Tensor gate, Tensor gain, Gate act) {
  const int dim = static_cast<int>(gain.shape[0]);
  Array out = Array::f32({x.rows(), x.width()});
  const Array repeated = Array::f32({x.width()});
  for (std::int64_t i = 0; i < x.width(); ++i) repeated.f32()[i] = gain.f32()[i % dim];
  const Array normed = naive_rms(x, repeated, dim);
  for (std::int64_t i = 0; i < out.num_elements(); ++i) {
    const double z = gate.f32()[i], open = 1 / (1 + std::exp(-z));
    out.f32()[i] = static_cast<float>(normed.f32()[i] * (act == Gate::Silu ? z * open : open));
  }
  return out;
}

TEST_P(NormOn, GatedNormIsTheFormulaWithEitherGate) {
  Machine machine(GetParam(), 2);
  for (const Gate act : {Gate::Silu, Gate::Sigmoid}) {
    for (const Values values : {Values::Even, Values::Wild}) {
      for (const int dim : {1, 16, 20, 33, 128}) {
        const Array x = random_f32({5, 3 * dim}, 1, values), gate = random_f32({5, 3 * dim}, 2, values);
        const Array gain = random_f32({dim}, 3), out = Array::f32({5, 3 * dim});
        gated_norm(machine.stream(), x, gate, gain, kEps, act, out);
        ASSERT_TRUE(close(out, naive_gated(x, gate, gain, act), kTolerance)) << "head of " << dim;
      }
    }
  }
}

TEST_P(NormOn, RmsNormKeepsTheBitsOfARow) {
  for (const int group : {525, 75}) {
    const Array x = random_f32({kPopulation, 525}, 1, Values::Wild), gain = random_f32({525}, 2);
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      const Array in = rows_of(x, rows);
      Array out = Array::f32({in.rows(), 525});
      rms_norm(machine.stream(), in, gain, {kEps, group}, out);
      return out;
    }));
  }
}

// Sizes of every width of block that a GPU has for a group, those of the published shapes among them.
TEST_P(NormOn, AddNormIsTheAdditionAndThenTheNormToTheBit) {
  Machine machine(GetParam(), 2);
  for (const Sizes& size : {Sizes{5, 17, 17},
                            {3, 300, 75},
                            {4, 256, 64},
                            {3, 525, 525},
                            {2, 640, 320},
                            {3, 2048, 2048},
                            {2, 5120, 5120},
                            {1, 9000, 9000}}) {
    const Array y = random_f32({size.rows, size.width}, 1, Values::Wild), gain = random_f32({size.width}, 2);
    const Array residual = random_f32({size.rows, size.width}, 3), apart = random_f32({size.rows, size.width}, 3);
    const Array out = Array::f32({size.rows, size.width}), want = Array::f32({size.rows, size.width});
    add(machine.stream(), y, apart);
    rms_norm(machine.stream(), apart, gain, {kEps, size.group}, want);
    add_norm(machine.stream(), y, residual, gain, {kEps, size.group}, out);
    EXPECT_TRUE(same_bits(residual, apart)) << size.width << " by " << size.group;
    EXPECT_TRUE(same_bits(out, want)) << size.width << " by " << size.group;
    EXPECT_TRUE(close(out, naive_rms(apart, gain, static_cast<int>(size.group)), 5 * kTolerance)) << size.width;

    const Array in_place = random_f32({size.rows, size.width}, 3);
    add_norm(machine.stream(), y, in_place, gain, {kEps, size.group}, in_place);
    EXPECT_TRUE(same_bits(in_place, want)) << size.width << ", in place";
  }
}

TEST_P(NormOn, AddNormKeepsTheBitsOfARow) {
  const Array y = random_f32({kPopulation, 525}, 1, Values::Wild), residual = random_f32({kPopulation, 525}, 2);
  const Array gain = random_f32({525}, 3);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    const Array sum = rows_of(residual, rows);
    Array out = Array::f32({sum.rows(), 2 * 525});
    const Array normed = Array::f32({sum.rows(), 525});
    add_norm(machine.stream(), rows_of(y, rows), sum, gain, {kEps, 525}, normed);
    for (int r = 0; r < sum.rows(); ++r) {
      std::copy_n(sum.row(r), 525, out.row(r));
      std::copy_n(normed.row(r), 525, out.row(r) + 525);
    }
    return out;
  }));
}

TEST_P(NormOn, GatedNormKeepsTheBitsOfARow) {
  const Array x = random_f32({kPopulation, 132}, 1), gate = random_f32({kPopulation, 132}, 2, Values::Wild);
  const Array gain = random_f32({33}, 3);
  for (const Gate act : {Gate::Silu, Gate::Sigmoid}) {
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      const Array in = rows_of(x, rows), gates = rows_of(gate, rows);
      Array out = Array::f32({in.rows(), 132});
      gated_norm(machine.stream(), in, gates, gain, kEps, act, out);
      return out;
    }));
  }
}

// Planted controls: the inputs must see the usual slips of a norm.
TEST(Norm, AGroupedNormTakenWholeIsSeen) {
  const Array x = random_f32({2, 300}, 1), gain = random_f32({300}, 2);
  EXPECT_FALSE(close(naive_rms(x, gain, 300), naive_rms(x, gain, 75), kTolerance));
}
TEST(Norm, AGainReadAsItsOffsetIsSeen) {
  const Array x = random_f32({2, 64}, 1), gain = random_f32({64}, 2), offset = random_f32({64}, 2);
  for (int i = 0; i < 64; ++i) offset.f32()[i] += 1;
  EXPECT_FALSE(close(naive_rms(x, gain, 64), naive_rms(x, offset, 64), kTolerance));
}
TEST(Norm, AnotherGateIsSeen) {
  const Array x = random_f32({2, 64}, 1), gate = random_f32({2, 64}, 3), gain = random_f32({16}, 2);
  EXPECT_FALSE(close(naive_gated(x, gate, gain, Gate::Silu), naive_gated(x, gate, gain, Gate::Sigmoid), kTolerance));
}

}  // namespace
}  // namespace rondo
