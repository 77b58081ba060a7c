#include "grammar/free_chars.h"

#include <algorithm>
#include <array>

namespace rondo::grammar {

namespace {

// UTF-8 as an automaton; place 0 is between two code points.
struct Piece {
  std::uint8_t low, high, next;
};
constexpr int kNumPlaces = 10;
using Utf8Table = std::array<std::vector<Piece>, kNumPlaces>;

Utf8Table utf8_table(std::vector<Piece> ascii, bool with_line_ends) {
  Utf8Table table;
  table[0] = std::move(ascii);
  for (const Piece& lead : {Piece{0xC2, 0xDF, 1},
                            {0xE0, 0xE0, 4},
                            {0xE1, 0xEC, 2},
                            {0xED, 0xED, 5},
                            {0xEE, 0xEF, 2},
                            {0xF0, 0xF0, 6},
                            {0xF1, 0xF3, 3},
                            {0xF4, 0xF4, 7}}) {
    table[0].push_back(lead);
  }
  table[1] = {{0x80, 0xBF, 0}};
  table[2] = {{0x80, 0xBF, 1}};
  table[3] = {{0x80, 0xBF, 2}};
  table[4] = {{0xA0, 0xBF, 1}};
  table[5] = {{0x80, 0x9F, 1}};
  table[6] = {{0x90, 0xBF, 2}};
  table[7] = {{0x80, 0x8F, 2}};
  if (!with_line_ends) {  // E2 80 A8 and E2 80 A9
    table[0].erase(
        std::find_if(table[0].begin(), table[0].end(), [](const Piece& piece) { return piece.low == 0xE1; }));
    table[0].insert(
        std::find_if(table[0].begin(), table[0].end(), [](const Piece& piece) { return piece.low == 0xED; }),
        {{0xE1, 0xE1, 2}, {0xE2, 0xE2, 8}, {0xE3, 0xEC, 2}});
  }
  table[8] = {{0x80, 0x80, 9}, {0x81, 0xBF, 1}};
  table[9] = {{0x80, 0xA7, 0}, {0xAA, 0xBF, 0}};
  return table;
}

// The greatest solution of
//   free(state, place) = min over the bytes that may come at that place of
//                        0 when the state cannot read it, else free(target, next place) + 1 when a code point is whole
// found from above. States are numbered as they are met, so going backwards settles long chains in one pass.
class FreeChars {
 public:
  FreeChars(const Automaton& automaton, const Utf8Table& table)
      : a_(automaton), table_(table), free_(automaton.num_states() * kNumPlaces, kFreeForever) {}

  std::vector<std::uint8_t> run() {
    constexpr int kMostPasses = 64;
    bool changed = true;
    for (int pass = 0; changed && pass < kMostPasses; ++pass) {
      changed = false;
      for (std::size_t at = free_.size(); at-- > 0;) {
        if (free_[at] == 0) continue;
        const std::uint8_t now = look(static_cast<std::uint32_t>(at / kNumPlaces), at % kNumPlaces);
        changed = changed || now != free_[at];
        free_[at] = now;
      }
    }
    std::vector<std::uint8_t> result(a_.num_states(), 0);  // not settled: nothing is promised
    for (std::size_t s = 0; !changed && s < result.size(); ++s) result[s] = free_[s * kNumPlaces];
    return result;
  }

 private:
  std::uint8_t look(std::uint32_t state, std::size_t place) const {
    const ByteEdge* edge = a_.edges.data() + a_.first_edge[state];
    const ByteEdge* const end = a_.edges.data() + a_.first_edge[state + 1];
    int least = kFreeForever;
    for (const Piece& piece : table_[place]) {
      for (int low = piece.low; low <= piece.high; low = edge->high + 1) {
        while (edge != end && edge->high < low) ++edge;
        if (edge == end || edge->low > low) return 0;
        const int after = free_[edge->target * static_cast<std::size_t>(kNumPlaces) + piece.next];
        least =
            std::min(least, after == kFreeForever || piece.next != 0 ? after : std::min(after + 1, kFreeForever - 1));
      }
    }
    return static_cast<std::uint8_t>(least);
  }

  const Automaton& a_;
  const Utf8Table& table_;
  std::vector<std::uint8_t> free_;  // [states, places]
};

}  // namespace

bool belongs_to(char32_t code_point, TextClass text) {
  switch (text) {
    case TextClass::Plain:
      return code_point >= 0x20 && code_point != U'"' && code_point != U'\\' && code_point != 0x2028 &&
             code_point != 0x2029;
    case TextClass::NoTags: return code_point != U'<';
    case TextClass::Any: break;
  }
  return true;
}

void fill_free_chars(Automaton& automaton) {
  const Utf8Table tables[kNumTextClasses] = {utf8_table({{0x20, 0x21, 0}, {0x23, 0x5B, 0}, {0x5D, 0x7F, 0}}, false),
                                             utf8_table({{0x00, 0x3B, 0}, {0x3D, 0x7F, 0}}, true),
                                             utf8_table({{0x00, 0x7F, 0}}, true)};
  for (int text = 0; text < kNumTextClasses; ++text)
    automaton.free_chars[text] = FreeChars(automaton, tables[text]).run();
}

}  // namespace rondo::grammar
