// The checkers checked: each must see the faults the other tests rely on it to see.
#include <cmath>
#include <limits>

#include "tests/ops/row_law.h"

namespace rondo {
namespace {

TEST(Close, SeesOneElementOffByTwiceTheTolerance) {
  const Array want = random_f32({3, 40}, 1);
  const Array got = random_f32({3, 40}, 1);
  EXPECT_TRUE(close(got, want, 1e-5));
  got.row(2)[39] += 4e-5F;
  EXPECT_FALSE(close(got, want, 1e-5));
}

TEST(Close, SeesNanAndInfinity) {
  const Array want = random_f32({1, 8}, 1);
  const Array got = random_f32({1, 8}, 1);
  got.f32()[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(close(got, want, 1e9));
  got.f32()[7] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(close(got, want, 1e9));
}

TEST(Close, SeesAnotherShape) {
  EXPECT_FALSE(close(random_f32({2, 8}, 1), random_f32({1, 16}, 1), 1));
  EXPECT_FALSE(close(std::vector<float>{1, 2}, std::vector<float>{1}, 1));
}

TEST(SameBits, SeesTheLastBitAndTheSignOfZero) {
  const std::vector<float> want = {1, 0, 3};
  EXPECT_TRUE(same_bits(std::vector<float>{1, 0, 3}, want));
  EXPECT_FALSE(same_bits(std::vector<float>{1, 0, std::nextafter(3.0F, 4.0F)}, want));
  EXPECT_FALSE(same_bits(std::vector<float>{1, -0.0F, 3}, want));
  EXPECT_FALSE(same_bits(std::vector<float>{1, 0}, want));
}

TEST(SameBits, TakesNoNanForWritten) {
  const std::vector<float> nan = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_FALSE(same_bits(nan, nan));
}

TEST(Array, IsNanWhereNobodyWrote) {
  const Array fresh = Array::f32({1, 4});
  EXPECT_FALSE(close(fresh, Array::zeros({1, 4}), 1e9));
}

// Sums of a row, in as many pieces as `pieces` says: the fault a kernel makes that splits by the number of rows.
Array sums(const std::vector<int>& rows, Tensor x, int pieces) {
  Array out = Array::f32({static_cast<std::int64_t>(rows.size()), 1});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float total = 0;
    for (int p = 0; p < pieces; ++p) {
      float part = 0;
      for (std::int64_t k = p; k < x.width(); k += pieces) part += x.f32()[rows[i] * x.width() + k];
      total += part;
    }
    out.f32()[i] = total;
  }
  return out;
}

TEST(RowsKeepTheirBits, HoldsForASumOfFixedOrder) {
  const Array x = random_f32({kPopulation, 100}, 1);
  EXPECT_TRUE(rows_keep_their_bits(Isa::Reference, [&](Machine&, const auto& rows) { return sums(rows, x, 1); }));
}

TEST(RowsKeepTheirBits, SeesASumSplitByTheNumberOfRows) {
  const Array x = random_f32({kPopulation, 100}, 1);
  EXPECT_FALSE(rows_keep_their_bits(
      Isa::Reference, [&](Machine&, const auto& rows) { return sums(rows, x, rows.size() > 30 ? 2 : 1); }));
}

TEST(RowsKeepTheirBits, SeesARowThatLandsOnItsNeighbour) {
  const Array x = random_f32({kPopulation, 3}, 1);
  EXPECT_FALSE(rows_keep_their_bits(Isa::Reference, [&](Machine&, std::vector<int> rows) {
    if (rows.size() == 5) rows[3] = rows[4];
    return rows_of(x, rows);
  }));
}

TEST(RowsKeepTheirBits, SeesASplitByTheNumberOfThreads) {
  const Array x = random_f32({kPopulation, 100}, 1);
  EXPECT_FALSE(rows_keep_their_bits(Isa::Reference, [&](Machine& machine, const auto& rows) {
    return sums(rows, x, machine.stream().pool().num_threads());
  }));
}

}  // namespace
}  // namespace rondo
