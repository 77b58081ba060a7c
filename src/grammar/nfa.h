// Nfa: one expression as a nondeterministic automaton, built from its end to its beginning: build(expr, next) gives the
// state from which `expr` and then what follows `next` can be read. The same expression before the same state is built
// once, so an expression graph with shared ends stays as small as it is.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "grammar/dfa.h"
#include "grammar/rules.h"

namespace rondo::grammar {

class Nfa {
 public:
  static constexpr std::uint32_t kAccept = 0;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Edge {
    std::uint8_t low, high;
    std::uint32_t target, next;
  };
  struct Jump {  // for nothing
    std::uint32_t target, next;
  };
  struct Call {
    std::uint32_t rule, target, next;
  };
  struct State {  // heads of the lists that `next` chains
    std::uint32_t edge = kNone, jump = kNone, call = kNone;
  };

  Nfa(const Rules& rules, Budget& budget) : rules_(rules), budget_(budget) { states_.emplace_back(); }
  std::uint32_t build(ExprId expr, std::uint32_t next);

  const State& state(std::uint32_t id) const { return states_[id]; }
  const Edge& edge(std::uint32_t at) const { return edges_[at]; }
  const Jump& jump(std::uint32_t at) const { return jumps_[at]; }
  const Call& call(std::uint32_t at) const { return calls_[at]; }
  std::size_t num_states() const { return states_.size(); }

 private:
  std::uint32_t add_state();
  void add_edge(std::uint32_t from, std::uint8_t low, std::uint8_t high, std::uint32_t to);
  void add_jump(std::uint32_t from, std::uint32_t to);
  std::uint32_t one_edge(std::uint8_t low, std::uint8_t high, std::uint32_t to);
  std::uint32_t build_new(const Expr& expr, std::uint32_t next);
  std::uint32_t build_chars(const CharSet& set, std::uint32_t next);
  std::uint32_t build_repeat(const Expr& expr, std::uint32_t next);
  std::uint32_t build_product(const Expr& expr, std::uint32_t next);

  const Rules& rules_;
  Budget& budget_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<Jump> jumps_;
  std::vector<Call> calls_;
  int depth_ = 0;                                             // of expressions inside expressions being built
  std::unordered_map<std::uint64_t, std::uint32_t> built_;    // (expr, next) -> state
  std::unordered_map<std::uint64_t, std::uint32_t> singles_;  // (byte range, target) -> state
};

}  // namespace rondo::grammar
