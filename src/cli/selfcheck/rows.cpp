#include "cli/selfcheck/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"

namespace rondo {

namespace {

constexpr int kRows = 56;                       // of each sequence, known alone
constexpr int kPrompt = 100, kAfterPrompt = 6;  // of the sequences that are cut in slices
constexpr int kMostRows = 1 + kCheckedDepth;    // of one window
constexpr int kSlicedSequences = 4;
constexpr int kHeadStreams = 8, kHeadPrompt = 12, kHeadRows = 16, kHeadLevels = 4, kHeadTrials = 8;

int below(int bound, int a, int b) {
  return static_cast<int>(random_bits(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)) %
                          static_cast<std::uint64_t>(bound));
}

template <class T>
auto& at_index(T& of, int i) {
  return of[static_cast<std::size_t>(i)];
}

std::string difference(const RowYield& got, const RowYield& alone) {
  if (got.token != alone.token) return fmt::format("draws token {}, alone {}", got.token, alone.token);
  return fmt::format("has log probability {:.9g}, alone {:.9g}, or others of the likeliest differ", got.logprobs.chosen,
                     alone.logprobs.chosen);
}

}  // namespace

bool same_bits(const RowYield& a, const RowYield& b) { return a.token == b.token && same_bits(a.logprobs, b.logprobs); }

RowChecks::RowChecks(const Subject& subject) : subject_(subject), model_(subject.model) {
  const ModelFacts& facts = model_.facts();
  const int each = facts.num_blocks / facts.max_streams;
  for (int i = 0; i < kCheckedStreams; ++i) {
    ids_.push_back(subject.ids(static_cast<std::uint64_t>(i), kPrompt + kAfterPrompt + 1));
    draw_.push_back(settings(i, facts.vocab_size));
    blocks_.emplace_back();
    // Neighbouring positions in blocks that are far apart: a wrong table shows.
    for (int b = 0; b < each; ++b) blocks_.back().push_back((each - 1 - b) * facts.max_streams + i);
  }
}

std::span<const std::int32_t> RowChecks::blocks(int slot) const { return at_index(blocks_, slot); }

std::span<const std::int32_t> RowChecks::ids(int sequence, int begin, int count) const {
  return std::span(at_index(ids_, sequence)).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

void RowChecks::prefill(int sequence, int begin, int end, bool feeds_head) {
  const int slot = slot_of(sequence);
  const Slice slice{.slot = slot,
                    .start_pos = begin,
                    .ids = ids(sequence, begin, end - begin),
                    .blocks = blocks(slot),
                    .feeds_head = feeds_head};
  model_.prefill({&slice, 1});
}

std::vector<std::vector<RowYield>> RowChecks::run(const std::vector<Piece>& pieces, bool feeds_head) {
  std::vector<std::vector<std::int32_t>> rows;
  std::vector<Window> windows;
  std::vector<Kept> kept;
  for (const Piece& piece : pieces) {
    const int stay = piece.certain + piece.right;
    const auto own = ids(piece.sequence, piece.begin, stay);
    rows.emplace_back(own.begin(), own.end());
    for (int i = 0; i < piece.wrong; ++i) {
      const std::int32_t right = at_index(at_index(ids_, piece.sequence), piece.begin + stay + i);
      rows.back().push_back((right + 1) % model_.facts().vocab_size);
    }
    kept.push_back({.slot = slot_of(piece.sequence),
                    .rows = stay,
                    .next_token = at_index(at_index(ids_, piece.sequence), piece.begin + stay),
                    .feeds_head = feeds_head});
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    windows.push_back({.slot = slot_of(piece.sequence),
                       .start_pos = piece.begin,
                       .ids = rows[i],
                       .certain = piece.certain,
                       .blocks = blocks(slot_of(piece.sequence)),
                       .draw = &at_index(draw_, piece.sequence),
                       .generated = ids(piece.sequence, 0, piece.begin + piece.certain),
                       .masks = {},
                       .num_top_logprobs = kMaxTopLogprobs});
  }
  const Verified verified = model_.verify(windows);
  std::vector<std::vector<RowYield>> yields;
  std::size_t row = 0;
  for (const Piece& piece : pieces) {
    yields.emplace_back();
    for (int draft = 0; draft <= piece.right + piece.wrong; ++draft, ++row)
      if (draft <= piece.right) yields.back().push_back({verified.tokens[row], verified.logprobs[row]});
  }
  model_.commit(kept);
  return yields;
}

std::vector<RowYield> RowChecks::decode(int sequence, int begin, int end) {
  std::vector<RowYield> out;
  for (int t = begin; t < end; ++t) out.push_back(run({{.sequence = sequence, .begin = t, .certain = 1}})[0][0]);
  return out;
}

const std::vector<std::vector<RowYield>>& RowChecks::alone() {
  if (!alone_.empty()) return alone_;
  for (int sequence = 0; sequence < kCheckedStreams; ++sequence) {
    restart(sequence);
    alone_.push_back(decode(sequence, 0, kRows));
    restart(sequence);
  }
  return alone_;
}

void RowChecks::compare(const std::vector<Piece>& pieces, const std::vector<std::vector<RowYield>>& yields,
                        Tally& tally) {
  int rows = 0;
  for (const Piece& piece : pieces) rows += piece.certain + piece.right + piece.wrong;
  std::string failure;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const int first = pieces[i].begin + pieces[i].certain - 1;
    for (std::size_t r = 0; r < yields[i].size() && failure.empty(); ++r) {
      const RowYield& expected = at_index(at_index(alone(), pieces[i].sequence), first + static_cast<int>(r));
      if (same_bits(yields[i][r], expected)) continue;
      failure = fmt::format("in a forward of {} rows, the row at position {} of sequence {} {}", rows,
                            first + static_cast<int>(r), pieces[i].sequence, difference(yields[i][r], expected));
    }
  }
  tally.see(failure.empty(), [&] { return failure; });
}

