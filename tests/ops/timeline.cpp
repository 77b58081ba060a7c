#include "tests/ops/timeline.h"

#include <algorithm>

#include "base/random.h"

namespace rondo {

Array inputs_of(std::span<const RowId> rows, std::int64_t width, std::uint64_t what, Values values) {
  Array out = Array::f32({static_cast<std::int64_t>(rows.size()), width});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const RowId& id = rows[r];
    const std::uint64_t seed = random_bits(what, static_cast<std::uint64_t>(id.sequence * 2 + (id.dropped ? 1 : 0)),
                                           static_cast<std::uint64_t>(id.pos));
    for (std::int64_t i = 0; i < width; ++i) {
      out.row(static_cast<std::int64_t>(r))[i] = random_value(seed, static_cast<std::uint64_t>(i), values);
    }
  }
  return out;
}

std::string fault_label(const testing::TestParamInfo<Fault>& param) {
  switch (param.param) {
    case Fault::None: return "None";
    case Fault::FoldsOneShort: return "FoldsOneShort";
    case Fault::FoldsOneLong: return "FoldsOneLong";
    case Fault::ForgetsTheFold: return "ForgetsTheFold";
    case Fault::NeighboursSlot: return "NeighboursSlot";
    case Fault::NeighboursBlocks: return "NeighboursBlocks";
    case Fault::StartsLate: return "StartsLate";
    case Fault::DropsAState: return "DropsAState";
  }
  return "Unknown";
}

Schedule in_slices(Timeline line, int slice) {
  Schedule out;
  for (int pos = 0; pos < line.length; pos += slice) {
    out.push_back({{line.sequence, line.slot, pos, std::min(slice, line.length - pos), 0, 0}});
  }
  return out;
}

Schedule in_windows(Timeline line, const Windows& windows) {
  Schedule out = in_slices({line.sequence, line.slot, windows.prompt}, windows.prompt);
  int pos = windows.prompt;
  for (int i = 0; pos + windows.certain + windows.drafts < line.length; ++i) {
    const int kept = windows.kept(i);
    out.push_back({{line.sequence, line.slot, pos, windows.certain, windows.drafts, kept}});
    pos += windows.certain + kept;
  }
  out.push_back({{line.sequence, line.slot, pos, line.length - pos, 0, 0}});
  return out;
}

Schedule together(const std::vector<Schedule>& schedules) {
  Schedule out;
  for (std::size_t i = 0;; ++i) {
    std::vector<Piece> launch;
    for (std::size_t j = 0; j < schedules.size(); ++j) {
      const Schedule& each = schedules[(i + j) % schedules.size()];
      if (i < each.size()) launch.insert(launch.end(), each[i].begin(), each[i].end());
    }
    if (launch.empty()) return out;
    out.push_back(launch);
  }
}

