#include "ops/pointwise/pointwise.h"

#include <cmath>

#include "tests/ops/row_law.h"

namespace rondo {
namespace {

constexpr double kTolerance = 1e-5;

RONDO_ON_ALL(PointwiseOn);

float silu_of(double x) { return static_cast<float>(x / (1 + std::exp(-x))); }

TEST_P(PointwiseOn, EmbedCopiesTheTokensRowToEveryStream) {
  Machine machine(GetParam(), 3);
  const std::vector<std::int32_t> ids = {4, 0, 4, 12, 7};
  for (const int width : {1, 15, 16, 40, 67}) {
    const Array table = random_bf16({13, width}, 1, Values::Wild);
    for (const int copies : {1, 4}) {
      const Array out = Array::f32({5, copies * width}), want = Array::f32({5, copies * width});
      embed(machine.stream(), table, machine.rows(ids), copies, out);
      for (int r = 0; r < 5; ++r) {
        for (int i = 0; i < copies * width; ++i)
          want.row(r)[i] = bf16_at(table, ids[static_cast<std::size_t>(r)], i % width);
      }
      EXPECT_TRUE(same_bits(out, want)) << width << " x " << copies;
    }
  }
}

TEST_P(PointwiseOn, AddAddsToEveryCopy) {
  Machine machine(GetParam(), 3);
  for (const int width : {1, 16, 37, 3000}) {
    for (const int copies : {1, 4}) {
      const Array a = random_f32({5, width}, 1), out = random_f32({5, copies * width}, 2),
                  want = random_f32({5, copies * width}, 2);
      add(machine.stream(), a, out);
      for (int r = 0; r < 5; ++r) {
        for (int i = 0; i < copies * width; ++i) want.row(r)[i] += a.row(r)[i % width];
      }
      EXPECT_TRUE(same_bits(out, want)) << width << " x " << copies;
    }
  }
}

TEST_P(PointwiseOn, GatherRowsAndSideBySideCopy) {
  Machine machine(GetParam(), 2);
  const Array a = random_f32({6, 21}, 1), b = random_f32({6, 10}, 2);
  const std::vector<int> rows = {5, 5, 0, 3};
  const Array gathered = Array::f32({4, 21}), beside = Array::f32({6, 31});
  gather_rows(machine.stream(), a, machine.rows(rows), gathered);
  EXPECT_TRUE(same_bits(gathered, rows_of(a, rows)));
  side_by_side(machine.stream(), a, b, beside);
  for (int r = 0; r < 6; ++r) {
    EXPECT_TRUE(same_bits(std::span(beside.row(r), 21), std::span(a.row(r), 21)));
    EXPECT_TRUE(same_bits(std::span(beside.row(r) + 21, 10), std::span(b.row(r), 10)));
  }
}

TEST_P(PointwiseOn, SiluProductAndSiluScaledAreTheFormulaAlsoInPlace) {
  Machine machine(GetParam(), 2);
  for (const Values values : {Values::Even, Values::Wild}) {
    for (const int width : {1, 8, 17, 64, 95}) {
      const Array gate = random_f32({5, width}, 1, values), up = random_f32({5, width}, 2, values);
      const Array product = Array::f32({5, width}), scaled = Array::f32({5, width});
      const Array want_product = Array::f32({5, width}), want_scaled = Array::f32({5, width});
      for (int i = 0; i < 5 * width; ++i) {
        want_product.f32()[i] = silu_of(gate.f32()[i]) * up.f32()[i];
        want_scaled.f32()[i] = silu_of(0.25 * gate.f32()[i]);
      }
      silu_product(machine.stream(), gate, up, product);
      silu_scaled(machine.stream(), gate, 0.25F, scaled);
      EXPECT_TRUE(close(product, want_product, kTolerance)) << width;
      EXPECT_TRUE(close(scaled, want_scaled, kTolerance)) << width;
      silu_scaled(machine.stream(), up, 0.25F, up);
      const Array again = random_f32({5, width}, 2, values);
      silu_scaled(machine.stream(), again, 0.25F, again);
      EXPECT_TRUE(same_bits(up, again));
      silu_product(machine.stream(), gate, again, gate);
    }
  }
}

TEST_P(PointwiseOn, SiluStaysFiniteAtTheEnds) {
  Machine machine(GetParam());
  const Array x = Array::f32({1, 6}), out = Array::f32({1, 6});
  const float ends[] = {-3e38F, -1000, -87.5F, 87.5F, 1000, 3e38F};
  std::copy_n(ends, 6, x.f32());
  silu_scaled(machine.stream(), x, 1, out);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isfinite(out.f32()[i])) << ends[i];
  EXPECT_FLOAT_EQ(out.f32()[4], 1000);
  EXPECT_NEAR(out.f32()[1], 0, 1e-30);
}

TEST_P(PointwiseOn, KeepTheBitsOfARow) {
  const int width = 523;
  const Array a = random_f32({kPopulation, width}, 1, Values::Wild),
              b = random_f32({kPopulation, width}, 2, Values::Wild);
  const auto law = [&](auto op) {
    return rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      Array out = Array::f32({static_cast<std::int64_t>(rows.size()), width});
      op(machine.stream(), rows_of(a, rows), rows_of(b, rows), out);
      return out;
    });
  };
  EXPECT_TRUE(law([](Stream& s, Tensor x, Tensor y, Tensor out) { silu_product(s, x, y, out); }));
  EXPECT_TRUE(law([](Stream& s, Tensor x, Tensor, Tensor out) { silu_scaled(s, x, 0.25F, out); }));
  EXPECT_TRUE(law([](Stream& s, Tensor x, Tensor y, Tensor out) {
    std::copy_n(y.f32(), y.shape.num_elements(), out.f32());
    add(s, x, out);
  }));
}

TEST_P(PointwiseOn, EmbedKeepsTheBitsOfARow) {
  const Array table = random_bf16({kPopulation, 131}, 1);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    Array out = Array::f32({static_cast<std::int64_t>(rows.size()), 4 * 131});
    embed(machine.stream(), table, machine.rows(rows), 4, out);
    return out;
  }));
}

}  // namespace
}  // namespace rondo
