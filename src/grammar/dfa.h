// Dfa: one rule as a deterministic automaton over bytes, with calls of other rules beside its byte edges.
//
// States are numbered from the start, 0, in the order they are met. A byte leads to at most one state and each rule is
// called from a state at most once; what stays open is whether to take a byte or a call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "grammar/rules.h"

namespace rondo::grammar {

struct ByteEdge {
  std::uint8_t low, high;  // both included
  std::uint32_t target;
};
struct CallEdge {
  std::uint32_t rule;    // Dfa: its id; Automaton: the state its body starts in
  std::uint32_t target;  // where to go on once the rule has matched
};

struct Dfa {
  std::vector<std::uint32_t> first_edge, first_call;  // [states + 1]
  std::vector<ByteEdge> edges;                        // of each state by ascending byte
  std::vector<CallEdge> calls;
  std::vector<bool> accepts;  // [states]

  std::size_t num_states() const { return accepts.size(); }
  std::span<const ByteEdge> edges_of(std::uint32_t state) const {
    return std::span(edges).subspan(first_edge[state], first_edge[state + 1] - first_edge[state]);
  }
  std::span<const CallEdge> calls_of(std::uint32_t state) const {
    return std::span(calls).subspan(first_call[state], first_call[state + 1] - first_call[state]);
  }
};

// What compiling one grammar may take, counted and not timed, so that a grammar is refused always or never.
class Budget {
 public:
  bool take_states(std::size_t n) { return take(states_, n); }
  bool take_work(std::size_t n) { return take(work_, n); }  // memory touched, in words
  bool is_spent() const { return spent_; }
  void spend() { spent_ = true; }

 private:
  bool take(std::size_t& left, std::size_t n) {
    if (n > left) spent_ = true;
    left -= spent_ ? 0 : n;
    return !spent_;
  }
  std::size_t states_ = 400'000;   // of every automaton on the way, deterministic or not
  std::size_t work_ = 40'000'000;  // well under a second
  bool spent_ = false;
};

// The automaton of `expr`. When the budget is spent the result is of no use.
Dfa make_dfa(const Rules& rules, ExprId expr, Budget& budget);

}  // namespace rondo::grammar
