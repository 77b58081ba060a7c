// Automaton: a grammar as tables, immutable once made: the automata of all its rules in one numbering of states.
//
// It is a pushdown automaton read with several *readings* at once (matcher.h): a reading is a state and a stack of the
// states to go on from when the rules it is inside of have matched. What always holds:
//   * From every state the end can be reached: edges that lead nowhere are gone. height says how much stack that takes.
//   * No rule calls itself before it has read a byte (left recursion is refused), so a byte is read in bounded time.
//   * A call that is the last thing in its rule pushes nothing, so lists written by right recursion need no stack.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "grammar/dfa.h"
#include "grammar/rules.h"

namespace rondo::grammar {

constexpr int kMostReadings = 32;  // an ambiguous text keeps the first so many that can read a byte or end
constexpr int kMostHeight = 64;    // of a reading's stack: rules inside rules, as with JSON inside JSON

constexpr std::uint32_t kNoState = 0xFFFFFFFF;

// How far text may go on whatever it is. free_chars counts code points: any text of at most so many can be read.
// Plain: what stands in a JSON string as it is, without line ends of Unicode. NoTags: no <.
enum class TextClass : std::uint8_t { Plain, NoTags, Any };
constexpr int kNumTextClasses = 3;
constexpr std::uint8_t kFreeForever = 255;

struct Automaton {
  std::vector<std::uint32_t> first_edge, first_call;  // [states + 1]
  std::vector<ByteEdge> edges;
  std::vector<CallEdge> calls;        // rule: the state its body starts in; target: kNoState = the last thing
  std::vector<std::uint8_t> accepts;  // [states] the rule the state belongs to may be over here
  std::vector<std::uint8_t> height;   // [states] stack that the shortest way to the end of its rule takes
  std::vector<std::uint8_t> free_chars[kNumTextClasses];  // [states]
  std::uint32_t start = 0;
  std::uint32_t start_after_thought = 0;  // where the text may begin with up to two line ends besides
  bool pushes = false;                    // some call pushes

  std::size_t num_states() const { return accepts.size(); }
  bool reads(std::uint32_t state) const { return first_edge[state] != first_edge[state + 1]; }
  std::span<const CallEdge> calls_of(std::uint32_t state) const {
    return std::span(calls).subspan(first_call[state], first_call[state + 1] - first_call[state]);
  }
  // The state after `byte`, or kNoState.
  std::uint32_t next(std::uint32_t state, std::uint8_t byte) const {
    const ByteEdge* at = edges.data() + first_edge[state];
    const ByteEdge* const end = edges.data() + first_edge[state + 1];
    while (at != end && at->high < byte) ++at;
    return at != end && at->low <= byte ? at->target : kNoState;
  }
  std::size_t num_bytes() const;
};

// InvalidArgument when a rule is left-recursive or nothing matches; Unsupported when the tables get too large.
Result<Automaton> make_automaton(Rules& rules, RuleId root, Budget& budget);

}  // namespace rondo::grammar
