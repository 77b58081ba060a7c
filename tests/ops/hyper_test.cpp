#include "ops/hyper/hyper.h"

#include <cmath>
#include <limits>

#include "ops/linear/linear.h"
#include "ops/norm/norm.h"
#include "ops/pointwise/pointwise.h"
#include "tests/ops/row_law.h"

namespace rondo {
namespace {

constexpr double kTolerance = 1e-5;

RONDO_ON_ALL(HyperOn);

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

Array naive_read(Tensor normed, Tensor omega, int streams) {
  const std::int64_t hidden = normed.width() / streams;
  Array out = Array::f32({normed.rows(), hidden});
  for (int r = 0; r < normed.rows(); ++r) {
    for (std::int64_t d = 0; d < hidden; ++d) {
      double sum = 0;
      for (int s = 0; s < streams; ++s) {
        const std::int64_t at = r * normed.width() + s * hidden + d;
        sum += sigmoid_of(omega.f32()[at]) * normed.f32()[at];
      }
      out.row(r)[d] = static_cast<float>(sum / streams);
    }
  }
  return out;
}

void naive_inject(Tensor y, Tensor inject, Tensor streams) {
  const int count = static_cast<int>(inject.width());
  for (int r = 0; r < y.rows(); ++r) {
    for (int s = 0; s < count; ++s) {
      const double kappa = 2 * sigmoid_of(inject.f32()[r * count + s] / static_cast<double>(count));
      for (std::int64_t d = 0; d < y.width(); ++d) {
        float& at = streams.f32()[(r * count + s) * y.width() + d];
        at = static_cast<float>(at + kappa * y.f32()[r * y.width() + d]);
      }
    }
  }
}

TEST_P(HyperOn, ReadIsTheFormula) {
  Machine machine(GetParam(), 2);
  for (const Values values : {Values::Even, Values::Wild}) {
    for (const int hidden : {1, 16, 21, 64, 77}) {
      for (const int streams : {1, 3, 4}) {
        const Array normed = random_f32({5, streams * hidden}, 1, values),
                    omega = random_f32({5, streams * hidden}, 2, values);
        const Array x = Array::f32({5, hidden});
        hyper_read(machine.stream(), normed, omega, x);
        EXPECT_TRUE(close(x, naive_read(normed, omega, streams), 10 * kTolerance)) << hidden << " x " << streams;
      }
    }
  }
}

TEST_P(HyperOn, InjectIsTheFormula) {
  Machine machine(GetParam(), 2);
  for (const Values values : {Values::Even, Values::Wild}) {
    for (const int hidden : {1, 16, 21, 64, 77}) {
      for (const int streams : {1, 3, 4}) {
        const Array y = random_f32({5, hidden}, 1, values), inject = random_f32({5, streams}, 2, values);
        const Array got = random_f32({5, streams * hidden}, 3), want = random_f32({5, streams * hidden}, 3);
        hyper_inject(machine.stream(), y, inject, got);
        naive_inject(y, inject, want);
        EXPECT_TRUE(close(got, want, 10 * kTolerance)) << hidden << " x " << streams;
      }
    }
  }
}

// A fault upstream must not come out as a plausible number: sigmoid(NaN) is NaN.
TEST_P(HyperOn, ANanGateIsNotHidden) {
  Machine machine(GetParam());
  const Array normed = random_f32({1, 37}, 1), omega = random_f32({1, 37}, 2), x = Array::f32({1, 37});
  for (const int at : {3, 35}) omega.f32()[at] = std::numeric_limits<float>::quiet_NaN();
  hyper_read(machine.stream(), normed, omega, x);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(std::isnan(x.f32()[i]), i == 3 || i == 35) << i;
}

TEST_P(HyperOn, ReadKeepsTheBitsOfARow) {
  const Array normed = random_f32({kPopulation, 4 * 101}, 1),
              omega = random_f32({kPopulation, 4 * 101}, 2, Values::Wild);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    Array out = Array::f32({static_cast<std::int64_t>(rows.size()), 101});
    hyper_read(machine.stream(), rows_of(normed, rows), rows_of(omega, rows), out);
    return out;
  }));
}

