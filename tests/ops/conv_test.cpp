#include <cmath>

#include "ops/delta/delta.h"
#include "tests/ops/timeline.h"

namespace rondo {
namespace {

constexpr double kTolerance = 1e-5;

RONDO_ON_KERNELS(ConvOn);
RONDO_ON_ALL(ConvRowsOn);

struct ConvCase {
  int channels;
  ConvSpec spec;
  Values values = Values::Even;
};
constexpr ConvCase kCases[] = {{83, {4, 1}}, {37, {4, 3}},  {16, {4, 3}, Values::Wild},
                               {1, {4, 1}},  {130, {2, 1}}, {21, {3, 2}}};

class Conv : public StatefulOp {
 public:
  explicit Conv(ConvCase c)
      : case_(c),
        past_((c.spec.kernel - 1) * c.spec.dilation),
        weight_(random_f32({c.spec.kernel, c.channels}, 11)),
        history_(Array::f32({kSlots, past_, c.channels})),
        log_(Array::f32({kSlots, kLogRows, c.channels})) {}

  Array run(Machine& machine, std::span<const RowSpan> spans, std::span<const RowId> rows) override {
    const Array x = inputs_of(rows, case_.channels, 1, case_.values);
    Array out = Array::f32({x.rows(), case_.channels});
    causal_conv(machine.stream(), machine.spans(spans), x, weight_, case_.spec, {history_, log_}, out);
    return out;
  }
  std::vector<float> state(int slot, int) const override {
    const float* from = history_.row(slot);
    return {from, from + history_.width()};
  }

 private:
  ConvCase case_;
  int past_;
  Array weight_, history_, log_;
};

MakeOp maker(ConvCase c) {
  return [c] { return std::make_unique<Conv>(c); };
}

TEST_P(ConvOn, AgreesWithTheReference) {
  for (const ConvCase& c : kCases) {
    EXPECT_TRUE(agrees_with_reference(GetParam(), maker(c), kTolerance)) << c.channels << " by " << c.spec.dilation;
  }
}

TEST_P(ConvRowsOn, KeepsTheBitsOfASequence) {
  for (const ConvCase& c : kCases) {
    EXPECT_TRUE(timelines_keep_their_bits(GetParam(), maker(c))) << c.channels << " by " << c.spec.dilation;
  }
}

// The formula over a whole line, in double: w[kernel - 1] is the current row's.
TEST_P(ConvRowsOn, IsTheFormula) {
  for (const ConvCase& c : kCases) {
    Conv conv(c);
    Machine machine(GetParam(), 2);
    const Played played = play(conv, machine, in_slices({0, 1, 30}, 7));
    const Array weight = random_f32({c.spec.kernel, c.channels}, 11);
    std::vector<RowId> line;
    for (int pos = 0; pos < 30; ++pos) line.push_back({0, pos, false});
    const Array x = inputs_of(line, c.channels, 1, c.values);
    for (int pos = 0; pos < 30; ++pos) {
      std::vector<float> want;
      for (int ch = 0; ch < c.channels; ++ch) {
        double sum = 0;
        for (int j = 0; j < c.spec.kernel; ++j) {
          const int from = pos - c.spec.dilation * (c.spec.kernel - 1 - j);
          if (from >= 0) sum += static_cast<double>(weight.row(j)[ch]) * x.row(from)[ch];
        }
        want.push_back(static_cast<float>(sum / (1 + std::exp(-sum))));
      }
      ASSERT_TRUE(close(played.rows.at({0, pos}), want, 10 * kTolerance)) << "position " << pos;
    }
  }
}

RONDO_WITH_FAULTS(ConvFault, Fault::FoldsOneShort, Fault::FoldsOneLong, Fault::ForgetsTheFold, Fault::NeighboursSlot,
                  Fault::StartsLate, Fault::DropsAState);
// Planted control.
TEST_P(ConvFault, IsSeen) {
  EXPECT_FALSE(keeps_its_bits_in_spite_of(GetParam(), maker(kCases[0])));
  EXPECT_FALSE(keeps_its_bits_in_spite_of(GetParam(), maker(kCases[1])));
}

}  // namespace
}  // namespace rondo
