#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/attention/attention.h"
#include "tests/ops/timeline.h"

namespace rondo {
namespace {

constexpr double kTolerance = 2e-5;
constexpr float kEps = 1e-6F;

RONDO_ON_KERNELS(AttentionOn);
RONDO_ON_ALL(AttentionRowsOn);

struct AttentionCase {
  int q_heads, kv_heads, head_dim, rotary_dim;
  Values values = Values::Even;
};
constexpr AttentionCase kCases[] = {{4, 2, 16, 4}, {3, 1, 32, 32},  {4, 4, 64, 16, Values::Wild},
                                    {6, 2, 12, 6}, {12, 1, 20, 10}, {2, 1, 128, 32}};
constexpr AttentionCase kWide = {2, 1, 256, 64}, kManyHeads = {18, 2, 72, 8};

// A GPU rounds queries, keys, values and weights to bf16; wild values are a few large ones among many small.
double tolerance_for(Isa isa, const AttentionCase& c) {
  return tolerance_on(isa, kTolerance, c.values == Values::Wild ? 1e-1 : 2e-2);
}

// A GPU's code reads eight elements of a head at once.
std::vector<AttentionCase> cases_for(Isa isa, std::initializer_list<AttentionCase> more = {}) {
  std::vector<AttentionCase> out(std::begin(kCases), std::end(kCases));
  out.insert(out.end(), more);
  if (isa == Isa::Sm90) std::erase_if(out, [](const AttentionCase& c) { return c.head_dim % 8 != 0; });
  return out;
}

class Attention : public StatefulOp {
 public:
  explicit Attention(AttentionCase c)
      : case_(c),
        spec_{c.q_heads, c.kv_heads, c.head_dim, c.rotary_dim, 16, kEps},
        q_gain_(random_f32({c.head_dim}, 31)),
        k_gain_(random_f32({c.head_dim}, 32)),
        rope_(Array::f32({kMaxPositions, 2, c.rotary_dim / 2})),
        keys_(Array::f32({kSlots * kMaxPositions / 16, c.kv_heads, 16, c.head_dim})),
        values_(Array::f32({kSlots * kMaxPositions / 16, c.kv_heads, 16, c.head_dim})) {
    fill_rope_table({1e4, c.rotary_dim, 1, 0}, rope_);
  }

  Array run(Machine& machine, std::span<const RowSpan> spans, std::span<const RowId> rows) override {
    const Array q_gate = inputs_of(rows, 2 * case_.q_heads * case_.head_dim, 1, case_.values);
    const Array k = inputs_of(rows, case_.kv_heads * case_.head_dim, 2, case_.values);
    const Array v = inputs_of(rows, case_.kv_heads * case_.head_dim, 3, case_.values);
    const Array q = Array::f32({q_gate.rows(), case_.q_heads * case_.head_dim});
    Array out = Array::f32(q.shape());
    attention_write(machine.stream(), machine.spans(spans), q_gate, k, v, {q_gain_, k_gain_}, rope_, spec_,
                    {keys_, values_}, q);
    attention(machine.stream(), machine.spans(spans), q, q_gate, {keys_, values_}, nullptr, spec_, kMaxPositions,
              machine.scratch(), out);
    return out;
  }

  std::vector<float> state(int slot, int length) const override {
    std::vector<float> out;
    for (int pos = 0; pos < length; ++pos) {
      for (int h = 0; h < case_.kv_heads; ++h) {
        const int block = (kMaxPositions / 16 - 1 - pos / 16) * kSlots + slot;
        const std::int64_t at =
            ((block * case_.kv_heads + h) * 16 + pos % 16) * static_cast<std::int64_t>(case_.head_dim);
        out.insert(out.end(), keys_.f32() + at, keys_.f32() + at + case_.head_dim);
        out.insert(out.end(), values_.f32() + at, values_.f32() + at + case_.head_dim);
      }
    }
    return out;
  }

  // x normed and turned at pos, in double.
  std::vector<double> turned(const float* x, const Array& gain, int pos) const {
    double squares = 0;
    for (int d = 0; d < case_.head_dim; ++d) squares += static_cast<double>(x[d]) * x[d];
    std::vector<double> y;
    for (int d = 0; d < case_.head_dim; ++d)
      y.push_back(x[d] / std::sqrt(squares / case_.head_dim + kEps) * gain.f32()[d]);
    const int half = case_.rotary_dim / 2;
    for (int i = 0; i < half; ++i) {
      const auto at = static_cast<std::size_t>(i), other = static_cast<std::size_t>(i + half);
      const double cos = rope_.row(pos)[i], sin = rope_.row(pos)[half + i], low = y[at], high = y[other];
      y[at] = low * cos - high * sin;
      y[other] = high * cos + low * sin;
    }
    return y;
  }

  // Row `pos` of sequence 0 by the formula, over contiguous keys.
  std::vector<float> formula(int pos) const;