Schedule after(Schedule first, const Schedule& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

namespace {

// Blocks of 16 positions, those of a slot far apart and between those of the others.
struct BlockTables {
  static constexpr int kEach = kMaxPositions / 16;
  std::vector<std::int32_t> of_slot[kSlots];
  BlockTables() {
    for (int slot = 0; slot < kSlots; ++slot) {
      for (int b = 0; b < kEach; ++b) of_slot[slot].push_back((kEach - 1 - b) * kSlots + slot);
    }
  }
};

struct Launch {
  std::vector<RowSpan> spans;
  std::vector<RowId> rows;
};

// Plays one schedule, and remembers what each sequence has still to fold.
class Player {
 public:
  Player(const Schedule& schedule, Fault fault) : schedule_(schedule), fault_(fault) {}

  Launch launch(std::size_t number) {
    const std::vector<Piece>& pieces = schedule_[number];
    Launch out;
    int total = 0;
    for (const Piece& piece : pieces) total += piece.certain + piece.drafts;
    out.rows.resize(static_cast<std::size_t>(total));
    int begin = 0;
    for (const Piece& piece : pieces) {
      const int count = piece.certain + piece.drafts;
      // In every other launch the rows lie in the opposite order of the spans.
      const int at = number % 2 == 0 ? begin : total - begin - count;
      out.spans.push_back(span_of(piece, at, static_cast<int>(number)));
      for (int i = 0; i < count; ++i) {
        out.rows[static_cast<std::size_t>(at + i)] = {piece.sequence, piece.start_pos + i,
                                                      i >= piece.certain + piece.kept};
      }
      begin += count;
    }
    return out;
  }

 private:
  RowSpan span_of(const Piece& piece, int begin, int number) {
    RowSpan span{.begin = begin,
                 .count = piece.certain + piece.drafts,
                 .certain = piece.certain,
                 .start_pos = piece.start_pos,
                 .slot = piece.slot,
                 .fold = piece.start_pos == 0 ? 0 : fold_[piece.sequence],
                 .blocks = tables_.of_slot[piece.slot].data()};
    fold_[piece.sequence] = piece.kept;
    const bool folds = span.fold > 0, runs_on = span.start_pos > 0;
    if (fault_ == Fault::FoldsOneShort && folds) --span.fold;
    if (fault_ == Fault::FoldsOneLong && runs_on && span.fold < kLogRows) ++span.fold;
    if (fault_ == Fault::ForgetsTheFold) span.fold = 0;
    if (fault_ == Fault::NeighboursSlot && number == 1) span.slot = (span.slot + 1) % kSlots;
    if (fault_ == Fault::NeighboursBlocks && number > 0)
      span.blocks = tables_.of_slot[(piece.slot + 1) % kSlots].data();
    if (fault_ == Fault::StartsLate && !runs_on) span.start_pos = 1;
    if (fault_ == Fault::DropsAState && number == 2) span.start_pos = span.fold = 0;
    return span;
  }

  const Schedule& schedule_;
  const Fault fault_;
  BlockTables tables_;
  std::map<int, int> fold_;
};

}  // namespace

Played play(StatefulOp& op, Machine& machine, const Schedule& schedule, Fault fault) {
  Player player(schedule, fault);
  Played played;
  std::map<int, Timeline> ends;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Launch launch = player.launch(i);
    const Array out = op.run(machine, launch.spans, launch.rows);
    for (std::size_t r = 0; r < launch.rows.size(); ++r) {
      const RowId& id = launch.rows[r];
      const float* from = out.row(static_cast<std::int64_t>(r));
      if (!id.dropped) played.rows[{id.sequence, id.pos}] = std::vector<float>(from, from + out.width());
    }
    for (const Piece& piece : schedule[i]) {
      ends[piece.sequence] = {piece.sequence, piece.slot, piece.start_pos + piece.certain + piece.kept};
    }
  }
  for (const auto& [sequence, end] : ends) played.states[sequence] = op.state(end.slot, end.length);
  return played;
}

namespace {

template <class Compare>
testing::AssertionResult compare_histories(const Played& got, const Played& want, Compare compare) {
  for (const auto& [row, values] : got.rows) {
    const auto found = want.rows.find(row);
    if (found == want.rows.end()) return testing::AssertionFailure() << "no row to compare with";
    auto same = compare(values, found->second);
    if (!same) return same << ": sequence " << row.first << ", position " << row.second;
  }
  for (const auto& [sequence, values] : got.states) {
    const auto found = want.states.find(sequence);
    if (found == want.states.end()) return testing::AssertionFailure() << "no state to compare with";
    auto same = compare(values, found->second);
    if (!same) return same << ": state of sequence " << sequence;
  }
  return testing::AssertionSuccess();
}

}  // namespace

testing::AssertionResult same_history(const Played& got, const Played& want) {
  return compare_histories(got, want, [](const auto& a, const auto& b) { return same_bits(a, b); });
}

testing::AssertionResult close_history(const Played& got, const Played& want, double tolerance) {
  return compare_histories(got, want, [&](const auto& a, const auto& b) { return close(a, b, tolerance); });
}