// `width` rows over some of the sequences, each going on from where it is, in an order that is not that of their slots.
std::vector<RowChecks::Piece> RowChecks::pieces_of(int width, std::vector<int>& at) {
  const int fewest = (width + kMostRows - 1) / kMostRows, most = std::min(width, kCheckedStreams);
  const int count = fewest + below(most - fewest + 1, 1, width);
  std::vector<Piece> pieces;
  for (int i = 0; i < count; ++i) {
    const int sequence = (i * 5 + width) % kCheckedStreams;
    if (at_index(at, sequence) + kMostRows > kRows) {
      restart(sequence);
      at_index(at, sequence) = 0;
    }
    pieces.push_back({.sequence = sequence, .begin = at_index(at, sequence), .certain = 1});
  }
  for (int left = width - count, turn = 0; left > 0; ++turn) {
    Piece& piece = at_index(pieces, below(count, width, turn));
    if (1 + piece.right == kMostRows) continue;
    ++piece.right;
    --left;
  }
  for (Piece& piece : pieces) at_index(at, piece.sequence) += 1 + piece.right;
  return pieces;
}

void RowChecks::widths(Tally& tally) {
  constexpr int kWidest = 64;
  tally.expect(kWidest);
  alone();
  std::vector<int> at(kCheckedStreams, 0);
  for (int width = 1; width <= kWidest; ++width) {
    const std::vector<Piece> pieces = pieces_of(width, at);
    compare(pieces, run(pieces), tally);
  }
  for (int sequence = 0; sequence < kCheckedStreams; ++sequence) restart(sequence);
}

void RowChecks::slices(Tally& tally) {
  constexpr int kLengths[] = {1, 7, 64, kPrompt};
  tally.expect(kSlicedSequences * static_cast<int>(std::size(kLengths)));
  for (int sequence = 0; sequence < kSlicedSequences; ++sequence) {
    restart(sequence);
    decode(sequence, 0, kPrompt);
    const std::vector<RowYield> expected = decode(sequence, kPrompt, kPrompt + kAfterPrompt);
    for (const int length : kLengths) {
      restart(sequence);
      for (int begin = 0; begin < kPrompt; begin += length)
        prefill(sequence, begin, std::min(begin + length, kPrompt), false);
      const std::vector<RowYield> got = decode(sequence, kPrompt, kPrompt + kAfterPrompt);
      const auto differs = std::mismatch(got.begin(), got.end(), expected.begin(),
                                         [](const RowYield& a, const RowYield& b) { return same_bits(a, b); });
      tally.see(differs.first == got.end(), [&] {
        return fmt::format("after a prompt in slices of {}, row {} {}", length, differs.first - got.begin(),
                           difference(*differs.first, *differs.second));
      });
    }
    restart(sequence);
  }
}

void RowChecks::folds(Tally& tally) {
  constexpr int kTurns = 40, kSequences = 6, kMostDrafts = 6;
  tally.expect(kTurns);
  alone();
  std::vector<int> at(kSequences, 0);
  int rejected = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<Piece> pieces;
    for (int sequence = 0; sequence < kSequences; ++sequence) {
      int& begin = at_index(at, sequence);
      if (begin + 2 + kMostDrafts > kRows) {
        restart(sequence);
        begin = 0;
      }
      const int key = turn * kSequences + sequence;
      const int drafts = below(kMostDrafts + 1, 2, key), right = below(drafts + 1, 3, key);
      pieces.push_back({.sequence = sequence,
                        .begin = begin,
                        .certain = 1 + below(2, 4, key),
                        .right = right,
                        .wrong = drafts - right});
      begin += pieces.back().certain + right;
      rejected += drafts - right;
    }
    compare(pieces, run(pieces), tally);
  }
  for (int sequence = 0; sequence < kSequences; ++sequence) restart(sequence);
  tally.note(fmt::format("{} drafts rejected", rejected));
}

