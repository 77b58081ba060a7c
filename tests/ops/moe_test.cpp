#include "ops/moe/moe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/hyper/hyper.h"
#include "ops/linear/linear.h"
#include "ops/pointwise/pointwise.h"
#include "tests/ops/row_law.h"

namespace rondo {
namespace {

constexpr double kTolerance = 2e-5;

RONDO_ON_ALL(MoeOn);

// What an expert's down projection reads comes about inside the op.
double tolerance() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return std::string_view(test->name()).ends_with("sm_90") ? 1e-2 : kTolerance;
}

struct Sizes {
  int hidden, size, shared_size, experts, k;
};
constexpr Sizes kSizes[] = {{64, 32, 48, 16, 4}, {37, 21, 19, 12, 10}, {20, 5, 40, 7, 1}, {33, 17, 17, 4, 4}};

// The weights of a mixture, and the views of them.
class Mixture {
 public:
  explicit Mixture(Sizes s, bool normalise = true)
      : router(random_bf16({s.experts, s.hidden}, 1)), shared_gate(random_bf16({1, s.hidden}, 2)) {
    std::uint64_t seed = 10;
    parts_.push_back(
        random_bf16({s.experts, 3, s.size, s.hidden}, ++seed));  // evenly spaced, as the loader places them
    const auto part_of = [&](int e, int part, Shape shape) {
      return Tensor{parts_[0].tensor().bf16() + (e * 3 + part) * shape.num_elements(), DType::BF16, shape};
    };
    for (int e = 0; e < s.experts; ++e) {
      experts_.push_back(
          {part_of(e, 0, {s.size, s.hidden}), part_of(e, 1, {s.size, s.hidden}), part_of(e, 2, {s.hidden, s.size})});
    }
    for (int part = 0; part < 3; ++part) {  // the shared one last
      parts_.push_back(random_bf16(part < 2 ? Shape{s.shared_size, s.hidden} : Shape{s.hidden, s.shared_size}, ++seed));
    }
    experts_.push_back({parts_[1], parts_[2], parts_[3]});
    weights = {
        router,   std::span(experts_).first(static_cast<std::size_t>(s.experts)), experts_.back(), shared_gate, s.k,
        normalise};
  }
  Array router, shared_gate;
  MoeWeights weights;

 private:
  std::vector<Array> parts_;
  std::vector<GatedMlpWeights> experts_;
};

double dot(const Weight& weight, std::int64_t row, const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += static_cast<double>(bf16_at(weight.plain(), row, static_cast<std::int64_t>(i))) * x[i];
  return sum;
}

std::vector<double> naive_mlp(const GatedMlpWeights& w, const std::vector<double>& x) {
  std::vector<double> act, out;
  for (std::int64_t n = 0; n < w.gate.shape[0]; ++n) {
    const double gate = dot(w.gate, n, x);
    act.push_back(gate / (1 + std::exp(-gate)) * dot(w.up, n, x));
  }
  for (std::int64_t n = 0; n < w.down.shape[0]; ++n) out.push_back(dot(w.down, n, act));
  return out;
}

std::vector<int> best_experts(const std::vector<double>& logits, int k) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

std::vector<double> weights_of(const std::vector<double>& logits, const std::vector<int>& chosen, bool normalise) {
  std::vector<double> out;
  double total = 0;
  for (const int e : chosen) out.push_back(std::exp(logits[static_cast<std::size_t>(e)]));
  if (normalise) total = std::accumulate(out.begin(), out.end(), 0.0);
  if (!normalise) {
    for (const double each : logits) total += std::exp(each);
  }
  for (double& each : out) each /= total;
  return out;
}

Array naive_mixture(const MoeWeights& w, Tensor x) {
  Array out = Array::f32({x.rows(), x.width()});
  for (int r = 0; r < x.rows(); ++r) {
    const std::vector<double> in(x.f32() + r * x.width(), x.f32() + (r + 1) * x.width());
    std::vector<double> logits;
    for (std::size_t e = 0; e < w.experts.size(); ++e)
      logits.push_back(dot(w.router, static_cast<std::int64_t>(e), in));
    const auto chosen = best_experts(logits, w.experts_per_token);
    const auto weights = weights_of(logits, chosen, w.normalise_topk);
    std::vector<double> sum = naive_mlp(w.shared, in);
    for (double& each : sum) each /= 1 + std::exp(-dot(w.shared_gate, 0, in));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto part = naive_mlp(w.experts[static_cast<std::size_t>(chosen[i])], in);
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weights[i] * part[d];
    }
    std::copy(sum.begin(), sum.end(), out.row(r));
  }
  return out;
}

