// Block selection (QSA), and attention over what it selected.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/attention/attention.h"
#include "tests/ops/timeline.h"

namespace rondo {
namespace {

constexpr double kTolerance = 2e-5;
// A GPU rounds queries, keys, values and weights to bf16.
double tolerance_for(Isa isa) { return tolerance_on(isa, kTolerance, 2e-2); }
constexpr float kEps = 1e-6F;
constexpr int kHeads = 3, kBudget = 5, kBlock = 4, kCacheBlock = 16;
constexpr AttentionSpec kAttention{4, 2, 16, 8, kCacheBlock, kEps};

RONDO_ON_KERNELS(SelectionOn);
RONDO_ON_ALL(SelectionRowsOn);

// What the index keys and queries are made of.
enum class Keys { Random, Tied };

// One row's selection: dense, or the blocks.
std::vector<int> chosen_blocks(const Selection& selection, int row) {
  const int count = selection.count.i32()[row];
  if (count == kDense) return {kDense};
  const std::int32_t* from = selection.blocks.i32() + row * selection.blocks.width();
  return {from, from + count};
}

// Writes, selects and attends; a row's output is its attention, then its selection.
class SparseAttention : public StatefulOp {
 public:
  explicit SparseAttention(int index_dim, Keys keys = Keys::Random)
      : dim_(index_dim),
        keys_kind_(keys),
        indexer_{kHeads, index_dim, index_dim / 4 * 2, kBudget, kBlock, kCacheBlock, kEps},
        gain_q_(random_f32({index_dim}, 41)),
        gain_k_(random_f32({index_dim}, 42)),
        head_gain_(random_f32({16}, 43)),
        index_rope_(Array::f32({kMaxPositions, 2, index_dim / 4})),
        rope_(Array::f32({kMaxPositions, 2, 4})),
        raw_(Array::f32({kBlocks, kCacheBlock, index_dim})),
        pooled_(Array::f32({kBlocks, kCacheBlock / kBlock, index_dim})),
        keys_(Array::f32({kBlocks, 2, kCacheBlock, 16})),
        values_(Array::f32({kBlocks, 2, kCacheBlock, 16})) {
    fill_rope_table({1e4, kAttention.rotary_dim, 1, 0}, rope_);
    fill_rope_table({1e4, indexer_.rotary_dim, 1, 0}, index_rope_);
    if (keys == Keys::Tied) {  // no turning and no gains, so that equal keys are equal wherever they stand
      std::fill_n(gain_q_.f32(), index_dim, 1.0F);
      std::fill_n(gain_k_.f32(), index_dim, 1.0F);
      for (int pos = 0; pos < kMaxPositions; ++pos) {
        std::fill_n(index_rope_.row(pos), index_dim / 4, 1.0F);
        std::fill_n(index_rope_.row(pos) + index_dim / 4, index_dim / 4, 0.0F);
      }
    }
  }

  Array run(Machine& machine, std::span<const RowSpan> spans, std::span<const RowId> rows) override {
    const int count = static_cast<int>(rows.size());
    const Array q_gate = inputs_of(rows, 2 * 4 * 16, 1), k = inputs_of(rows, 2 * 16, 2), v = inputs_of(rows, 2 * 16, 3);
    const Array index_qk = index_inputs(rows), q = Array::f32({count, 4 * 16}), attended = Array::f32({count, 4 * 16});
    const Array blocks(DType::I32, {count, kBudget}), counts(DType::I32, {count});
    const Selection selection{blocks, counts, kBlock};
    select_blocks(machine.stream(), machine.spans(spans), index_qk, {gain_q_, gain_k_}, index_rope_, indexer_,
                  {raw_, pooled_}, kMaxPositions, machine.scratch(), selection);
    attention_write(machine.stream(), machine.spans(spans), q_gate, k, v, {head_gain_, head_gain_}, rope_, kAttention,
                    {keys_, values_}, q);
    attention(machine.stream(), machine.spans(spans), q, q_gate, {keys_, values_}, &selection, kAttention,
              kMaxPositions, machine.scratch(), attended);
    Array out = Array::zeros({count, 4 * 16 + kBudget});
    for (int r = 0; r < count; ++r) {
      std::copy_n(attended.row(r), 4 * 16, out.row(r));
      const auto chosen = chosen_blocks(selection, r);
      std::copy(chosen.begin(), chosen.end(), out.row(r) + 4 * 16);
    }
    return out;
  }

  std::vector<float> state(int slot, int length) const override {
    std::vector<float> out;
    for (int pos = 0; pos < length; ++pos) {
      const int block = (kMaxPositions / 16 - 1 - pos / 16) * kSlots + slot;
      const float* raw = raw_.row(block) + pos % 16 * dim_;
      out.insert(out.end(), raw, raw + dim_);
      if (pos % kBlock != kBlock - 1) continue;
      const float* pooled = pooled_.row(block) + pos % 16 / kBlock * dim_;
      out.insert(out.end(), pooled, pooled + dim_);
    }
    return out;
  }