TEST_P(HyperOn, InjectKeepsTheBitsOfARow) {
  const Array y = random_f32({kPopulation, 101}, 1), inject = random_f32({kPopulation, 4}, 2, Values::Wild);
  const Array streams = random_f32({kPopulation, 4 * 101}, 3);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    Array out = rows_of(streams, rows);
    hyper_inject(machine.stream(), rows_of(y, rows), rows_of(inject, rows), out);
    return out;
  }));
}

TEST_P(HyperOn, InjectNormIsTheInjectionAndThenTheNormToTheBit) {
  Machine machine(GetParam(), 2);
  constexpr float kEps = 1e-6F;
  for (const int hidden : {1, 16, 21, 64, 77, 640, 2048}) {
    for (const int count : {1, 3, 4}) {
      const std::int64_t width = count * hidden;
      const Array y = random_f32({5, hidden}, 1, Values::Wild), inject = random_f32({5, count}, 2, Values::Wild);
      const Array gain = random_f32({width}, 4), normed = Array::f32({5, width}), want = Array::f32({5, width});
      const Array streams = random_f32({5, width}, 3), apart = random_f32({5, width}, 3);
      hyper_inject(machine.stream(), y, inject, apart);
      rms_norm(machine.stream(), apart, gain, {kEps, hidden}, want);
      hyper_inject_norm(machine.stream(), y, inject, streams, gain, kEps, normed);
      EXPECT_TRUE(same_bits(streams, apart)) << hidden << " x " << count;
      EXPECT_TRUE(same_bits(normed, want)) << hidden << " x " << count;
    }
  }
}

TEST_P(HyperOn, InjectNormKeepsTheBitsOfARow) {
  const Array y = random_f32({kPopulation, 101}, 1), inject = random_f32({kPopulation, 4}, 2, Values::Wild);
  const Array streams = random_f32({kPopulation, 4 * 101}, 3), gain = random_f32({4 * 101}, 4);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    Array normed = Array::f32({static_cast<std::int64_t>(rows.size()), 4 * 101});
    hyper_inject_norm(machine.stream(), rows_of(y, rows), rows_of(inject, rows), rows_of(streams, rows), gain, 1e-6F,
                      normed);
    return normed;
  }));
}

TEST_P(HyperOn, MixIsItsStepsOneAfterTheOtherToTheBit) {
  Machine machine(GetParam(), 2);
  for (const int rank : {16, 21, 320}) {
    for (const int hidden : {16, 40}) {
      const Array up = random_bf16({4 * hidden, rank}, 1);
      for (const int rows : {1, 5, 9, 20}) {
        const Array normed = random_f32({rows, 4 * hidden}, 2), omega = Array::f32({rows, 4 * hidden});
        const Array mix = random_f32({rows, rank}, 3), apart = random_f32({rows, rank}, 3);
        const Array x = Array::f32({rows, hidden}), want = Array::f32({rows, hidden});
        hyper_mix(machine.stream(), normed, mix, up, machine.scratch(), x);
        silu_scaled(machine.stream(), apart, 0.25F, apart);
        linear(machine.stream(), up, apart, omega);
        hyper_read(machine.stream(), normed, omega, want);
        EXPECT_TRUE(same_bits(x, want)) << rank << ", " << rows << " rows of " << hidden;
      }
    }
  }
}

// Planted controls: streams exchanged, and a kappa without its 2, must be seen.
TEST(Hyper, ExchangedStreamsAreSeen) {
  const Array normed = random_f32({2, 80}, 1), omega = random_f32({2, 80}, 2), exchanged = random_f32({2, 80}, 2);
  std::swap_ranges(exchanged.row(1), exchanged.row(1) + 20, exchanged.row(1) + 20);
  EXPECT_FALSE(close(naive_read(normed, exchanged, 4), naive_read(normed, omega, 4), 10 * kTolerance));
}

}  // namespace
}  // namespace rondo