Array run_mixture(Machine& machine, const MoeWeights& w, Tensor x) {
  Array out = Array::f32({x.rows(), x.width()});
  Scratch scratch = machine.scratch();
  const MixtureSum sum = take_mixture_sum(scratch, x.rows(), x.width(), w.experts_per_token);
  mixture_of_experts(machine.stream(), w, x, scratch, sum);
  add_up(machine.stream(), sum, out);
  return out;
}

TEST_P(MoeOn, TheMixtureIsTheFormula) {
  for (int threads = 1; threads <= 3; ++threads) {
    Machine machine(GetParam(), threads);
    for (const Sizes& size : kSizes) {
      for (const bool normalise : {true, false}) {
        const Mixture mixture(size, normalise);
        for (const int rows : {1, 2, 9}) {
          const Array x = rounded_for(GetParam(), random_f32({rows, size.hidden}, 5));
          ASSERT_TRUE(close(run_mixture(machine, mixture.weights, x), naive_mixture(mixture.weights, x), tolerance()))
              << size.hidden << ", rows " << rows;
        }
      }
    }
  }
}

// A router whose weight for expert e is 1 at hidden element e alone: the row says which experts it wants.
const Mixture& steered() {
  static const Mixture mixture = [] {
    Mixture made({16, 24, 24, 16, 2});
    auto* router = const_cast<BFloat16*>(made.router.tensor().bf16());
    for (int i = 0; i < 16 * 16; ++i) router[i] = to_bfloat16(i % 17 == 0 ? 1.0F : 0.0F);
    return made;
  }();
  return mixture;
}

Array rows_wanting(const std::vector<std::pair<int, int>>& experts) {
  Array x = random_f32({static_cast<std::int64_t>(experts.size()), 16}, 6);
  for (std::size_t r = 0; r < experts.size(); ++r) {
    x.row(static_cast<std::int64_t>(r))[experts[r].first] = 5;
    x.row(static_cast<std::int64_t>(r))[experts[r].second] = 4;
  }
  return x;
}

TEST_P(MoeOn, ManyRowsOfOneExpertAndAllExpertsDistinctAreTheFormula) {
  Machine machine(GetParam(), 2);
  const MoeWeights& w = steered().weights;
  std::vector<std::pair<int, int>> same(40, {3, 11}), distinct, opposite;
  for (int r = 0; r < 8; ++r) distinct.push_back({2 * r, 2 * r + 1});
  for (int r = 0; r < 20; ++r) opposite.push_back(r % 2 == 0 ? std::pair{3, 11} : std::pair{11, 3});
  for (const auto& wanted : {same, distinct, opposite, {{0, 15}}}) {
    const Array x = rows_wanting(wanted);
    EXPECT_TRUE(close(run_mixture(machine, w, x), naive_mixture(w, x), tolerance())) << wanted.size() << " rows";
  }
}

TEST_P(MoeOn, TheMixtureKeepsTheBitsOfARow) {
  for (const Sizes& size : {kSizes[0], kSizes[1]}) {
    const Mixture mixture(size);
    const Array x = random_f32({kPopulation, size.hidden}, 5);
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
      return run_mixture(machine, mixture.weights, rows_of(x, rows));
    })) << size.hidden;
  }
}

TEST_P(MoeOn, RowsOfOneExpertKeepTheirBits) {
  const Array x = rows_wanting(std::vector<std::pair<int, int>>(kPopulation, {3, 11}));
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    return run_mixture(machine, steered().weights, rows_of(x, rows));
  }));
}

// A GPU chooses in the block that groups the rows where those are few and the experts not too many, else ahead of it.
TEST_P(MoeOn, ARowKeepsItsBitsWhicheverBlockChoosesForIt) {
  for (const Sizes& size : {Sizes{16, 8, 8, 16, 4}, Sizes{16, 8, 8, 300, 10}, Sizes{16, 8, 8, 600, 3}}) {
    const Mixture mixture(size);
    const Array x = random_f32({130, size.hidden}, 5);
    Machine machine(GetParam(), 2);
    const Array all = run_mixture(machine, mixture.weights, x);
    for (const int rows : {1, 64, 65}) {
      const Array few = run_mixture(machine, mixture.weights, x.tensor().slice(130 - rows, rows));
      EXPECT_TRUE(same_bits(few, all.tensor().slice(130 - rows, rows))) << size.experts << " experts, rows " << rows;
    }
  }
}

