#include <cmath>

#include "ops/delta/delta.h"
#include "tests/ops/timeline.h"

namespace rondo {
namespace {

constexpr double kTolerance = 2e-5;

RONDO_ON_KERNELS(DeltaOn);
RONDO_ON_ALL(DeltaRowsOn);

struct DeltaCase {
  DeltaSpec spec;
  Values values = Values::Even;
};
// Columns with and without tails of 4, 8, 16 lanes and of four vectors, and of two blocks of a GPU; one, two and three
// V heads a K head.
constexpr DeltaCase kCases[] = {
    {{2, 6, 16, 20}}, {{1, 1, 7, 70}}, {{2, 4, 12, 64}}, {{1, 2, 5, 3}}, {{1, 1, 16, 16}, Values::Wild},
    {{1, 1, 5, 130}}};

class Delta : public StatefulOp {
 public:
  explicit Delta(DeltaCase c)
      : case_(c),
        decay_rate_(random_f32({c.spec.v_heads}, 21)),
        dt_bias_(random_f32({c.spec.v_heads}, 22)),
        memory_(Array::f32({kSlots, c.spec.v_heads, c.spec.k_dim, c.spec.v_dim})),
        key_log_(Array::f32({kSlots, kLogRows, c.spec.v_heads, c.spec.k_dim})),
        delta_log_(Array::f32({kSlots, kLogRows, c.spec.v_heads, c.spec.v_dim})),
        decay_log_(Array::f32({kSlots, kLogRows, c.spec.v_heads})) {
    for (int h = 0; h < c.spec.v_heads; ++h) decay_rate_.f32()[h] = -0.01F - std::abs(decay_rate_.f32()[h]);
  }

  Array run(Machine& machine, std::span<const RowSpan> spans, std::span<const RowId> rows) override {
    const DeltaSpec& spec = case_.spec;
    const Array u = inputs_of(rows, 2 * spec.k_heads * spec.k_dim + spec.v_heads * spec.v_dim, 1, case_.values);
    const Array a = inputs_of(rows, spec.v_heads, 2, case_.values), b = inputs_of(rows, spec.v_heads, 3, case_.values);
    Array out = Array::f32({u.rows(), spec.v_heads * spec.v_dim});
    gated_delta(machine.stream(), machine.spans(spans), u, a, b, {decay_rate_, dt_bias_}, spec,
                {memory_, key_log_, delta_log_, decay_log_}, machine.scratch(), out);
    return out;
  }
  std::vector<float> state(int slot, int) const override {
    const float* from = memory_.row(slot);
    return {from, from + memory_.width()};
  }

  // The recurrence in double over a whole line of sequence 0.
  std::vector<std::vector<float>> formula(int length) const;

