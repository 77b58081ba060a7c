#include "ops/ngram/ngram.h"

#include <cmath>

#include "tests/ops/row_law.h"

namespace rondo {
namespace {

constexpr double kTolerance = 1e-5;
constexpr std::int32_t kEos = 248044;

RONDO_ON_ALL(NgramOn);

// The table is read where it lies: by a CPU, for a GPU too.
std::vector<Isa> isas_that_gather() {
  std::vector<Isa> isas = all_isas();
  std::erase(isas, Isa::Sm90);
  return isas;
}
class NgramTableOn : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(All, NgramTableOn, testing::ValuesIn(isas_that_gather()), isa_label);

// The published model's hash.
struct PublishedHash {
  std::vector<std::int64_t> multipliers = {23703573157769, 20109073645365, 8052911324071};
  std::vector<std::int64_t> sizes = {20000003, 20000023, 20000033, 20000047, 20000059, 20000063, 20000069, 20000077,
                                     20000081, 20000093, 20000107, 20000147, 20000153, 20000159, 20000161, 20000171};
  std::vector<std::int64_t> offsets;
  PublishedHash() {
    std::int64_t at = 0;
    for (const std::int64_t size : sizes) {
      offsets.push_back(at);
      at += size;
    }
  }
  NgramSpec spec() const { return {3, 8, kEos, multipliers, offsets, sizes}; }
};

std::vector<std::int64_t> rows_for(const std::vector<std::int32_t>& history) {
  static const PublishedHash hash;
  std::vector<std::int64_t> rows(16, -1);
  ngram_rows(hash.spec(), history, rows.data());
  return rows;
}

struct Vector {
  std::vector<std::int32_t> history;
  std::vector<std::int64_t> rows;  // of heads 0, 1, 7, 8, 9, 15
};

TEST(NgramRows, AreThoseOfThePublishedVectors) {
  const std::vector<Vector> vectors = {
      {{9707}, {16410909, 39682429, 152932897, 169641436, 182022480, 300984276}},
      {{9707, 11}, {18158303, 36390029, 159566246, 175132467, 192583600, 307699687}},
      {{9707, 11, 1879}, {6380558, 26411572, 148942556, 164226950, 190352573, 312121804}},
      {{9707, kEos}, {13256830, 36293698, 154368323, 166762559, 197966928, 302582921}},
      {{9707, kEos, 1879}, {4534223, 34461195, 149402401, 160426620, 196479308, 309845962}},
      {{9707, kEos, 1879, 0}, {11899280, 26999030, 148146117, 163179256, 180006889, 313838617}},
  };
  for (const Vector& each : vectors) {
    const auto rows = rows_for(each.history);
    const std::vector<std::int64_t> got = {rows[0], rows[1], rows[7], rows[8], rows[9], rows[15]};
    EXPECT_EQ(got, each.rows) << each.history.size() << " tokens";
  }
}

TEST(NgramRows, ReachNotPastAnEndOfText) {
  EXPECT_EQ(rows_for({5, kEos, 7}), rows_for({6, kEos, 7})) << "cut off by the token between";
  EXPECT_EQ(rows_for({5, kEos, 7}), rows_for({kEos, 7}));
  EXPECT_EQ(rows_for({kEos, 7}), rows_for({7})) << "before the sequence is end of text";
  EXPECT_NE(rows_for({5, 6, kEos}), rows_for({5, 8, kEos})) << "an end of text does not cut its own context";
  EXPECT_NE(rows_for({5, 6, kEos}), rows_for({4, 6, kEos}));
}

TEST(NgramRows, LookAtThreeTokensAndNotFurther) {
  EXPECT_EQ(rows_for({1, 2, 3, 4}), rows_for({9, 2, 3, 4}));
  EXPECT_NE(rows_for({2, 3, 4}), rows_for({9, 3, 4}));
  const auto a = rows_for({2, 3, 4}), b = rows_for({9, 3, 4});
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 8, b.begin())) << "pairs read two tokens";
}

