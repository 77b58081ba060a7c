// A mixer's steps as one op: to the bit its three ops, one after the other, and by the law of rows itself.
#include <cmath>

#include "ops/delta/delta.h"
#include "tests/ops/timeline.h"

namespace rondo {
namespace {

RONDO_ON_KERNELS(DeltaNetOn);
RONDO_ON_ALL(DeltaNetRowsOn);

struct NetCase {
  DeltaSpec spec;
  int kernel;
  Gate gate = Gate::Silu;
  Values values = Values::Even;
};
// One, two and three V heads a K head, shorter convolutions; the last ones are shapes that a GPU leaves to the three:
// heads that are no vectors, a longer convolution, a ninth V head a K head.
constexpr NetCase kCases[] = {{{2, 6, 16, 20}, 4},
                              {{1, 1, 7, 68}, 4, Gate::Sigmoid},
                              {{2, 4, 12, 64}, 3},
                              {{1, 2, 5, 4}, 2, Gate::Sigmoid},
                              {{1, 3, 16, 96}, 4, Gate::Silu, Values::Wild},
                              {{1, 2, 5, 3}, 4},
                              {{1, 2, 8, 8}, 6},
                              {{1, 9, 8, 20}, 4}};

enum class Way { Whole, ThreeOps };

class Net : public StatefulOp {
 public:
  Net(const NetCase& c, Way way)
      : way_(way),
        values_(c.values),
        channels_(2 * c.spec.k_heads * c.spec.k_dim + c.spec.v_heads * c.spec.v_dim),
        conv_weight_(random_f32({c.kernel, channels_}, 11)),
        decay_rate_(random_f32({c.spec.v_heads}, 21)),
        dt_bias_(random_f32({c.spec.v_heads}, 22)),
        norm_gain_(random_f32({c.spec.v_dim}, 23)),
        history_(Array::f32({kSlots, c.kernel - 1, channels_})),
        conv_log_(Array::f32({kSlots, kLogRows, channels_})),
        memory_(Array::f32({kSlots, c.spec.v_heads, c.spec.k_dim, c.spec.v_dim})),
        key_log_(Array::f32({kSlots, kLogRows, c.spec.v_heads, c.spec.k_dim})),
        delta_log_(Array::f32({kSlots, kLogRows, c.spec.v_heads, c.spec.v_dim})),
        decay_log_(Array::f32({kSlots, kLogRows, c.spec.v_heads})),
        net_{.conv_weight = conv_weight_,
             .conv = {.kernel = c.kernel, .dilation = 1},
             .gains = {decay_rate_, dt_bias_},
             .spec = c.spec,
             .norm_gain = norm_gain_,
             .eps = 1e-6F,
             .gate = c.gate,
             .conv_state = {history_, conv_log_},
             .state = {memory_, key_log_, delta_log_, decay_log_}} {
    for (int h = 0; h < c.spec.v_heads; ++h) decay_rate_.f32()[h] = -0.01F - std::abs(decay_rate_.f32()[h]);
  }

  Array run(Machine& machine, std::span<const RowSpan> spans, std::span<const RowId> rows) override {
    const int heads = net_.spec.v_heads, outputs = heads * net_.spec.v_dim;
    const Array qkv = inputs_of(rows, channels_, 1, values_), z = inputs_of(rows, outputs, 4, values_);
    const Array a = inputs_of(rows, heads, 2, values_), b = inputs_of(rows, heads, 3, values_);
    const Array u = Array::f32({qkv.rows(), channels_});
    Array out = Array::f32({qkv.rows(), outputs});
    const RowSpans batch = machine.spans(spans);
    Stream& s = machine.stream();
    if (way_ == Way::Whole) {
      delta_net(s, batch, {.qkv = qkv, .z = z, .a = a, .b = b}, net_, machine.scratch(), out);
    } else {
      causal_conv(s, batch, qkv, conv_weight_, net_.conv, net_.conv_state, u);
      gated_delta(s, batch, u, a, b, net_.gains, net_.spec, net_.state, machine.scratch(), out);
      gated_norm(s, out, z, norm_gain_, net_.eps, net_.gate, out);
    }
    return out;
  }
  std::vector<float> state(int slot, int) const override {
    std::vector<float> out(history_.row(slot), history_.row(slot) + history_.width());
    out.insert(out.end(), memory_.row(slot), memory_.row(slot) + memory_.width());
    return out;
  }