TEST_P(MoeOn, TheGatedMlpIsTheFormulaAndKeepsTheBitsOfARow) {
  const Mixture mixture({37, 53, 29, 2, 1});
  for (const GatedMlpWeights& w : {mixture.weights.experts[0], mixture.weights.shared}) {
    const Array x = random_f32({kPopulation, 37}, 5);
    const auto run = [&](Machine& machine, const std::vector<int>& rows) {
      Array out = Array::f32({static_cast<std::int64_t>(rows.size()), 37});
      gated_mlp(machine.stream(), w, rows_of(x, rows), machine.scratch(), out);
      return out;
    };
    EXPECT_TRUE(rows_keep_their_bits(GetParam(), run));
    Machine machine(GetParam());
    const Array got = run(machine, {0, 5, 63});
    for (int i = 0; i < 3; ++i) {
      const float* in = x.row(std::array{0, 5, 63}[static_cast<std::size_t>(i)]);
      const auto want = naive_mlp(w, {in, in + 37});
      EXPECT_TRUE(close(std::span(got.row(i), 37), std::vector<float>(want.begin(), want.end()), tolerance()));
    }
  }
}

// A mixture's sum of random parts, each row's places its own.
struct RandomSum {
  RandomSum(int rows, int hidden, int k)
      : experts(random_f32({rows * k, hidden}, 1, Values::Wild)),
        place(DType::I32, {rows, k}),
        weight(random_f32({rows, k}, 2)),
        shared(random_f32({rows, hidden}, 3)),
        shared_gate(random_f32({rows, 1}, 4)),
        sum{experts, place, weight, shared, shared_gate} {
    for (int i = 0; i < rows * k; ++i) place.i32()[i] = (i * 7 + 3) % (rows * k);
  }
  Array experts, place, weight, shared, shared_gate;
  MixtureSum sum;
};

// Both ways of reading what waits for the residual, at every width of block that a GPU has for a norm.
TEST_P(MoeOn, ASumMadeOnTheWayToTheNormIsTheSumAndThenTheNormToTheBit) {
  Machine machine(GetParam(), 2);
  Stream& s = machine.stream();
  constexpr float kEps = 1e-6F;
  for (const auto& [hidden, k] : {std::pair{17, 4}, {64, 10}, {320, 3}, {525, 8}, {2048, 8}, {9000, 1}}) {
    constexpr int kRows = 5;
    const RandomSum parts(kRows, hidden, k);
    const Array y = Array::f32({kRows, hidden}), room = Array::f32({kRows, hidden});
    add_up(s, parts.sum, y);
    const Array residual = random_f32({kRows, hidden}, 5), apart = random_f32({kRows, hidden}, 5);
    const Array gain = random_f32({4 * hidden}, 6), out = Array::f32({kRows, hidden}), want = Array::f32(out.shape());
    const Tensor row_gain{gain.f32(), DType::F32, {hidden}};
    add_norm(s, y, apart, row_gain, {kEps, hidden}, want);
    add_up_norm(s, parts.sum, room, residual, row_gain, {kEps, hidden}, out);
    EXPECT_TRUE(same_bits(residual, apart)) << hidden;
    EXPECT_TRUE(same_bits(out, want)) << hidden;

    const Shape wide{kRows, 4 * hidden};
    const Array inject = random_f32({kRows, 4}, 7), streams = random_f32(wide, 8), streams_apart = random_f32(wide, 8);
    const Array normed = Array::f32(wide), want_normed = Array::f32(wide);
    hyper_inject_norm(s, y, inject, streams_apart, gain, kEps, want_normed);
    hyper_inject_norm(s, parts.sum, room, inject, streams, gain, kEps, normed);
    EXPECT_TRUE(same_bits(streams, streams_apart)) << hidden;
    EXPECT_TRUE(same_bits(normed, want_normed)) << hidden;
  }
}

// Widths of each way a GPU reads inputs: four at a time, one by one, in several stages, rounded ahead (from 9 rows on).
TEST_P(MoeOn, TheGatedMlpIsItsStepsOneAfterTheOtherToTheBit) {
  Machine machine(GetParam(), 2);
  for (const auto& [hidden, size] : {std::pair{64, 96}, {40, 53}, {128, 2048}}) {
    const Array gate_up = random_bf16({2, size, hidden}, 1), down = random_bf16({hidden, size}, 2);
    const Tensor gate = gate_up.tensor().slice(0, 1), up = gate_up.tensor().slice(1, 1);
    const GatedMlpWeights w{Tensor{gate.data, gate.dtype, {size, hidden}}, Tensor{up.data, up.dtype, {size, hidden}},
                            down};
    for (const int rows : {1, 5, 9, 20, 70}) {
      const Array x = random_f32({rows, hidden}, 5), got = Array::f32({rows, hidden}),
                  want = Array::f32({rows, hidden});
      const Array gates = Array::f32({rows, size}), ups = Array::f32({rows, size});
      gated_mlp(machine.stream(), w, x, machine.scratch(), got);
      linear(machine.stream(), w.gate, x, gates);
      linear(machine.stream(), w.up, x, ups);
      silu_product(machine.stream(), gates, ups, gates);
      linear(machine.stream(), w.down, gates, want);
      EXPECT_TRUE(same_bits(got, want)) << hidden << " by " << size << ", rows " << rows;
    }
  }
}

