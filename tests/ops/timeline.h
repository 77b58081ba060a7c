// The row law and the deferred fold for ops with state: whatever way a sequence's rows are cut into launches, whoever
// shares these, and whatever drafts were tried in between, outputs and state are to the bit those of the sequence run
// alone, whole, in a fresh slot.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ops/common/row_span.h"
#include "tests/ops/arrays.h"
#include "tests/ops/compare.h"
#include "tests/ops/machine.h"

namespace rondo {

constexpr int kSlots = 4;
constexpr int kLogRows = 12;  // drafts a window may have
constexpr int kMaxPositions = 160;

// Whose row: its input is a function of this alone. A dropped draft has another input than the row that later stands
// at its position.
struct RowId {
  int sequence, pos;
  bool dropped;
};

// A random input of `width` floats for each row; `what` tells one input of an op from the other.
Array inputs_of(std::span<const RowId> rows, std::int64_t width, std::uint64_t what, Values values = Values::Even);

class StatefulOp {
 public:
  virtual ~StatefulOp() = default;
  virtual Array run(Machine& machine, std::span<const RowSpan> spans, std::span<const RowId> rows) = 0;
  virtual std::vector<float> state(int slot, int length) const = 0;  // of a sequence of `length` rows, nothing to fold
};
using MakeOp = std::function<std::unique_ptr<StatefulOp>()>;

// Rows of one sequence in one launch: `certain` rows, then drafts, of which the first `kept` turn out to stay.
struct Piece {
  int sequence, slot, start_pos, certain, drafts, kept;
};
using Schedule = std::vector<std::vector<Piece>>;  // launches

struct Timeline {
  int sequence, slot, length;
};
Schedule in_slices(Timeline line, int slice);
// A prompt, then windows of `certain` + `drafts` rows of which kept(i) stay in the i-th; the last rows are certain, so
// that nothing is left to fold.
struct Windows {
  int prompt, certain, drafts;
  std::function<int(int)> kept;
};
Schedule in_windows(Timeline line, const Windows& windows);
// The i-th launches of all of them together, in an order that turns from launch to launch.
Schedule together(const std::vector<Schedule>& schedules);
Schedule after(Schedule first, const Schedule& then);

// What the harness itself does wrong, to show that the tests would see it in an op.
enum class Fault {
  None,
  FoldsOneShort,
  FoldsOneLong,
  ForgetsTheFold,
  NeighboursSlot,
  NeighboursBlocks,
  StartsLate,
  DropsAState
};

std::string fault_label(const testing::TestParamInfo<Fault>& param);

struct Played {
  std::map<std::pair<int, int>, std::vector<float>> rows;  // (sequence, position) -> output, of the rows that stayed
  std::map<int, std::vector<float>> states;                // by sequence, of its last slot
};
Played play(StatefulOp& op, Machine& machine, const Schedule& schedule, Fault fault = Fault::None);

testing::AssertionResult same_history(const Played& got, const Played& want);  // what `got` has, to the bit
testing::AssertionResult close_history(const Played& got, const Played& want, double tolerance);

// All of it, for one op and instruction set.
testing::AssertionResult timelines_keep_their_bits(Isa isa, const MakeOp& make);
// A schedule with slices, windows, folds and a reused slot against the reference.
testing::AssertionResult agrees_with_reference(Isa isa, const MakeOp& make, double tolerance);
// Two ops that are to do the same, on all schedules of the law, outputs and states to the bit.
testing::AssertionResult do_the_same(Isa isa, const MakeOp& make, const MakeOp& make_other);
// The same schedule as the law's, with the fault: must be a failure.
testing::AssertionResult keeps_its_bits_in_spite_of(Fault fault, const MakeOp& make);

}  // namespace rondo

// A planted control a suite: each of those faults of the harness is seen.
#define RONDO_WITH_FAULTS(suite, ...)                    \
  class suite : public testing::TestWithParam<Fault> {}; \
  INSTANTIATE_TEST_SUITE_P(Planted, suite, testing::Values(__VA_ARGS__), fault_label)