TEST(NgramRows, StayWithinTheirHead) {
  const PublishedHash hash;
  for (std::int32_t token = 0; token < 3000; ++token) {
    const auto rows = rows_for({248319 - token, 248319, token * 80});
    for (std::size_t h = 0; h < rows.size(); ++h) {
      ASSERT_GE(rows[h], hash.offsets[h]);
      ASSERT_LT(rows[h], hash.offsets[h] + hash.sizes[h]);
    }
  }
}

TEST_P(NgramTableOn, GatherTakesEachHeadsRowFromItsShard) {
  Machine machine(GetParam(), 3);
  for (const int dim : {1, 16, 21, 160}) {
    const Array first = random_bf16({5, dim}, 1), second = random_bf16({5, dim}, 2), third = random_bf16({5, dim}, 3);
    const std::vector<Weight> shards = {first, second, third};
    const Array rows(DType::I64, {6, 3}), out = Array::f32({6, 3 * dim}), want = Array::f32({6, 3 * dim});
    for (int i = 0; i < 18; ++i) {
      const int row = i * 7 % 15;
      rows.i64()[i] = row;
      for (int d = 0; d < dim; ++d)
        want.f32()[i * dim + d] = bf16_at(shards[static_cast<std::size_t>(row / 5)].plain(), row % 5, d);
    }
    ngram_gather(machine.stream(), shards, rows, out);
    EXPECT_TRUE(same_bits(out, want)) << dim;
  }
}

Array naive_gate(Tensor key, Tensor query, Tensor value) {
  const std::int64_t hidden = value.width(), streams = key.width() / hidden;
  Array out = Array::f32(key.shape);
  for (int r = 0; r < key.rows(); ++r) {
    for (std::int64_t i = 0; i < streams; ++i) {
      double score = 0;
      const std::int64_t at = (r * streams + i) * hidden;
      for (std::int64_t d = 0; d < hidden; ++d) score += static_cast<double>(key.f32()[at + d]) * query.f32()[at + d];
      score /= std::sqrt(static_cast<double>(hidden));
      const double sign = score > 0 ? 1 : score < 0 ? -1 : 0;
      const double open = 1 / (1 + std::exp(-sign * std::sqrt(std::max(std::abs(score), 1e-6))));
      for (std::int64_t d = 0; d < hidden; ++d)
        out.f32()[at + d] = static_cast<float>(open * value.f32()[r * hidden + d]);
    }
  }
  return out;
}

TEST_P(NgramOn, TheGateIsTheFormula) {
  Machine machine(GetParam(), 2);
  for (const int hidden : {1, 16, 33, 160}) {
    const Array key = random_f32({7, 4 * hidden}, 1), query = random_f32({7, 4 * hidden}, 2, Values::Wild),
                value = random_f32({7, hidden}, 3);
    std::fill_n(key.row(6), 4 * hidden, 0.0F);                                // a score of 0
    for (int d = 0; d < 4 * hidden; ++d) key.row(5)[d] = d == 0 ? 1e-9F : 0;  // and one below the floor of the root
    const Array out = Array::f32(key.shape());
    ngram_gate(machine.stream(), key, query, value, out);
    EXPECT_TRUE(close(out, naive_gate(key, query, value), 10 * kTolerance)) << hidden;
  }
}

TEST_P(NgramOn, TheGateKeepsTheBitsOfARow) {
  const Array key = random_f32({kPopulation, 4 * 75}, 1), query = random_f32({kPopulation, 4 * 75}, 2),
              value = random_f32({kPopulation, 75}, 3);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    Array out = Array::f32({static_cast<std::int64_t>(rows.size()), 4 * 75});
    ngram_gate(machine.stream(), rows_of(key, rows), rows_of(query, rows), rows_of(value, rows), out);
    return out;
  }));
}

// Planted control: the inputs must see a gate whose score lost its sign.
TEST(NgramGate, ALostSignIsSeen) {
  const Array key = random_f32({2, 64}, 1), query = random_f32({2, 64}, 2), value = random_f32({2, 16}, 3),
              flipped = random_f32({2, 64}, 2);
  for (int i = 0; i < 16; ++i) flipped.f32()[i] = -flipped.f32()[i];
  EXPECT_FALSE(close(naive_gate(key, flipped, value), naive_gate(key, query, value), 10 * kTolerance));
}

}  // namespace
}  // namespace rondo
