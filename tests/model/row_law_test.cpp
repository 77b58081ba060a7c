// The row law and one arithmetic, bit for bit, on whole models: a row's hidden state and logits depend on its own
// sequence alone, whatever shares the forward, in which order, on which slot, with how many threads, and however the
// prompt was cut.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/model/golden.h"

namespace rondo {
namespace {

using Bits = std::vector<std::vector<float>>;  // a row each: hidden state, then logits

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Law {
  std::string name;
  std::string folder;
  int rows;         // of each sequence
  int vocab_below;  // ids are drawn from [0, vocab_below)
  Isa isa = best_isa();
};

std::vector<Law> laws() {
  std::vector<Law> all;
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}) {
    all.push_back({fixture, std::string(RONDO_FIXTURES) + "/" + fixture, 72, 320});
  }
  all.push_back({"bundled", RONDO_BUNDLED_MODEL, 72, 6144});
  if (has_isa(Isa::Sm90)) {
    for (std::size_t i = 0, models = all.size(); i < models; ++i) {
      all.push_back(all[i]);
      all.back().name += "_on_the_gpu";
      all.back().isa = Isa::Sm90;
    }
  }
  return all;
}

constexpr int kSequences = 6;

class RowLaw : public testing::TestWithParam<Law> {
 protected:
  void SetUp() override {
    auto opened = Checkpoint::open(GetParam().folder);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
    std::mt19937 random(7);
    for (int i = 0; i < kSequences; ++i) {
      std::vector<std::int32_t> ids;
      for (int t = 0; t < GetParam().rows; ++t)
        ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(GetParam().vocab_below)));
      ids_.push_back(ids);
    }
  }

  TestNetwork make(int threads, int slots = kSequences) {
    return TestNetwork(*checkpoint_, GetParam().isa, 128, slots, threads);
  }

  // Rows [begin, end) of a sequence as a piece on `slot`.
  TestNetwork::Piece piece(int sequence, int slot, int begin, int end, int certain = -1, int fold = 0) const {
    const auto& ids = ids_[static_cast<std::size_t>(sequence)];
    return {.slot = slot,
            .start_pos = begin,
            .ids = {ids.begin() + begin, ids.begin() + end},
            .certain = certain < 0 ? end - begin : certain,
            .fold = fold,
            .history = {ids.begin() + std::max(0, begin - 2), ids.begin() + begin}};
  }

  // What the last batch left: hidden state and logits of its rows.
  static Bits bits(TestNetwork& net, int rows) {
    Bits out = net.logits(rows);
    const std::vector<float> all = net.read(net.hidden().slice(0, rows));
    for (int r = 0; r < rows; ++r) {
      const float* hidden = all.data() + r * net.hidden_width();
      out[static_cast<std::size_t>(r)].insert(out[static_cast<std::size_t>(r)].end(), hidden,
                                              hidden + net.hidden_width());
    }
    return out;
  }

  // Every sequence by itself, one row a forward.
  std::vector<Bits> alone() {
    std::vector<Bits> all;
    TestNetwork net = make(1, 1);
    for (int sequence = 0; sequence < kSequences; ++sequence) {
      all.emplace_back();
      for (int t = 0; t < GetParam().rows; ++t) {
        net.run({piece(sequence, 0, t, t + 1)});
        all.back().push_back(bits(net, 1)[0]);
      }
    }
    return all;
  }

  std::optional<Checkpoint> checkpoint_;
  std::vector<std::vector<std::int32_t>> ids_;
};

TEST_P(RowLaw, ASlicedPromptIsTheSameRows) {
  const std::vector<Bits> expected = alone();
  for (const int slice : {1, 7, 64, GetParam().rows}) {
    TestNetwork net = make(2, 1);
    for (int begin = 0; begin < GetParam().rows; begin += slice) {
      const int end = std::min(begin + slice, GetParam().rows);
      net.run({piece(0, 0, begin, end)});
      const Bits got = bits(net, end - begin);
      for (int t = begin; t < end; ++t) {
        ASSERT_TRUE(same_bits(got[static_cast<std::size_t>(t - begin)], expected[0][static_cast<std::size_t>(t)]))
            << "slices of " << slice << ", row " << t;
      }
    }
  }
}