DraftStream RowChecks::drafting(int sequence, int next_pos) const {
  return {.slot = slot_of(sequence),
          .draw = &at_index(draw_, sequence),
          .generated = ids(sequence, 0, next_pos + 1),
          .blocks = blocks(slot_of(sequence))};
}

// The drafts after each of kHeadRows rows, absorbed one by one by a head that serves this sequence alone.
std::vector<RowChecks::Chain> RowChecks::chains_alone(int sequence) {
  restart(sequence);
  prefill(sequence, 0, kHeadPrompt, true);
  std::vector<Chain> chains;
  for (int t = kHeadPrompt; t < kHeadPrompt + kHeadRows; ++t) {
    run({{.sequence = sequence, .begin = t, .certain = 1}}, true);
    const DraftStream stream = drafting(sequence, t + 1);
    chains.push_back({model_.draft_first({&stream, 1})[0]});
    const int only = 0;
    for (int level = 1; level < kHeadLevels; ++level) chains.back().push_back(model_.draft_next({&only, 1})[0]);
  }
  restart(sequence);
  return chains;
}

namespace {

// How many rows wait for a stream's head, and how deep it drafts: one row everywhere, many everywhere, both, or any.
int waiting_of(int trial, int stream) {
  if (trial < 2) return trial == 0 ? 1 : kHeadRows;
  if (trial < 4) return stream % 3 == trial - 2 ? 1 : kHeadRows;
  return 1 + below(kHeadRows, trial, stream);
}
int levels_of(int trial, int stream) {
  return trial % 2 == 0 ? kHeadLevels : 1 + below(kHeadLevels, 50 + trial, stream);
}
int drafting_order(int trial, int place) { return (place * 3 + trial) % kHeadStreams; }

}  // namespace

// The drafts of all the sequences, each with its own number of rows waiting (from windows that held rejected drafts
// too), from shared passes.
std::vector<RowChecks::Chain> RowChecks::chains_together(int trial) {
  std::vector<DraftStream> streams;
  for (int place = 0; place < kHeadStreams; ++place) {
    const int sequence = drafting_order(trial, place), waiting = waiting_of(trial, sequence);
    restart(sequence);
    prefill(sequence, 0, kHeadPrompt, true);
    for (int done = 0; done < waiting;) {
      const int wrong = below(3, 60 + trial, sequence * kHeadRows + done);
      const int rows = std::min(waiting - done, kMostRows - wrong);
      run({{.sequence = sequence, .begin = kHeadPrompt + done, .certain = 1, .right = rows - 1, .wrong = wrong}}, true);
      done += rows;
    }
    streams.push_back(drafting(sequence, kHeadPrompt + waiting));
  }
  std::vector<Chain> chains(kHeadStreams);
  const auto first = model_.draft_first(streams);
  for (int place = 0; place < kHeadStreams; ++place)
    at_index(chains, drafting_order(trial, place)).push_back(first[static_cast<std::size_t>(place)]);
  for (int level = 1; level < kHeadLevels; ++level) {
    std::vector<int> still;
    for (int place = 0; place < kHeadStreams; ++place)
      if (levels_of(trial, drafting_order(trial, place)) > level) still.push_back(place);
    if (still.empty()) break;
    const auto next = model_.draft_next(still);
    for (const int place : still) at_index(chains, drafting_order(trial, place)).push_back(at_index(next, place));
  }
  for (int sequence = 0; sequence < kHeadStreams; ++sequence) restart(sequence);
  return chains;
}

void RowChecks::head(Tally& tally) {
  if (!model_.facts().has_head) return tally.skip("this model has no draft head");
  tally.expect(kHeadStreams * kHeadTrials);
  std::vector<std::vector<Chain>> expected;
  for (int sequence = 0; sequence < kHeadStreams; ++sequence) expected.push_back(chains_alone(sequence));
  for (int trial = 0; trial < kHeadTrials; ++trial) {
    const std::vector<Chain> got = chains_together(trial);
    for (int sequence = 0; sequence < kHeadStreams; ++sequence) {
      const int waiting = waiting_of(trial, sequence);
      const Chain& chain = at_index(got, sequence);
      const Chain& own = at_index(at_index(expected, sequence), waiting - 1);
      const auto differs = std::mismatch(chain.begin(), chain.end(), own.begin(), [](const Drawn& a, const Drawn& b) {
        return a.token == b.token && same_bits(a.probability, b.probability);
      });
      tally.see(differs.first == chain.end(), [&] {
        return fmt::format(
            "with {} rows waiting in a pass of {} streams, draft {} of sequence {} is {} at {:.9g}, alone {} at {:.9g}",
            waiting, kHeadStreams, differs.first - chain.begin() + 1, sequence, differs.first->token,
            differs.first->probability, differs.second->token, differs.second->probability);
      });
    }
  }
}

}  // namespace rondo