 private:
  DeltaCase case_;
  Array decay_rate_, dt_bias_, memory_, key_log_, delta_log_, decay_log_;
};

std::vector<double> unit(const float* x, int n, double scale) {
  double squares = 0;
  for (int i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(x[i] * scale / std::sqrt(squares + 1e-6));
  return out;
}

std::vector<std::vector<float>> Delta::formula(int length) const {
  const DeltaSpec& d = case_.spec;
  std::vector<RowId> line;
  for (int pos = 0; pos < length; ++pos) line.push_back({0, pos, false});
  const int keys = d.k_heads * d.k_dim;
  const Array u = inputs_of(line, 2 * keys + d.v_heads * d.v_dim, 1, case_.values);
  const Array a = inputs_of(line, d.v_heads, 2, case_.values), b = inputs_of(line, d.v_heads, 3, case_.values);
  std::vector<std::vector<float>> out(static_cast<std::size_t>(length));
  for (int h = 0; h < d.v_heads; ++h) {
    const int k_head = h / (d.v_heads / d.k_heads);
    std::vector<std::vector<double>> s(static_cast<std::size_t>(d.k_dim),
                                       std::vector<double>(static_cast<std::size_t>(d.v_dim)));
    for (int t = 0; t < length; ++t) {
      const auto q = unit(u.row(t) + k_head * d.k_dim, d.k_dim, 1 / std::sqrt(d.k_dim));
      const auto k = unit(u.row(t) + keys + k_head * d.k_dim, d.k_dim, 1);
      const float* v = u.row(t) + 2 * keys + h * d.v_dim;
      const double softplus = std::log1p(std::exp(static_cast<double>(a.row(t)[h]) + dt_bias_.f32()[h]));
      const double decay = std::exp(decay_rate_.f32()[h] * softplus),
                   beta = 1 / (1 + std::exp(-static_cast<double>(b.row(t)[h])));
      for (std::size_t j = 0; j < static_cast<std::size_t>(d.v_dim); ++j) {
        double read = 0, answer = 0;
        for (std::size_t i = 0; i < k.size(); ++i) read += k[i] * (s[i][j] *= decay);
        const double delta = beta * (v[j] - read);
        for (std::size_t i = 0; i < k.size(); ++i) answer += q[i] * (s[i][j] += k[i] * delta);
        out[static_cast<std::size_t>(t)].push_back(static_cast<float>(answer));
      }
    }
  }
  return out;
}

MakeOp maker(DeltaCase c) {
  return [c] { return std::make_unique<Delta>(c); };
}

TEST_P(DeltaOn, AgreesWithTheReference) {
  for (const DeltaCase& c : kCases) {
    EXPECT_TRUE(agrees_with_reference(GetParam(), maker(c), kTolerance)) << c.spec.k_dim << " by " << c.spec.v_dim;
  }
}

TEST_P(DeltaRowsOn, KeepsTheBitsOfASequence) {
  for (const DeltaCase& c : kCases) {
    EXPECT_TRUE(timelines_keep_their_bits(GetParam(), maker(c))) << c.spec.k_dim << " by " << c.spec.v_dim;
  }
}

TEST_P(DeltaRowsOn, IsTheRecurrence) {
  for (const DeltaCase& c : kCases) {
    Delta delta(c);
    Machine machine(GetParam(), 2);
    const Played played = play(delta, machine, in_slices({0, 1, 60}, 7));
    const auto want = delta.formula(60);
    for (int pos = 0; pos < 60; ++pos) {
      ASSERT_TRUE(close(played.rows.at({0, pos}), want[static_cast<std::size_t>(pos)], kTolerance))
          << c.spec.k_dim << ", position " << pos;
    }
  }
}

// The published head size, for its many rows of memory.
TEST_P(DeltaRowsOn, IsTheRecurrenceAtHeadsOf128) {
  Delta delta(DeltaCase{{1, 2, 128, 128}});
  Machine machine(GetParam(), 2);
  const Played played = play(delta, machine, in_windows({0, 1, 24}, {9, 1, 3, [](int i) { return i % 4; }}));
  const auto want = delta.formula(24);
  for (int pos = 0; pos < 24; ++pos) {
    ASSERT_TRUE(close(played.rows.at({0, pos}), want[static_cast<std::size_t>(pos)], kTolerance)) << "position " << pos;
  }
}

TEST(Delta, ADryRunAsksForTheScratchOfARealOne) {
  Machine machine(best_isa(), 3);
  Delta delta(kCases[0]);
  const RowSpan span{.begin = 0, .count = 1, .certain = 1};
  const RowId row{0, 0, false};
  delta.run(machine, std::span(&span, 1), std::span(&row, 1));
  std::size_t dry_bytes = 0;
  ThreadPool pool(3);
  Stream dry = Stream::dry(pool);
  const DeltaSpec& d = kCases[0].spec;
  const Array a = Array::zeros({1, d.v_heads});
  const Tensor nothing{nullptr, DType::F32, {kSlots, kLogRows, d.v_heads}};
  gated_delta(dry, std::span(&span, 1), Array::zeros({1, 2 * d.k_heads * d.k_dim + d.v_heads * d.v_dim}), a, a, {a, a},
              d, {nothing, nothing, nothing, nothing}, Scratch::counting(&dry_bytes),
              Array::zeros({1, d.v_heads * d.v_dim}));
  EXPECT_EQ(dry_bytes, machine.peak_bytes());
}

RONDO_WITH_FAULTS(DeltaFault, Fault::FoldsOneShort, Fault::FoldsOneLong, Fault::ForgetsTheFold, Fault::NeighboursSlot,
                  Fault::StartsLate, Fault::DropsAState);
// Planted control.
TEST_P(DeltaFault, IsSeen) { EXPECT_FALSE(keeps_its_bits_in_spite_of(GetParam(), maker(kCases[0]))); }

}  // namespace
}  // namespace rondo
