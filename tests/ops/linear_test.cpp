#include "ops/linear/linear.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/ops/row_law.h"

namespace rondo {
namespace {

constexpr double kTolerance = 1e-5;

RONDO_ON_KERNELS(LinearOn);
RONDO_ON_ALL(LinearRowsOn);

// The formula in double, from the stored values: independent of the oracle's own walk over rows and parts.
Array naive(Tensor weight, Tensor x, const std::vector<int>& rows) {
  Array out = Array::f32({static_cast<std::int64_t>(rows.size()), weight.shape[0]});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t n = 0; n < weight.shape[0]; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < x.width(); ++k) {
        sum += static_cast<double>(bf16_at(weight, n, k)) * x.f32()[rows[i] * x.width() + k];
      }
      out.row(static_cast<std::int64_t>(i))[n] = static_cast<float>(sum);
    }
  }
  return out;
}

std::vector<int> first_rows(int rows) {
  std::vector<int> out(static_cast<std::size_t>(rows));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

struct Sizes {
  int n, k, rows;
};

void expect_the_formula(Isa isa) {
  Machine machine(isa, 2);
  for (const Values values : {Values::Even, Values::Wild}) {
    // k around the lanes of every instruction set and twice them; n around the four columns of a tile.
    for (const int k : {1, 3, 8, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 100, 257}) {
      for (const Sizes size :
           {Sizes{1, k, 1}, Sizes{4, k, 2}, Sizes{5, k, 3}, Sizes{7, k, 6}, Sizes{66, k, 7}, Sizes{130, k, 13}}) {
        const Array weight = random_bf16({size.n, k}, 1, values);
        const Array x = rounded_for(isa, random_f32({size.rows, k}, 2, values));
        const Array out = Array::f32({size.rows, size.n});
        linear(machine.stream(), weight, x, out);
        // One column or row has no root mean square to speak of, so its cancelled sums are held to their own size.
        const double tolerance = tolerance_on(isa, 1, 5) * (size.n < 5 ? 100 * kTolerance : kTolerance);
        ASSERT_TRUE(close(out, naive(weight, x, first_rows(size.rows)), tolerance))
            << size.n << " x " << k << ", rows " << size.rows;
      }
    }
  }
}

TEST(LinearReference, IsTheFormula) { expect_the_formula(Isa::Reference); }
TEST_P(LinearOn, IsTheFormula) { expect_the_formula(GetParam()); }

// Rows past a block of inputs that stay near: the same sums block after block.
TEST_P(LinearOn, TakesMoreRowsThanStayNear) {
  Machine machine(GetParam(), 2);
  const Array weight = random_bf16({6, 2050}, 1), x = rounded_for(GetParam(), random_f32({75, 2050}, 2));
  const Array out = Array::f32({75, 6});
  linear(machine.stream(), weight, x, out);
  EXPECT_TRUE(close(out, naive(weight, x, first_rows(75)), 10 * kTolerance));
}

TEST_P(LinearRowsOn, RunsSeveralPartsOfDifferentShapesAtOnce) {
  const Array a = random_bf16({9, 33}, 1), b = random_bf16({130, 64}, 2), c = random_bf16({1, 20}, 3);
  const Array xa = rounded_for(GetParam(), random_f32({11, 33}, 4)),
              xb = rounded_for(GetParam(), random_f32({5, 64}, 5));
  const Array xc = rounded_for(GetParam(), random_f32({3, 20}, 6));
  const double tolerance = tolerance_on(GetParam(), kTolerance, 5 * kTolerance);
  const std::vector<std::int32_t> gathered = {10, 0, 0, 7};
  for (int threads = 1; threads <= 3; ++threads) {
    Machine machine(GetParam(), threads);
    const Array out_a = Array::f32({4, 9}), out_b = Array::f32({5, 130}), out_c = Array::f32({3, 1});
    const Array none = Array::f32({1, 9});
    linear(machine.stream(),
           std::array{LinearPart{.weight = a, .x = xa, .out = out_a, .in_rows = machine.rows(gathered), .rows = 4},
                      LinearPart{.weight = a, .x = xa, .out = none, .rows = 0},
                      LinearPart{.weight = b, .x = xb, .out = out_b, .rows = 5},
                      LinearPart{.weight = c, .x = xc, .out = out_c, .rows = 3}});
    EXPECT_TRUE(close(out_a, naive(a, xa, {10, 0, 0, 7}), tolerance));
    EXPECT_TRUE(close(out_b, naive(b, xb, first_rows(5)), tolerance));
    EXPECT_TRUE(close(out_c, naive(c, xc, first_rows(3)), 100 * tolerance));
    EXPECT_TRUE(std::isnan(none.f32()[0])) << "a part without rows writes nothing";
  }
}

TEST_P(LinearRowsOn, KeepsTheBitsOfARow) {
  // The wide ones are cut into runs of columns by a GPU's code.
  for (const Sizes size : {Sizes{70, 133, 0}, Sizes{5, 64, 0}, Sizes{33, 17, 0}, Sizes{53, 16, 0}, Sizes{150, 1000, 0},
                           Sizes{20, 2080, 0}}) {
    const Array weight = random_bf16({size.n, size.k}, 1, Values::Wild);
    const Array x = random_f32({kPopulation, size.k}, 2, Values::Wild);
    EXPECT_TRUE(rows_keep_their_bits(GetParam(),
                                     [&](Machine& machine, const std::vector<int>& rows) {
                                       const Array in = rows_of(x, rows);
                                       Array out = Array::f32({in.rows(), size.n});
                                       linear(machine.stream(), weight, in, out);
                                       return out;
                                     }))
        << size.n << " x " << size.k;
  }
}

// More rows than a round has: a prompt's. A GPU takes them in tiles of 128, the rest in one of its own size.
TEST_P(LinearRowsOn, KeepsTheBitsOfAPromptsRows) {
  for (const Sizes size : {Sizes{70, 133, 0}, Sizes{150, 1000, 0}, Sizes{300, 2080, 0}, Sizes{200, 2048, 0}}) {
    const Array weight = random_bf16({size.n, size.k}, 1, Values::Wild);
    const Array x = random_f32({400, size.k}, 2, Values::Wild);
    const auto multiplied = [&](const Array& in) {
      Machine machine(GetParam(), 2);
      Array out = Array::f32({in.rows(), size.n});
      linear(machine.stream(), weight, in, out);
      return out;
    };
    std::vector<Array> alone;
    for (int row = 0; row < 400; ++row) alone.push_back(multiplied(rows_of(x, {row})));
    for (const int rows : {65, 127, 128, 129, 192, 200, 256, 257, 321, 400}) {
      const Array out = multiplied(rows_of(x, first_rows(rows)));
      for (int row = 0; row < rows; ++row) {
        ASSERT_EQ(std::memcmp(out.row(row), alone[static_cast<std::size_t>(row)].row(0),
                              static_cast<std::size_t>(size.n) * sizeof(float)),
                  0)
            << size.n << " x " << size.k << ", row " << row << " of " << rows;
      }
    }
  }
}

// A GPU has kernels for small weights alone, for small ones beside large ones, for few rows and for many.
TEST_P(LinearRowsOn, KeepsTheBitsOfASmallWeightBesideALargeOne) {
  const Array small = random_bf16({40, 2080}, 1), large = random_bf16({2100, 2080}, 2), x = random_f32({70, 2080}, 3);
  for (const int rows : {1, 8, 12, 24, 40, 70}) {
    Machine machine(GetParam(), 2);
    const Array of_small = Array::f32({rows, 40}), of_large = Array::f32({rows, 2100});
    linear(machine.stream(), std::array{LinearPart{.weight = small, .x = x, .out = of_small, .rows = rows},
                                        LinearPart{.weight = large, .x = x, .out = of_large, .rows = rows}});
    for (const int row : {0, rows / 2, rows - 1}) {
      const Array in = rows_of(x, {row}), alone_small = Array::f32({1, 40}), alone_large = Array::f32({1, 2100});
      linear(machine.stream(), small, in, alone_small);
      linear(machine.stream(), large, in, alone_large);
      EXPECT_EQ(std::memcmp(of_small.row(row), alone_small.row(0), 40 * sizeof(float)), 0) << row << " of " << rows;
      EXPECT_EQ(std::memcmp(of_large.row(row), alone_large.row(0), 2100 * sizeof(float)), 0) << row << " of " << rows;
    }
  }
}

TEST_P(LinearRowsOn, KeepsTheBitsOfAGatheredRowAmongOtherParts) {
  const Array weight = random_bf16({21, 50}, 1), other = random_bf16({90, 40}, 3);
  const Array x = random_f32({kPopulation, 50}, 2), other_x = random_f32({kPopulation, 40}, 4);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    const int count = static_cast<int>(rows.size());
    Array out = Array::f32({count, 21});
    const Array beside = Array::f32({count, 90});
    linear(machine.stream(),
           std::array{LinearPart{.weight = other, .x = other_x, .out = beside, .rows = count},
                      LinearPart{.weight = weight, .x = x, .out = out, .in_rows = machine.rows(rows), .rows = count}});
    return out;
  }));
}

// Planted control: inputs and tolerance must see the last element of a row left out.
TEST(Linear, ASkippedTailIsSeen) {
  const Array weight = random_bf16({66, 33}, 1), x = random_f32({7, 33}, 2), short_x = random_f32({7, 33}, 2);
  for (int r = 0; r < 7; ++r) short_x.row(r)[32] = 0;
  EXPECT_FALSE(close(naive(weight, short_x, first_rows(7)), naive(weight, x, first_rows(7)), kTolerance));
}

}  // namespace
}  // namespace rondo
