// Rows drawn where they lie, on a GPU, and the list of shifts that a host makes for them.
#include "ops/sample/draw_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "base/random.h"
#include "ops/sample/shifts.h"
#include "tests/ops/arrays.h"
#include "tests/ops/machine.h"

namespace rondo {
namespace {

class DrawRowsOn : public testing::TestWithParam<Isa> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DrawRowsOn);
INSTANTIATE_TEST_SUITE_P(Gpu, DrawRowsOn, testing::ValuesIn([] {
                           std::vector<Isa> out = kernel_isas();
                           std::erase_if(out, [](Isa isa) { return isa != Isa::Sm90; });
                           return out;
                         }()),
                         isa_label);

TEST_P(DrawRowsOn, TheLikeliestOfEachRowAreFoundWhereItLies) {
  Machine machine(GetParam());
  constexpr int kRows = 5, kVocab = 9007;
  const int wanted[kRows] = {20, 0, 1, kMostLikely, 40};
  Array logits = random_f32({kRows, kVocab}, 3);
  std::fill_n(logits.row(4), kVocab, 1.5F);  // all as high as the highest: too many to tell
  const Array keys(DType::U8, {kRows * static_cast<std::int64_t>(sizeof(DrawKey))});
  const Array likely(DType::U8, {kRows * static_cast<std::int64_t>(sizeof(LikelyRow))});
  auto* key = const_cast<DrawKey*>(keys.tensor().as<DrawKey>());
  for (int r = 0; r < kRows; ++r) key[r] = {.temperature = 1, .position = 0, .seed = 0, .likely = wanted[r]};
  find_likely_rows(machine.stream(), logits, key, {}, likely);
  machine.stream().wait();
  const auto* found = likely.tensor().as<LikelyRow>();
  for (const int r : {0, 2, 3}) {
    std::vector<float> sorted(logits.row(r), logits.row(r) + kVocab);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    ASSERT_GE(found[r].num_found, wanted[r]);
    std::vector<float> told;
    for (int i = 0; i < found[r].num_found; ++i) {
      EXPECT_EQ(logits.row(r)[found[r].found[i].id], found[r].found[i].logit);
      told.push_back(found[r].found[i].logit);
    }
    std::sort(told.begin(), told.end(), std::greater<>());
    for (std::size_t i = 0; i < static_cast<std::size_t>(wanted[r]); ++i) EXPECT_EQ(told[i], sorted[i]) << "row " << r;
  }
  EXPECT_EQ(found[4].num_found, 0);
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Bias and penalties as draw.h says them, token by token as they come.
void shift_in_order(float* logits, int vocab, std::span<const std::int32_t> ids, const DrawRow& row) {
  std::vector<int> times(static_cast<std::size_t>(vocab), 0);
  const auto place = [&](std::int32_t id) { return place_of(id, ids, static_cast<std::size_t>(vocab)); };
  for (const LogitBias& each : row.settings->bias) {
    if (place(each.id) < times.size()) logits[place(each.id)] += each.bias;
  }
  for (const auto tokens : {row.generated, row.drafted}) {
    for (const std::int32_t id : tokens) {
      const std::size_t at = place(id);
      if (at == times.size()) continue;
      logits[at] += -row.settings->frequency_penalty - (times[at]++ == 0 ? row.settings->presence_penalty : 0);
    }
  }
}

// A window: its row after `draft` of its drafts.
struct Case {
  const char* name;
  DrawSettings settings;
  bool masked;
  std::vector<std::int32_t> generated = {}, drafts = {};
  std::vector<std::uint32_t> mask = {};
  DrawRow row(std::size_t draft) const {
    return {.settings = &settings,
            .position = 40 + static_cast<std::int64_t>(draft),
            .generated = generated,
            .drafted = std::span(drafts).first(draft),
            .mask = masked ? TokenMask(mask) : TokenMask{}};
  }
};

std::vector<Case> cases(int vocab) {
  const auto id = [&](int i) {
    return static_cast<std::int32_t>(random_bits(4, static_cast<std::uint64_t>(i)) % 30) % vocab;
  };
  std::vector<Case> out;
  for (DrawSettings how : {DrawSettings{.temperature = 0}, DrawSettings{.temperature = 0.7F},
                           DrawSettings{.temperature = 0.7F, .top_k = 20, .top_p = 0.9F}}) {
    how.seed = out.size();
    DrawSettings biased = how, penalised = how, both = how;
    biased.bias = both.bias = {{1, 3.3F}, {5, kNever}, {2, -0.7F}, {vocab + 3, 9}};
    for (std::int32_t never = 6; never < 14; ++never) biased.bias.push_back({never, kNever});
    penalised.presence_penalty = both.presence_penalty = 0.37F;
    penalised.frequency_penalty = 0.0F;
    both.frequency_penalty = 0.113F;
    out.insert(out.end(), {{"plain", how, false},
                           {"masked", how, true},
                           {"biased", biased, false},
                           {"penalised", penalised, false},
                           {"both", both, false},
                           {"all", both, true}});
  }
  for (std::size_t c = 0; c < out.size(); ++c) {
    for (int i = 0; i < 60; ++i) out[c].generated.push_back(id(i));
    out[c].drafts = {id(3), 31 % vocab, id(100), 31 % vocab, vocab - 1};
    const auto words = static_cast<std::size_t>(mask_words(vocab));
    for (std::size_t i = 0; i < words; ++i)
      out[c].mask.push_back(static_cast<std::uint32_t>(random_bits(c, i) & random_bits(c + 99, i)));
  }
  return out;
}

// A list's sums, as a GPU's kernel makes them.
float shifted(float logit, const Shift& by, const DrawKey& key) {
  const int times =
      by.times + std::popcount(static_cast<std::uint32_t>(by.drafted & ((std::uint64_t{1} << key.num_drafts) - 1)));
  logit += by.bias;
  for (int i = 0; i < times; ++i) logit += i == 0 ? key.first_penalty : key.next_penalty;
  return logit;
}

bool same_bits(const float* a, const float* b, std::size_t n) { return std::memcmp(a, b, n * sizeof(float)) == 0; }

// Logits after the list's sums, for the row after all drafts; seen_drafts: of these.
std::vector<float> shifted_by_list(const Case& c, const std::vector<float>& logits, std::span<const std::int32_t> ids,
                                   int seen_drafts) {
  std::vector<Shift> room(Shifts::kMost);
  std::vector<std::int32_t> places(logits.size());
  std::vector<float> out = logits;
  {
    Shifts list(c.settings, c.generated, ids, room, places);
    for (const std::int32_t draft : c.drafts) list.add_draft(draft);
    DrawKey key{.temperature = 0, .position = 0, .seed = 0, .likely = 0};
    list.tell(key, 0);
    key.num_drafts = seen_drafts;
    for (int i = 0; i < key.num_shifts; ++i) {
      float& logit = out[static_cast<std::size_t>(room[static_cast<std::size_t>(i)].at)];
      logit = shifted(logit, room[static_cast<std::size_t>(i)], key);
    }
  }
  for (const std::int32_t place : places) EXPECT_EQ(place, 0);  // for the next list
  return out;
}

TEST(Shifts, SayWhatADrawAdds) {
  const std::vector<std::int32_t> some{1, 2, 3, 9, 12, 20, 21, 22, 25, 31, 499};
  for (const auto ids : {std::span<const std::int32_t>{}, std::span<const std::int32_t>(some)}) {
    for (const Case& c : cases(500)) {
      const int vocab = ids.empty() ? 500 : static_cast<int>(ids.size());
      const std::vector<float> logits = random_f32({vocab}, 8).to_vector();
      std::vector<float> want = logits;
      shift_in_order(want.data(), vocab, ids, c.row(c.drafts.size()));
      const auto found = shifted_by_list(c, logits, ids, static_cast<int>(c.drafts.size()));
      EXPECT_TRUE(same_bits(found.data(), want.data(), want.size())) << c.name;
    }
  }
}

// Planted control: a draft that is left out is seen.
TEST(Shifts, AForgottenDraftIsSeen) {
  int seen = 0;
  for (const Case& c : cases(500)) {
    const std::vector<float> logits = random_f32({500}, 8).to_vector();
    std::vector<float> want = logits;
    shift_in_order(want.data(), 500, {}, c.row(c.drafts.size()));
    const auto found = shifted_by_list(c, logits, {}, static_cast<int>(c.drafts.size()) - 1);
    seen += same_bits(found.data(), want.data(), want.size()) ? 0 : 1;
  }
  EXPECT_EQ(seen, 9);  // those with penalties
}

TEST(Shifts, FitByTheRowsOwnTokensHoweverManyAreDrafts) {
  const DrawSettings settings{.presence_penalty = 1, .bias = {}};
  std::vector<std::int32_t> tokens(12);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (std::size_t certain = 0; certain <= tokens.size(); ++certain) {
    std::vector<Shift> room(10);
    std::vector<std::int32_t> places(100);
    Shifts list(settings, std::span(tokens).first(certain), {}, room, places);
    for (std::size_t row = certain;; ++row) {
      EXPECT_EQ(list.fits(), row <= room.size()) << certain << " certain, row " << row;
      if (row == tokens.size()) break;
      list.add_draft(tokens[row]);
    }
  }
}

TEST(Shifts, ATokenWithTwoBiasesDoesNotFit) {
  std::vector<Shift> room(10);
  std::vector<std::int32_t> places(100);
  const DrawSettings once{.bias = {{3, 1}, {4, 0}}}, twice{.bias = {{3, 1}, {4, 0}, {3, 1}}};
  EXPECT_TRUE(Shifts(once, {}, {}, room, places).fits());
  EXPECT_FALSE(Shifts(twice, {}, {}, room, places).fits());
}

// What a model stages for a GPU, in memory that both read.
struct Staged {
  Staged(const std::vector<Case>& windows, int vocab, std::span<const std::int32_t> ids) {
    std::size_t first = 0;
    std::vector<std::int32_t> places(static_cast<std::size_t>(vocab));
    for (const Case& c : windows) {
      auto* to = const_cast<Shift*>(shifts.tensor().as<Shift>()) + first;
      Shifts list(c.settings, c.generated, ids, {to, Shifts::kMost}, places);
      for (std::size_t draft = 0; draft <= c.drafts.size(); ++draft) {
        DrawKey& key = keys_[rows.size()];
        const DrawRow row = c.row(draft);
        key = {.temperature = c.settings.temperature,
               .position = row.position,
               .seed = c.settings.seed,
               .likely = num_likely(c.settings)};
        list.tell(key, static_cast<int>(first));
        if (c.masked) {
          key.mask = num_masks;
          std::copy(c.mask.begin(), c.mask.end(), masks.i32() + static_cast<std::size_t>(num_masks++) * c.mask.size());
        }
        rows.push_back(row);
        if (draft < c.drafts.size()) list.add_draft(c.drafts[draft]);
      }
      first += static_cast<std::size_t>(list.size());
    }
  }
  RowShaping shaping() const {
    return {.shifts = shifts.tensor().as<Shift>(), .masks = masks.tensor().as<std::uint32_t>()};
  }
  static constexpr std::int64_t kRows = 200;
  std::vector<DrawRow> rows;
  int num_masks = 0;
  Array keys{DType::U8, {kRows * static_cast<std::int64_t>(sizeof(DrawKey))}};
  Array shifts{DType::U8, {40 * Shifts::kMost * static_cast<std::int64_t>(sizeof(Shift))}};
  Array masks{DType::I32, {kRows, mask_words(9007)}};
  DrawKey* keys_ = const_cast<DrawKey*>(keys.tensor().as<DrawKey>());
};

// Draws all rows on the machine and by draw() on the host from the same logits: how many tokens differ, and that shifts
// are the same to the bit. forgets: a planted fault, the last draft of each row.
int num_apart(Isa isa, int vocab, std::span<const std::int32_t> ids, bool forgets = false) {
  Machine machine(isa);
  std::vector<Case> windows = cases(ids.empty() ? vocab : 500);
  if (!ids.empty()) std::erase_if(windows, [](const Case& c) { return c.masked; });
  const Staged staged(windows, vocab, ids);
  const auto count = static_cast<std::int64_t>(staged.rows.size());
  const Array raw = random_f32({count, vocab}, 21), logits = random_f32({count, vocab}, 21);
  for (std::int64_t r = 0; r < count; ++r) {
    if (forgets && staged.keys_[r].num_drafts > 0) --staged.keys_[r].num_drafts;
  }
  const Array drawn(DType::U8, {count * static_cast<std::int64_t>(sizeof(DrawnRow))});
  const Array likely(DType::U8, {count * static_cast<std::int64_t>(sizeof(LikelyRow))});
  const Array room(DType::U8, {static_cast<std::int64_t>(draw_room_bytes(static_cast<int>(count)))});
  const Array table(DType::I32, {static_cast<std::int64_t>(std::max<std::size_t>(1, ids.size()))});
  std::copy(ids.begin(), ids.end(), table.i32());
  Stream& s = machine.stream();
  draw_rows(s, logits, staged.keys_, ids.empty() ? nullptr : table.i32(), staged.shaping(), room, drawn);
  find_likely_rows(s, logits, staged.keys_, staged.shaping(), likely);
  s.wait();
  const auto n = static_cast<std::size_t>(vocab);
  std::vector<Candidate> candidates(n);
  std::vector<float> shaped(n);
  std::vector<std::uint32_t> seen((n + 31) / 32);
  int apart = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    const DrawRow& row = staged.rows[static_cast<std::size_t>(r)];
    const Drawn want = draw_draft(best_isa(), {raw.row(r), n}, ids, row, {candidates, shaped, seen});
    auto& found = const_cast<LikelyRow&>(likely.tensor().as<LikelyRow>()[r]);
    std::int32_t token = drawn.tensor().as<DrawnRow>()[r].token;
    float probability = drawn.tensor().as<DrawnRow>()[r].probability;
    if (staged.keys_[r].likely > 0) {
      if (found.num_found == 0) return -1;
      for (int i = 0; i < found.num_found && !ids.empty(); ++i)
        found.found[i].id = ids[static_cast<std::size_t>(found.found[i].id)];
      const Drawn among = draw_among({found.found, static_cast<std::size_t>(found.num_found)}, row);
      token = among.token;
      probability = among.probability;
    }
    std::vector<float> shifts(raw.row(r), raw.row(r) + vocab);
    shift_in_order(shifts.data(), vocab, ids, row);
    const bool same = token == want.token && std::abs(probability - want.probability) < 5e-5F * want.probability &&
                      same_bits(shifts.data(), logits.row(r), n);
    apart += same ? 0 : 1;
  }
  return apart;
}

TEST_P(DrawRowsOn, ShapedRowsAreDrawnAsTheHostDrawsThem) {
  for (const int vocab : {40, 1000, 9007}) EXPECT_EQ(num_apart(GetParam(), vocab, {}), 0) << vocab << " tokens";
}

TEST_P(DrawRowsOn, ShapedDraftsAreDrawnAsTheHostDrawsThem) {
  std::vector<std::int32_t> ids(300);
  std::iota(ids.begin(), ids.end(), 0);
  for (std::size_t i = 20; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i + 11 + i / 3);
  EXPECT_EQ(num_apart(GetParam(), 300, ids), 0);
}

// Planted control: a row that forgets its last draft is seen.
TEST_P(DrawRowsOn, AForgottenDraftIsSeen) { EXPECT_GT(num_apart(GetParam(), 1000, {}, true), 20); }

TEST_P(DrawRowsOn, FewAllowedTokensAreAllFoundAndNoneAllowedIsTheFirst) {
  Machine machine(GetParam());
  constexpr int kVocab = 1000;
  const Array logits = random_f32({2, kVocab}, 3), masks(DType::I32, {2, mask_words(kVocab)});
  std::fill_n(masks.i32(), 2 * mask_words(kVocab), 0);
  masks.i32()[7] = 0b101;
  const Array keys(DType::U8, {2 * static_cast<std::int64_t>(sizeof(DrawKey))});
  const Array drawn(DType::U8, {2 * static_cast<std::int64_t>(sizeof(DrawnRow))});
  const Array likely(DType::U8, {2 * static_cast<std::int64_t>(sizeof(LikelyRow))});
  const Array room(DType::U8, {static_cast<std::int64_t>(draw_room_bytes(2))});
  auto* key = const_cast<DrawKey*>(keys.tensor().as<DrawKey>());
  for (int r = 0; r < 2; ++r)
    key[r] = {.temperature = 1, .position = 0, .seed = 0, .likely = 20, .told = -1, .mask = r};
  const RowShaping shaping{.shifts = nullptr, .masks = masks.tensor().as<std::uint32_t>()};
  draw_rows(machine.stream(), logits, key, nullptr, shaping, room, drawn);
  find_likely_rows(machine.stream(), logits, key, shaping, likely);
  machine.stream().wait();
  const auto* found = likely.tensor().as<LikelyRow>();
  ASSERT_EQ(found[0].num_found, 2);
  EXPECT_EQ(found[0].found[0].id + found[0].found[1].id, 224 + 226);
  const auto token = drawn.tensor().as<DrawnRow>()[0].token;
  EXPECT_TRUE(token == 224 || token == 226);
  EXPECT_EQ(found[1].num_found, 0);
  EXPECT_EQ(drawn.tensor().as<DrawnRow>()[1].token, 0);
}

TEST_P(DrawRowsOn, RowsTellWhatLogprobsSayOfTheWholeRow) {
  Machine machine(GetParam());
  constexpr int kRows = 3, kVocab = 9007;
  const int wanted[kRows] = {20, -1, 0};
  const Array logits = random_f32({kRows, kVocab}, 6, Values::Wild);
  const Array keys(DType::U8, {kRows * static_cast<std::int64_t>(sizeof(DrawKey))});
  const Array drawn(DType::U8, {kRows * static_cast<std::int64_t>(sizeof(DrawnRow))});
  const Array told(DType::U8, {kRows * static_cast<std::int64_t>(sizeof(ToldRow))});
  auto* key = const_cast<DrawKey*>(keys.tensor().as<DrawKey>());
  for (int r = 0; r < kRows; ++r) {
    key[r] = {.temperature = 1, .position = 0, .seed = 0, .likely = 0, .told = wanted[r]};
    const_cast<DrawnRow&>(drawn.tensor().as<DrawnRow>()[r]) = {.token = 17 + r, .probability = 0};
  }
  tell_rows(machine.stream(), logits, key, drawn, told);
  machine.stream().wait();
  for (const int r : {0, 2}) {
    auto& row = const_cast<ToldRow&>(told.tensor().as<ToldRow>()[r]);
    RowLogprobs want, found;
    logprobs({logits.row(r), kVocab}, 17 + r, wanted[r], want);
    ASSERT_GE(row.likeliest.num_found, wanted[r]);
    logprobs_of(row.drawn_logit, row.log_total,
                {row.likeliest.found, static_cast<std::size_t>(row.likeliest.num_found)}, wanted[r], found);
    EXPECT_NEAR(found.chosen, want.chosen, 1e-4 * (1 + std::abs(want.chosen)));
    ASSERT_EQ(found.num_top, want.num_top);
    for (int i = 0; i < want.num_top; ++i) {
      EXPECT_EQ(found.top_ids[i], want.top_ids[i]);
      EXPECT_NEAR(found.top[i], want.top[i], 1e-4 * (1 + std::abs(want.top[i])));
    }
  }
}

}  // namespace
}  // namespace rondo