 private:
  AttentionCase case_;
  AttentionSpec spec_;
  Array q_gain_, k_gain_, rope_, keys_, values_;
};

std::vector<float> Attention::formula(int pos) const {
  std::vector<RowId> line;
  for (int p = 0; p <= pos; ++p) line.push_back({0, p, false});
  const int dim = case_.head_dim, group = case_.q_heads / case_.kv_heads;
  const Array q_gate = inputs_of(line, 2 * case_.q_heads * dim, 1, case_.values);
  const Array k = inputs_of(line, case_.kv_heads * dim, 2, case_.values),
              v = inputs_of(line, case_.kv_heads * dim, 3, case_.values);
  std::vector<float> out;
  for (int h = 0; h < case_.q_heads; ++h) {
    const float* raw = q_gate.row(pos) + 2 * h * dim;
    const auto q = turned(raw, q_gain_, pos);
    std::vector<double> weight;
    double total = 0;
    for (int p = 0; p <= pos; ++p) {
      const auto key = turned(k.row(p) + h / group * dim, k_gain_, p);
      double score = 0;
      for (std::size_t d = 0; d < key.size(); ++d) score += q[d] * key[d];
      weight.push_back(std::exp(score / std::sqrt(dim)));  // normed heads: no score is near overflow in double
      total += weight.back();
    }
    for (int d = 0; d < dim; ++d) {
      double sum = 0;
      for (int p = 0; p <= pos; ++p) sum += weight[static_cast<std::size_t>(p)] * v.row(p)[h / group * dim + d];
      out.push_back(static_cast<float>(sum / total / (1 + std::exp(-static_cast<double>(raw[dim + d])))));
    }
  }
  return out;
}

MakeOp maker(AttentionCase c) {
  return [c] { return std::make_unique<Attention>(c); };
}

TEST_P(AttentionOn, AgreesWithTheReference) {
  for (const AttentionCase& c : cases_for(GetParam())) {
    EXPECT_TRUE(agrees_with_reference(GetParam(), maker(c), tolerance_for(GetParam(), c))) << "heads of " << c.head_dim;
  }
}

TEST_P(AttentionRowsOn, KeepsTheBitsOfASequence) {
  for (const AttentionCase& c : cases_for(GetParam(), {kManyHeads})) {
    EXPECT_TRUE(timelines_keep_their_bits(GetParam(), maker(c))) << "heads of " << c.head_dim;
  }
}

TEST_P(AttentionRowsOn, IsTheFormula) {
  for (const AttentionCase& c : cases_for(GetParam(), {kWide, kManyHeads})) {
    Attention attention(c);
    Machine machine(GetParam(), 2);
    const Played played = play(attention, machine, together({in_slices({0, 1, 70}, 7), in_slices({1, 2, 50}, 50)}));
    for (const int pos : {0, 1, 3, 15, 16, 17, 40, 69}) {
      ASSERT_TRUE(close(played.rows.at({0, pos}), attention.formula(pos), tolerance_for(GetParam(), c)))
          << "heads of " << c.head_dim << ", position " << pos;
    }
  }
}

// A NaN among a sequence's keys or values reaches every later row of that sequence, and no other sequence.
TEST_P(AttentionRowsOn, ANanIsNotHiddenAndStaysInItsSequence) {
  const AttentionSpec spec{2, 1, 24, 4, 16, kEps};
  const Array gain = constant_f32({24}, 1), rope = Array::f32({8, 2, 2});
  fill_rope_table({1e4, 4, 1, 0}, rope);
  const Array keys = Array::f32({2, 1, 16, 24}), values = Array::f32({2, 1, 16, 24});
  const std::int32_t first = 0, second = 1;
  const std::vector<RowSpan> spans = {{.begin = 0, .count = 4, .certain = 4, .slot = 0, .blocks = &first},
                                      {.begin = 4, .count = 4, .certain = 4, .slot = 1, .blocks = &second}};
  const Array q_gate = random_f32({8, 96}, 1), k = random_f32({8, 24}, 2), v = random_f32({8, 24}, 3);
  for (const Array* poisoned : {&k, &v}) {
    const float was = std::exchange(poisoned->row(2)[7], std::numeric_limits<float>::quiet_NaN());
    const Array q = Array::f32({8, 48}), out = Array::f32({8, 48});
    Machine machine(GetParam());
    attention_write(machine.stream(), machine.spans(spans), q_gate, k, v, {gain, gain}, rope, spec, {keys, values}, q);
    attention(machine.stream(), machine.spans(spans), q, q_gate, {keys, values}, nullptr, spec, 8, machine.scratch(),
              out);
    for (int r = 0; r < 8; ++r) {
      for (const int i : {7, 24 + 7}) ASSERT_EQ(std::isnan(out.row(r)[i]), r == 2 || r == 3) << "row " << r;
    }
    poisoned->row(2)[7] = was;
  }
}

RONDO_WITH_FAULTS(AttentionFault, Fault::NeighboursBlocks, Fault::StartsLate, Fault::DropsAState);
// Planted control.
TEST_P(AttentionFault, IsSeen) { EXPECT_FALSE(keeps_its_bits_in_spite_of(GetParam(), maker(kCases[0]))); }

}  // namespace
}  // namespace rondo