  Array index_inputs(std::span<const RowId> rows) const {
    Array out = inputs_of(rows, (kHeads + 1) * dim_, 4);
    if (keys_kind_ == Keys::Tied) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const int block = rows[r].pos / kBlock;
        float* row = out.row(static_cast<std::int64_t>(r));
        std::fill_n(row, (kHeads + 1) * dim_, 1.0F);
        // Every third block is better aligned than the others, which are all the same.
        for (int d = 1; d < dim_ && block % 3 != 1; d += 2) row[kHeads * dim_ + d] = 0;
      }
    }
    return out;
  }

  // Sequence 0's selection at `pos` by the formula, in double; `score_gap` gets how far apart the worst chosen and the
  // best left out are.
  std::vector<int> formula(int pos, double* score_gap = nullptr) const;
  // What attention to those positions gives.
  std::vector<float> attended(int pos, const std::vector<int>& blocks) const;

 private:
  static constexpr int kBlocks = kSlots * kMaxPositions / kCacheBlock;
  std::vector<double> turned(const std::vector<double>& x, const Array& gain, const Array& rope, int rotary,
                             int pos) const;

  int dim_;
  Keys keys_kind_;
  IndexerSpec indexer_;
  Array gain_q_, gain_k_, head_gain_, index_rope_, rope_, raw_, pooled_, keys_, values_;
};

std::vector<double> SparseAttention::turned(const std::vector<double>& x, const Array& gain, const Array& rope,
                                            int rotary, int pos) const {
  double squares = 0;
  for (const double each : x) squares += each * each;
  std::vector<double> y;
  for (std::size_t d = 0; d < x.size(); ++d)
    y.push_back(x[d] / std::sqrt(squares / static_cast<double>(x.size()) + kEps) * gain.f32()[d]);
  const int half = rotary / 2;
  for (int i = 0; i < half; ++i) {
    const auto at = static_cast<std::size_t>(i), other = static_cast<std::size_t>(i + half);
    const double cos = rope.row(pos)[i], sin = rope.row(pos)[half + i], low = y[at], high = y[other];
    y[at] = low * cos - high * sin;
    y[other] = high * cos + low * sin;
  }
  return y;
}

std::vector<RowId> line_to(int pos) {
  std::vector<RowId> line;
  for (int p = 0; p <= pos; ++p) line.push_back({0, p, false});
  return line;
}