struct Routed {
  std::vector<int> chosen;
  std::vector<float> weight;
};
Routed route_row(Machine& machine, const std::vector<float>& logits, int k, bool normalise) {
  const Array in = Array::f32({1, static_cast<std::int64_t>(logits.size())});
  std::copy(logits.begin(), logits.end(), in.f32());
  const Array chosen(DType::I32, {1, k}), weight = Array::f32({1, k});
  route(machine.stream(), in, normalise, chosen, weight);
  return {{chosen.i32(), chosen.i32() + k}, {weight.f32(), weight.f32() + k}};
}

TEST_P(MoeOn, TheRouterBreaksTiesToTheLowerExpertBestFirst) {
  Machine machine(GetParam());
  EXPECT_EQ(route_row(machine, {1, 3, 3, 0, 3, 1}, 4, true).chosen, (std::vector{1, 2, 4, 0}));
  EXPECT_EQ(route_row(machine, std::vector<float>(20, -2.5F), 3, true).chosen, (std::vector{0, 1, 2}));
  EXPECT_EQ(route_row(machine, {0.0F, -0.0F, 0.0F}, 2, false).chosen, (std::vector{0, 1}));
}

TEST_P(MoeOn, TheRoutersWeightsAreTheSoftmax) {
  Machine machine(GetParam());
  for (const int experts : {1, 5, 16, 130, 300, 600}) {
    for (const bool normalise : {true, false}) {
      const Array logits = random_f32({1, experts}, 9, Values::Wild);
      const std::vector<double> exact(logits.f32(), logits.f32() + experts);
      const int k = std::min(experts, 8);
      const Routed got = route_row(machine, logits.to_vector(), k, normalise);
      EXPECT_EQ(got.chosen, best_experts(exact, k));
      const auto want = weights_of(
          [&] {
            auto lowered = exact;
            const double most = *std::max_element(exact.begin(), exact.end());
            for (double& each : lowered) each -= most;
            return lowered;
          }(),
          got.chosen, normalise);
      EXPECT_TRUE(close(got.weight, std::vector<float>(want.begin(), want.end()), kTolerance));
    }
  }
}

TEST_P(MoeOn, TheRouterKeepsTheBitsOfARow) {
  const Array logits = random_f32({kPopulation, 130}, 9);
  EXPECT_TRUE(rows_keep_their_bits(GetParam(), [&](Machine& machine, const std::vector<int>& rows) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const Array chosen(DType::I32, {count, 9}), weight = Array::f32({count, 9});
    route(machine.stream(), rows_of(logits, rows), true, chosen, weight);
    Array out = Array::f32({count, 18});
    for (std::int64_t r = 0; r < count; ++r) {
      std::copy_n(chosen.i32() + r * 9, 9, out.row(r));
      std::copy_n(weight.row(r), 9, out.row(r) + 9);
    }
    return out;
  }));
}

TEST(Moe, ADryRunAsksForTheScratchOfARealOne) {
  const Mixture mixture(kSizes[0]);
  const Array x = random_f32({9, kSizes[0].hidden}, 5);
  Machine machine(best_isa(), 2);
  run_mixture(machine, mixture.weights, x);
  ThreadPool pool(2);
  Stream dry = Stream::dry(pool);
  std::size_t dry_bytes = 0;
  Scratch counting = Scratch::counting(&dry_bytes);
  const MixtureSum sum = take_mixture_sum(counting, 9, kSizes[0].hidden, kSizes[0].k);
  mixture_of_experts(dry, mixture.weights, x, counting, sum);
  EXPECT_EQ(dry_bytes, machine.peak_bytes());
}

// Planted controls: the inputs must see a row that gets its neighbour's experts, weights of the whole softmax where
// the chosen ones' was meant, and a missing shared expert.
TEST(Moe, ANeighboursExpertsAreSeen) {
  const MoeWeights& w = steered().weights;
  const Array x = rows_wanting({{3, 11}, {4, 11}}), exchanged = rows_wanting({{3, 11}, {5, 11}});
  std::copy_n(x.row(1), 3, exchanged.row(1));
  EXPECT_FALSE(close(naive_mixture(w, exchanged), naive_mixture(w, x), kTolerance));
}
TEST(Moe, WeightsNotNormalisedAreSeen) {
  const Mixture yes(kSizes[0], true), no(kSizes[0], false);
  const Array x = random_f32({2, kSizes[0].hidden}, 5);
  EXPECT_FALSE(close(naive_mixture(no.weights, x), naive_mixture(yes.weights, x), kTolerance));
}

}  // namespace
}  // namespace rondo