 private:
  Way way_;
  Values values_;
  std::int64_t channels_;
  Array conv_weight_, decay_rate_, dt_bias_, norm_gain_;
  Array history_, conv_log_, memory_, key_log_, delta_log_, decay_log_;
  DeltaNet net_;
};

MakeOp maker(const NetCase& c, Way way = Way::Whole) {
  return [&c, way] { return std::make_unique<Net>(c, way); };
}
std::string name_of(const NetCase& c) {
  return std::to_string(c.spec.v_heads) + " heads of " + std::to_string(c.spec.v_dim) + ", kernel " +
         std::to_string(c.kernel);
}

TEST_P(DeltaNetRowsOn, IsItsThreeOpsOneAfterTheOtherToTheBit) {
  for (const NetCase& c : kCases) {
    EXPECT_TRUE(do_the_same(GetParam(), maker(c), maker(c, Way::ThreeOps))) << name_of(c);
  }
}

// Spans longer than a window and short ones after each other, both with drafts that the other folds.
const Schedule kLongAndShort = {{{0, 1, 0, 18, 12, 12}}, {{0, 1, 30, 1, 3, 2}},  {{0, 1, 33, 20, 5, 3}},
                                {{0, 1, 56, 2, 12, 12}}, {{0, 1, 70, 16, 0, 0}}, {{0, 1, 86, 4, 0, 0}}};

// The published heads, two and three V heads a K head.
TEST_P(DeltaNetRowsOn, IsItsThreeOpsAtHeadsOf128) {
  Machine machine(GetParam(), 2);
  for (const int ratio : {2, 3}) {
    const NetCase c{{2, 2 * ratio, 128, 128}, 4};
    Net whole(c, Way::Whole), three(c, Way::ThreeOps);
    const Schedule schedule = together({in_windows({0, 1, 24}, {9, 1, 3, [](int i) { return i % 4; }}),
                                        in_slices({1, 2, 21}, 20), in_slices({2, 0, 9}, 1)});
    EXPECT_TRUE(same_history(play(whole, machine, schedule), play(three, machine, schedule))) << ratio;
    EXPECT_TRUE(same_history(play(whole, machine, kLongAndShort), play(three, machine, kLongAndShort))) << ratio;
  }
}

// There a GPU has other code for long spans.
TEST_P(DeltaNetRowsOn, KeepsTheBitsOfASequenceAtHeadsOf128) {
  Machine machine(GetParam(), 2);
  const NetCase c{{1, 2, 128, 128}, 4};
  const Timeline line{0, 1, 24};
  Net whole(c, Way::Whole), single(c, Way::Whole), drafted(c, Way::Whole);
  const Played want = play(whole, machine, in_slices(line, 24));
  EXPECT_TRUE(same_history(play(single, machine, in_slices(line, 1)), want));
  const Windows windows{11, 1, 3, [](int i) { return i % 4; }};
  EXPECT_TRUE(same_history(play(drafted, machine, in_windows(line, windows)), want));
}

TEST_P(DeltaNetRowsOn, KeepsTheBitsOfALongSpanHoweverItIsCut) {
  Machine machine(GetParam(), 2);
  for (const NetCase& c : {NetCase{{1, 2, 128, 128}, 4}, NetCase{{1, 1, 128, 128}, 2, Gate::Sigmoid}}) {
    const Timeline line{0, 1, 150}, beside{1, 3, 90};
    Net whole(c, Way::Whole), other(c, Way::Whole);
    Played want = play(whole, machine, in_slices(line, line.length));
    const auto keeps_bits = [&](const Schedule& schedule) {
      Net cut(c, Way::Whole);
      return same_history(play(cut, machine, schedule), want);
    };
    for (const int slice : {1, 15, 16, 17, 64}) EXPECT_TRUE(keeps_bits(in_slices(line, slice))) << slice;
    const auto kept = [](int i) { return i * 5 % 13; };
    EXPECT_TRUE(keeps_bits(in_windows(line, {40, 20, 12, kept})));
    EXPECT_TRUE(keeps_bits(after(kLongAndShort, {{{0, 1, 90, 60, 0, 0}}})));
    // In one launch with short ones of another sequence.
    Played more = play(other, machine, in_slices(beside, 1));
    want.rows.merge(more.rows), want.states.merge(more.states);
    EXPECT_TRUE(keeps_bits(together({in_slices(line, 37), in_windows(beside, {3, 2, 12, kept})})));
  }
}

TEST_P(DeltaNetOn, AgreesWithTheReference) {
  for (const NetCase& c : kCases) {
    EXPECT_TRUE(agrees_with_reference(GetParam(), maker(c), 2e-4)) << name_of(c);
  }
}

TEST_P(DeltaNetRowsOn, KeepsTheBitsOfASequence) {
  for (const NetCase& c : {kCases[0], kCases[1]}) {
    EXPECT_TRUE(timelines_keep_their_bits(GetParam(), maker(c))) << name_of(c);
  }
}

// What a slot has logged and kept goes into its state, a span of no rows beside one of some; then the sequence goes on.
TEST_P(DeltaNetRowsOn, ASpanOfNoRowsOnlyFolds) {
  Machine machine(GetParam(), 2);
  std::vector<NetCase> cases(std::begin(kCases), std::end(kCases));
  cases.push_back({{1, 2, 128, 128}, 4});  // of which a GPU has other code beside a long span
  for (const NetCase& c : cases) {
    const Schedule begin = {{{0, 2, 0, 20, 0, 0}}, {{0, 2, 20, 1, 5, 4}}}, end = {{{0, 2, 25, 9, 0, 0}}};
    const Schedule folds = {{{0, 2, 25, 0, 0, 0}, {1, 0, 0, 19, 0, 0}}}, other = {{{1, 0, 0, 19, 0, 0}}};
    for (const Way way : {Way::Whole, Way::ThreeOps}) {
      Net folding(c, way), whole(c, way);
      const Played want = play(whole, machine, after(after(begin, other), end));
      EXPECT_TRUE(same_history(play(folding, machine, after(after(begin, folds), end)), want)) << name_of(c);
    }
  }
}

RONDO_WITH_FAULTS(DeltaNetFault, Fault::FoldsOneShort, Fault::FoldsOneLong, Fault::ForgetsTheFold,
                  Fault::NeighboursSlot, Fault::StartsLate, Fault::DropsAState);
// Planted controls: what the harness does wrong is seen, and so is another gate.
TEST_P(DeltaNetFault, IsSeen) { EXPECT_FALSE(keeps_its_bits_in_spite_of(GetParam(), maker(kCases[0]))); }
TEST(DeltaNet, AnotherGateIsSeen) {
  NetCase other = kCases[0];
  other.gate = Gate::Sigmoid;
  EXPECT_FALSE(do_the_same(Isa::Reference, maker(kCases[0]), maker(other)));
}

}  // namespace
}  // namespace rondo
