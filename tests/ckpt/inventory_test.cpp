// The inventory and the n-gram hash against numbers published for real models.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/mmap_file.h"
#include "ckpt/checkpoint.h"
#include "ckpt/ngram_hash.h"

namespace rondo {
namespace {

ModelConfig flash_next() {
  const std::string path = RONDO_CKPT_TESTS "/flash_next_config.json";
  return *parse_config(*read_file(path), path);
}

struct Totals {
  std::int64_t tensors = 0, values = 0, integers = 0;
};
Totals totals(const std::vector<TensorSpec>& specs) {
  Totals totals;
  for (const TensorSpec& spec : specs) {
    ++totals.tensors;
    (spec.tensor_class == TensorClass::Integers ? totals.integers : totals.values) += spec.shape.num_elements();
  }
  return totals;
}

TEST(Inventory, OfFlashNextHasThePublishedTotals) {
  constexpr std::int64_t kPublishedTensors = 1658, kVisionTensors = 333;
  constexpr std::int64_t kPublishedValues = 179'999'981'424, kVisionValues = 448'931'056;
  const Totals found = totals(inventory(flash_next(), true));
  EXPECT_EQ(found.tensors, kPublishedTensors - kVisionTensors);
  EXPECT_EQ(found.values, kPublishedValues - kVisionValues);
  EXPECT_EQ(found.integers, 35);
}

TEST(Inventory, OfFlashNextAddsUpPartByPart) {
  const auto specs = inventory(flash_next(), true);
  const auto part = [&specs](std::string_view prefix) {
    std::int64_t values = 0;
    for (const TensorSpec& spec : specs) {
      if (spec.name.starts_with(prefix) && spec.tensor_class != TensorClass::Integers) {
        values += spec.shape.num_elements();
      }
    }
    return values;
  };
  EXPECT_EQ(part("layers.0.linear_attn."), 57'958'624);
  EXPECT_EQ(part("layers.3.self_attn."), 51'446'528);
  EXPECT_EQ(part("layers.0.mlp."), 2'522'810'880);
  EXPECT_EQ(part("layers.0.attn_hyper_connection."), 6'604'800);
  EXPECT_EQ(part("layers.1.ple."), 51'233'085'440);
  EXPECT_EQ(part("embed_tokens."), 635'699'200);
}

// Summed by hand from the published shape: 18 Gated DeltaNet layers, 6 of attention, tied embeddings.
TEST(Inventory, OfTheSmallestPublishedModelAddsUp) {
  const auto config = synthetic_config("qwen3.5-0.8b");
  ASSERT_TRUE(config);
  constexpr std::int64_t kHidden = 1024, kMlp = 3 * 3584 * kHidden, kNorms = 2 * kHidden;
  constexpr std::int64_t kLinear =
      6144 * kHidden + 2048 * kHidden + 2 * 16 * kHidden + 6144 * 4 + 16 + 16 + 128 + kHidden * 2048;
  constexpr std::int64_t kAttention = 4096 * kHidden + 2 * 512 * kHidden + kHidden * 2048 + 2 * 256;
  constexpr std::int64_t kTarget = 248320 * kHidden + 18 * kLinear + 6 * kAttention + 24 * (kMlp + kNorms) + kHidden;
  constexpr std::int64_t kHead = kHidden * 2 * kHidden + 3 * kHidden + kAttention + kMlp + kNorms;
  EXPECT_EQ(totals(inventory(*config, false)).values, kTarget);
  EXPECT_EQ(totals(inventory(*config, true)).values, kTarget + kHead);
}

TEST(Inventory, NamesEachTensorOnce) {
  std::set<std::string> names;
  for (const TensorSpec& spec : inventory(flash_next(), true)) EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
}

TEST(NgramHash, HasThePublishedBuffers) {
  const NgramHash hash = ngram_hash(flash_next(), 0);
  EXPECT_EQ(hash.multipliers, (std::vector<std::int64_t>{23703573157769, 20109073645365, 8052911324071}));
  EXPECT_EQ(hash.head_sizes, (std::vector<std::int64_t>{20000003, 20000023, 20000033, 20000047, 20000059, 20000063,
                                                        20000069, 20000077, 20000081, 20000093, 20000107, 20000147,
                                                        20000153, 20000159, 20000161, 20000171}));
  EXPECT_EQ(hash.head_offsets[0], 0);
  EXPECT_EQ(hash.head_offsets[15] + hash.head_sizes[15], 320'001'446);
  EXPECT_EQ(hash.padded_rows, 320'001'536);
}

TEST(NgramHash, OfALaterLayerGoesOnWithTheNextPrimes) {
  ModelConfig config = flash_next();
  config.ngram.layers = {1, 5};
  const NgramHash first = ngram_hash(config, 0), second = ngram_hash(config, 1);
  EXPECT_GT(second.head_sizes.front(), first.head_sizes.back());
  EXPECT_EQ(second.head_offsets.front(), 0);
  EXPECT_NE(second.multipliers, first.multipliers);
}

// The rule of the header, for one history; what the model computes is tested where the model is.
std::vector<std::int64_t> rows_of(const NgramHash& hash, const std::vector<std::int64_t>& history) {
  constexpr std::int64_t kEos = 248044;
  std::vector<std::int64_t> rows;
  std::int64_t mixed = history.back() * hash.multipliers[0];
  bool is_cut = false;
  for (std::size_t back = 1; back < hash.multipliers.size(); ++back) {
    const bool is_readable = back < history.size() && !is_cut;
    const std::int64_t token = is_readable ? history[history.size() - 1 - back] : kEos;
    is_cut = is_cut || token == kEos;
    mixed ^= token * hash.multipliers[back];
    for (int k = 0; k < 8; ++k) rows.push_back(mixed % hash.head_sizes[rows.size()] + hash.head_offsets[rows.size()]);
  }
  return rows;
}

TEST(NgramHash, GivesTheKnownRows) {
  struct Known {
    std::vector<std::int64_t> history;
    std::vector<std::int64_t> rows;  // of heads 0, 1, 7, 8, 9, 15
  };
  const std::vector<Known> known = {
      {{9707}, {16410909, 39682429, 152932897, 169641436, 182022480, 300984276}},
      {{9707, 11}, {18158303, 36390029, 159566246, 175132467, 192583600, 307699687}},
      {{9707, 11, 1879}, {6380558, 26411572, 148942556, 164226950, 190352573, 312121804}},
      {{9707, 248044}, {13256830, 36293698, 154368323, 166762559, 197966928, 302582921}},
      {{9707, 248044, 1879}, {4534223, 34461195, 149402401, 160426620, 196479308, 309845962}},
      {{9707, 248044, 1879, 0}, {11899280, 26999030, 148146117, 163179256, 180006889, 313838617}},
  };
  const NgramHash hash = ngram_hash(flash_next(), 0);
  for (const auto& [history, expected] : known) {
    const auto rows = rows_of(hash, history);
    EXPECT_EQ((std::vector<std::int64_t>{rows[0], rows[1], rows[7], rows[8], rows[9], rows[15]}), expected);
  }
}

}  // namespace
}  // namespace rondo