// Batches of 1 .. 64 rows: sequences in any order, each with any number of rows, on slots that are not theirs by
// number.
TEST_P(RowLaw, RowsInCompanyAreTheRowsAlone) {
  const std::vector<Bits> expected = alone();
  std::mt19937 random(11);
  for (int threads = 1; threads <= 3; ++threads) {
    TestNetwork net = make(threads);
    std::vector<int> at(kSequences, 0), slot_of{3, 0, 5, 1, 4, 2};
    for (int width = 1; width <= 64;
         width = width % 64 == 0 ? 65 : std::min(64, width + 1 + static_cast<int>(random() % 4))) {
      std::vector<int> order{0, 1, 2, 3, 4, 5};
      std::shuffle(order.begin(), order.end(), random);
      std::vector<TestNetwork::Piece> pieces;
      std::vector<std::pair<int, int>> origin;  // (sequence, row) of each batch row
      int left = width;
      for (const int sequence : order) {
        auto& begin = at[static_cast<std::size_t>(sequence)];
        if (begin == GetParam().rows) begin = 0;  // starts anew on a slot that has been used
        const int most = std::min(left, GetParam().rows - begin);
        if (most == 0) break;
        const int count =
            sequence == order.back() ? most : 1 + static_cast<int>(random() % static_cast<unsigned>(most));
        pieces.push_back(piece(sequence, slot_of[static_cast<std::size_t>(sequence)], begin, begin + count));
        for (int t = begin; t < begin + count; ++t) origin.emplace_back(sequence, t);
        begin += count;
        left -= count;
      }
      net.run(pieces);
      const Bits got = bits(net, static_cast<int>(origin.size()));
      for (std::size_t r = 0; r < origin.size(); ++r) {
        const auto [sequence, t] = origin[r];
        ASSERT_TRUE(same_bits(got[r], expected[static_cast<std::size_t>(sequence)][static_cast<std::size_t>(t)]))
            << threads << " threads, " << origin.size() << " rows: row " << r << " is row " << t << " of sequence "
            << sequence;
      }
    }
  }
}

// Windows with drafts of which some stay: the rows that stay, and all that follow, are as if they had been decoded.
TEST_P(RowLaw, AFoldedWindowIsTheSameAsHavingDecoded) {
  const std::vector<Bits> expected = alone();
  std::mt19937 random(13);
  TestNetwork net = make(2);
  std::vector<int> at(kSequences, 0), fold(kSequences, 0);
  for (int turn = 0; turn < 40; ++turn) {
    std::vector<TestNetwork::Piece> pieces;
    struct Taken {
      int sequence, begin, good;
    };
    std::vector<Taken> taken;
    for (int sequence = 0; sequence < kSequences; ++sequence) {
      int& begin = at[static_cast<std::size_t>(sequence)];
      if (begin + 9 > GetParam().rows) continue;
      const int certain = 1 + static_cast<int>(random() % 2), drafts = static_cast<int>(random() % 7);
      TestNetwork::Piece window =
          piece(sequence, sequence, begin, begin + certain + drafts, certain, fold[static_cast<std::size_t>(sequence)]);
      const int right =
          static_cast<int>(random() % static_cast<unsigned>(drafts + 1));  // drafts that are the true continuation
      for (int i = certain + right; i < certain + drafts; ++i) window.ids[static_cast<std::size_t>(i)] ^= 1;
      pieces.push_back(window);
      taken.push_back({sequence, begin, certain + right});
      begin += certain + right;
      fold[static_cast<std::size_t>(sequence)] = right;
    }
    if (pieces.empty()) break;
    net.run(pieces);
    std::size_t rows = 0;
    for (const auto& each : pieces) rows += each.ids.size();
    const Bits got = bits(net, static_cast<int>(rows));
    std::size_t first = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (int t = 0; t < taken[i].good; ++t) {
        ASSERT_TRUE(same_bits(
            got[first + static_cast<std::size_t>(t)],
            expected[static_cast<std::size_t>(taken[i].sequence)][static_cast<std::size_t>(taken[i].begin + t)]))
            << "turn " << turn << " sequence " << taken[i].sequence << " row " << taken[i].begin + t;
      }
      first += pieces[i].ids.size();
    }
  }
}