namespace {

constexpr Timeline kLines[] = {{0, 2, 71}, {1, 0, 45}, {2, 3, 130}};

// Each sequence alone, whole, in a fresh slot (another than the schedules give it), on one thread.
Played alone(Isa isa, const MakeOp& make) {
  Machine machine(isa);
  Played all;
  for (const Timeline& line : kLines) {
    const Timeline elsewhere{line.sequence, (line.slot + 1) % kSlots, line.length};
    Played each = play(*make(), machine, in_slices(elsewhere, line.length));
    all.rows.merge(each.rows);
    all.states.merge(each.states);
  }
  return all;
}

struct Named {
  std::string name;
  Schedule schedule;
};

std::vector<Named> schedules() {
  std::vector<Named> out;
  const Timeline &a = kLines[0], &b = kLines[1], &c = kLines[2];
  for (const int slice : {1, 7, 64}) {
    out.push_back({"alone in slices of " + std::to_string(slice), in_slices(a, slice)});
  }
  out.push_back({"whole prompts together", together({in_slices(a, 200), in_slices(b, 200), in_slices(c, 200)})});
  out.push_back({"different slices together", together({in_slices(a, 1), in_slices(b, 7), in_slices(c, 64)})});
  out.push_back({"other slices together", together({in_slices(a, 13), in_slices(b, 2), in_slices(c, 16)})});
  for (int kept = 0; kept <= 4; ++kept) {
    out.push_back({"windows that keep " + std::to_string(kept), in_windows(a, {20, 1, 4, [=](int) { return kept; }})});
  }
  for (const int kept : {0, 3, 11, kLogRows}) {
    out.push_back(
        {"long windows that keep " + std::to_string(kept), in_windows(a, {5, 3, kLogRows, [=](int) { return kept; }})});
  }
  out.push_back(
      {"windows and slices together", together({in_windows(a, {5, 1, 3, [](int i) { return i % 4; }}), in_slices(b, 1),
                                                in_windows(c, {64, 2, 5, [](int i) { return (i * 2) % 6; }})})});
  out.push_back({"a slot that held another sequence, drafts pending",
                 after(Schedule{{{9, a.slot, 0, 60, 0, 0}}, {{9, a.slot, 60, 1, 5, 3}}}, in_slices(a, 30))});
  return out;
}

}  // namespace

testing::AssertionResult timelines_keep_their_bits(Isa isa, const MakeOp& make) {
  const Played want = alone(isa, make);
  for (int threads = 1; threads <= 3; ++threads) {
    Machine machine(isa, threads);
    for (const Named& each : schedules()) {
      Played got = play(*make(), machine, each.schedule);
      std::erase_if(got.rows, [](const auto& row) { return row.first.first == 9; });
      got.states.erase(9);
      auto same = same_history(got, want);
      if (!same) return same << "; " << each.name << ", threads " << threads;
    }
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult agrees_with_reference(Isa isa, const MakeOp& make, double tolerance) {
  Machine oracle(Isa::Reference), machine(isa, 2);
  for (const Named& each : schedules()) {
    auto same = close_history(play(*make(), machine, each.schedule), play(*make(), oracle, each.schedule), tolerance);
    if (!same) return same << "; " << each.name;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult do_the_same(Isa isa, const MakeOp& make, const MakeOp& make_other) {
  Machine machine(isa, 2);
  for (const Named& each : schedules()) {
    auto same = same_history(play(*make(), machine, each.schedule), play(*make_other(), machine, each.schedule));
    if (!same) return same << "; " << each.name;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult keeps_its_bits_in_spite_of(Fault fault, const MakeOp& make) {
  const Played want = alone(Isa::Reference, make);
  Machine machine(Isa::Reference);
  for (const Named& each : schedules()) {
    Played got = play(*make(), machine, each.schedule, fault);
    std::erase_if(got.rows, [](const auto& row) { return row.first.first == 9; });
    got.states.erase(9);
    auto same = same_history(got, want);
    if (!same) return same << "; " << each.name;
  }
  return testing::AssertionSuccess();
}

}  // namespace rondo