std::vector<int> SparseAttention::formula(int pos, double* score_gap) const {
  const int whole = (pos + 1) / kBlock;
  if (whole <= kBudget) return {kDense};
  const Array index_qk = index_inputs(line_to(pos));
  std::vector<double> scores;
  for (int b = 0; b < whole; ++b) {
    std::vector<double> mean(static_cast<std::size_t>(dim_), 0);
    for (int i = 0; i < kBlock; ++i) {
      for (int d = 0; d < dim_; ++d)
        mean[static_cast<std::size_t>(d)] +=
            index_qk.row(b * kBlock + i)[kHeads * dim_ + d] / static_cast<double>(kBlock);
    }
    const auto key = turned(mean, gain_k_, index_rope_, indexer_.rotary_dim, b * kBlock);
    double score = 0;
    for (int h = 0; h < kHeads; ++h) {
      const float* raw = index_qk.row(pos) + h * dim_;
      const auto query = turned({raw, raw + dim_}, gain_q_, index_rope_, indexer_.rotary_dim, pos);
      score += std::max(0.0, std::inner_product(query.begin(), query.end(), key.begin(), 0.0));
    }
    scores.push_back(score);
  }
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  if (score_gap != nullptr)
    *score_gap =
        scores[static_cast<std::size_t>(order[kBudget - 1])] - scores[static_cast<std::size_t>(order[kBudget])];
  order.resize(kBudget);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<float> SparseAttention::attended(int pos, const std::vector<int>& blocks) const {
  std::vector<int> visible;
  if (blocks[0] == kDense) {
    for (int p = 0; p <= pos; ++p) visible.push_back(p);
  } else {
    for (const int b : blocks) {
      for (int i = 0; i < kBlock; ++i) visible.push_back(b * kBlock + i);
    }
    for (int p = (pos + 1) / kBlock * kBlock; p <= pos; ++p) visible.push_back(p);
  }
  const auto line = line_to(pos);
  const Array q_gate = inputs_of(line, 2 * 4 * 16, 1), k = inputs_of(line, 2 * 16, 2), v = inputs_of(line, 2 * 16, 3);
  std::vector<float> out;
  for (int h = 0; h < 4; ++h) {
    const float* raw = q_gate.row(pos) + 2 * h * 16;
    const auto q = turned({raw, raw + 16}, head_gain_, rope_, kAttention.rotary_dim, pos);
    std::vector<double> mixed(16, 0);
    double total = 0;
    for (const int p : visible) {
      const float* raw_key = k.row(p) + h / 2 * 16;
      const auto key = turned({raw_key, raw_key + 16}, head_gain_, rope_, kAttention.rotary_dim, p);
      const double weight = std::exp(std::inner_product(q.begin(), q.end(), key.begin(), 0.0) / 4);
      total += weight;
      for (std::size_t d = 0; d < 16; ++d) mixed[d] += weight * v.row(p)[h / 2 * 16 + static_cast<int>(d)];
    }
    for (std::size_t d = 0; d < 16; ++d) {
      out.push_back(static_cast<float>(mixed[d] / total / (1 + std::exp(-static_cast<double>(raw[16 + d])))));
    }
  }
  return out;
}

MakeOp maker(int index_dim) {
  return [index_dim] { return std::make_unique<SparseAttention>(index_dim); };
}

constexpr int kIndexDims[] = {8, 20, 128};

TEST_P(SelectionOn, AgreesWithTheReference) {
  for (const int dim : kIndexDims)
    EXPECT_TRUE(agrees_with_reference(GetParam(), maker(dim), tolerance_for(GetParam()))) << dim;
}

TEST_P(SelectionRowsOn, KeepsTheBitsOfASequence) {
  for (const int dim : {20, 64}) EXPECT_TRUE(timelines_keep_their_bits(GetParam(), maker(dim))) << dim;
}

void split(const std::vector<float>& row, std::vector<float>& attended, std::vector<int>& blocks) {
  attended.assign(row.begin(), row.begin() + 64);
  blocks.assign(row.begin() + 64, row.end());
  if (blocks[0] == kDense) blocks.resize(1);
}

TEST_P(SelectionRowsOn, ChoosesAndAttendsByTheFormula) {
  for (const int dim : kIndexDims) {
    SparseAttention op(dim);
    Machine machine(GetParam(), 2);
    const Played played = play(op, machine, together({in_slices({0, 1, 111}, 7), in_slices({1, 2, 90}, 50)}));
    for (int pos = 0; pos < 111; ++pos) {
      std::vector<float> attended;
      std::vector<int> blocks;
      split(played.rows.at({0, pos}), attended, blocks);
      double gap = 1;
      const auto want = op.formula(pos, &gap);
      if (gap > 1e-4) {  // a choice that hangs on rounding is either's
        EXPECT_EQ(blocks, want) << "position " << pos;
      }
      ASSERT_TRUE(close(attended, op.attended(pos, blocks), tolerance_for(GetParam()))) << "position " << pos;
    }
  }
}

TEST_P(SelectionRowsOn, IsDenseUpToTheBudgetAndSparseAfter) {
  SparseAttention op(8);
  Machine machine(GetParam());
  const Played played = play(op, machine, in_slices({0, 1, 40}, 40));
  const int last_dense = (kBudget + 1) * kBlock - 2;
  EXPECT_EQ(played.rows.at({0, last_dense})[64], kDense);
  EXPECT_NE(played.rows.at({0, last_dense + 1})[64], kDense);
}

TEST_P(SelectionRowsOn, BreaksTiesToTheLowerBlock) {
  SparseAttention op(8, Keys::Tied);
  Machine machine(GetParam(), 2);
  const Played played = play(op, machine, in_slices({0, 1, 111}, 16));
  const auto blocks_at = [&](int pos) {
    std::vector<float> attended;
    std::vector<int> blocks;
    split(played.rows.at({0, pos}), attended, blocks);
    return blocks;
  };
  // Blocks 1, 4, 7, ... score higher, all alike; the rest tie among themselves.
  EXPECT_EQ(blocks_at(27), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(blocks_at(35), (std::vector{0, 1, 2, 4, 7}));
  EXPECT_EQ(blocks_at(110), (std::vector{1, 4, 7, 10, 13}));
}

RONDO_WITH_FAULTS(SelectionFault, Fault::NeighboursBlocks, Fault::StartsLate, Fault::DropsAState);
// Planted controls.
TEST_P(SelectionFault, IsSeen) { EXPECT_FALSE(keeps_its_bits_in_spite_of(GetParam(), maker(20))); }

TEST(Selection, AttendingDenselyIsSeen) {
  const SparseAttention op(20);
  EXPECT_FALSE(close(op.attended(110, {kDense}), op.attended(110, op.formula(110)), kTolerance));
}

TEST(Selection, OneOtherBlockIsSeen) {
  const SparseAttention op(20);
  const auto blocks = op.formula(110);
  auto with_another = blocks;
  with_another.back() = with_another.back() == 26 ? 25 : 26;
  EXPECT_FALSE(close(op.attended(110, with_another), op.attended(110, blocks), kTolerance));
}

}  // namespace
}  // namespace rondo