// The head: rows of several sequences in one pass, against each row by itself, with hidden states of the target.
TEST_P(RowLaw, TheHeadsRowsInCompanyAreTheRowsAlone) {
  constexpr int kRows = 40;
  TestNetwork net = make(1);
  const std::int64_t width = net.hidden_width();
  std::vector<std::vector<float>> hidden;  // of each sequence, [kRows, width]
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    net.run({piece(sequence, sequence, 0, kRows)});
    hidden.push_back(net.read(net.hidden().slice(0, kRows)));
  }
  const auto head_bits = [&](TestNetwork& on, const std::vector<TestNetwork::Piece>& pieces, std::vector<float> in) {
    const auto rows = static_cast<std::int64_t>(in.size()) / width;
    const Tensor from = on.head_room(0).slice(0, rows), to = on.head_room(1).slice(0, rows);
    on.write(in, from);
    on.run_head(pieces, from, to);
    Bits out = on.head_logits(static_cast<int>(rows), to);
    const std::vector<float> next = on.read(to);
    for (std::int64_t r = 0; r < rows; ++r) {
      auto& row = out[static_cast<std::size_t>(r)];
      row.insert(row.end(), next.begin() + r * width, next.begin() + (r + 1) * width);
    }
    return out;
  };
  const auto rows_of = [&](int sequence, int begin, int end) {
    const auto& all = hidden[static_cast<std::size_t>(sequence)];
    return std::vector<float>(all.begin() + begin * width, all.begin() + end * width);
  };
  // Row t of the head reads the token after it.
  const auto head_piece = [&](int sequence, int slot, int begin, int end) {
    TestNetwork::Piece made = piece(sequence, slot, begin + 1, end + 1);
    made.start_pos = begin;
    return made;
  };
  std::vector<Bits> expected(kSequences);
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    for (int t = 0; t < kRows; ++t) {
      expected[static_cast<std::size_t>(sequence)].push_back(
          head_bits(net, {head_piece(sequence, sequence, t, t + 1)}, rows_of(sequence, t, t + 1))[0]);
    }
  }
  std::mt19937 random(17);
  for (int threads = 1; threads <= 2; ++threads) {
    TestNetwork shared = make(threads);
    std::vector<int> at(kSequences, 0);
    for (int turn = 0; turn < 30; ++turn) {
      std::vector<TestNetwork::Piece> pieces;
      std::vector<float> in;
      std::vector<std::pair<int, int>> origin;
      for (const int sequence : {4, 1, 5, 0, 3, 2}) {
        auto& begin = at[static_cast<std::size_t>(sequence)];
        const int count = std::min(static_cast<int>(random() % 9), kRows - begin);
        if (count <= 0) continue;
        pieces.push_back(head_piece(sequence, sequence, begin, begin + count));
        const std::vector<float> more = rows_of(sequence, begin, begin + count);
        in.insert(in.end(), more.begin(), more.end());
        for (int t = begin; t < begin + count; ++t) origin.emplace_back(sequence, t);
        begin += count;
      }
      if (pieces.empty()) continue;
      const Bits got = head_bits(shared, pieces, in);
      for (std::size_t r = 0; r < origin.size(); ++r) {
        const auto [sequence, t] = origin[r];
        ASSERT_TRUE(same_bits(got[r], expected[static_cast<std::size_t>(sequence)][static_cast<std::size_t>(t)]))
            << "row " << t;
      }
    }
  }
}

// Planted control: the comparison tells a last bit, a sign of zero and a missing row.
TEST(RowLawControl, OneBitIsSeen) {
  EXPECT_FALSE(same_bits({1.0F, 2.0F}, {1.0F, std::nextafter(2.0F, 3.0F)}));
  EXPECT_FALSE(same_bits({0.0F}, {-0.0F}));
  EXPECT_FALSE(same_bits({1.0F}, {1.0F, 2.0F}));
}

INSTANTIATE_TEST_SUITE_P(Every, RowLaw, testing::ValuesIn(laws()), [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace rondo
