#include "grammar/automaton.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "grammar/free_chars.h"

namespace rondo::grammar {

namespace {

constexpr std::uint8_t kUnreached = 255;

Error too_large() {
  return {ErrorCode::Unsupported,
          "the grammar is too large: its tables would have more than some 100,000 states; fewer or smaller counts, "
          "alternatives or nested repeats make it smaller"};
}

// Every rule that the root reaches, its states numbered after those of the rules before it.
class Joiner {
 public:
  Joiner(const Rules& rules, Budget& budget) : rules_(rules), budget_(budget), starts_(rules.num_rules(), kNoState) {}

  Automaton join(std::initializer_list<RuleId> roots) {
    for (const RuleId root : roots) reach(root.value);
    for (std::size_t i = 0; i < reached_.size() && !budget_.is_spent(); ++i) {
      const Dfa dfa = make_dfa(rules_, rules_.body_of(RuleId{reached_[i]}), budget_);
      if (budget_.is_spent()) break;
      append(dfa, reached_[i]);
    }
    joined_.first_edge.push_back(static_cast<std::uint32_t>(joined_.edges.size()));
    joined_.first_call.push_back(static_cast<std::uint32_t>(joined_.calls.size()));
    if (budget_.is_spent()) return std::move(joined_);
    for (CallEdge& call : joined_.calls) call.rule = starts_[call.rule];
    return std::move(joined_);
  }
  // The rules, and where each starts.
  std::span<const std::uint32_t> reached() const { return reached_; }
  std::uint32_t start_of(std::uint32_t rule) const { return starts_[rule]; }

 private:
  void reach(std::uint32_t rule) {
    if (starts_[rule] != kNoState) return;
    starts_[rule] = 0;
    reached_.push_back(rule);
  }

  void append(const Dfa& dfa, std::uint32_t rule) {
    const auto first = static_cast<std::uint32_t>(joined_.num_states());
    starts_[rule] = first;
    for (std::uint32_t s = 0; s < dfa.num_states(); ++s) {
      joined_.first_edge.push_back(static_cast<std::uint32_t>(joined_.edges.size()));
      joined_.first_call.push_back(static_cast<std::uint32_t>(joined_.calls.size()));
      joined_.accepts.push_back(dfa.accepts[s] ? 1 : 0);
      for (ByteEdge edge : dfa.edges_of(s)) {
        edge.target += first;
        joined_.edges.push_back(edge);
      }
      for (CallEdge call : dfa.calls_of(s)) {
        call.target += first;
        reach(call.rule);
        joined_.calls.push_back(call);
      }
    }
  }

  const Rules& rules_;
  Budget& budget_;
  Automaton joined_;
  std::vector<std::uint32_t> starts_;  // [rules]
  std::vector<std::uint32_t> reached_;
};

// Fills height: Knuth's generalisation of Dijkstra, from the ends backwards, by ascending height. A byte takes no
// stack; a call takes the larger of what comes after it and of what its rule takes, and one more while the rule is
// read.
class Heights {
 public:
  explicit Heights(Automaton& automaton) : a_(automaton), ready_(kMostHeight + 2) {
    const std::size_t n = a_.num_states();
    sources_.resize(n + 1, 0);
    visit_links([&](std::uint32_t, std::uint32_t to, std::uint32_t) { ++sources_[to + 1]; });
    for (std::size_t i = 0; i < n; ++i) sources_[i + 1] += sources_[i];
    links_.resize(sources_[n]);
    std::vector<std::uint32_t> at(sources_.begin(), sources_.end() - 1);
    visit_links([&](std::uint32_t from, std::uint32_t to, std::uint32_t call) { links_[at[to]++] = {from, call}; });
  }

  void run() {
    a_.height.assign(a_.num_states(), kUnreached);
    for (std::uint32_t s = 0; s < a_.num_states(); ++s) {
      if (a_.accepts[s]) ready_[0].push_back(s);
    }
    for (std::size_t height = 0; height < ready_.size() - 1; ++height) {
      while (!ready_[height].empty()) {
        const std::uint32_t state = ready_[height].back();
        ready_[height].pop_back();
        if (a_.height[state] != kUnreached) continue;
        a_.height[state] = static_cast<std::uint8_t>(height);
        for (std::uint32_t i = sources_[state]; i < sources_[state + 1]; ++i) offer(links_[i], height);
      }
    }
  }

 private:
  static constexpr std::uint32_t kByByte = 0xFFFFFFFF;
  struct Link {
    std::uint32_t source, call;
  };

  template <class Visit>
  void visit_links(const Visit& visit) const {
    for (std::uint32_t s = 0; s < a_.num_states(); ++s) {
      for (std::uint32_t e = a_.first_edge[s]; e < a_.first_edge[s + 1]; ++e) visit(s, a_.edges[e].target, kByByte);
      for (std::uint32_t c = a_.first_call[s]; c < a_.first_call[s + 1]; ++c) {
        visit(s, a_.calls[c].rule, c);
        if (a_.calls[c].target != kNoState) visit(s, a_.calls[c].target, c);
      }
    }
  }

  void offer(const Link& link, std::size_t height) {
    if (link.call != kByByte) {
      const CallEdge& call = a_.calls[link.call];
      const bool is_last = call.target == kNoState;
      const std::uint8_t inside = a_.height[call.rule], after = is_last ? 0 : a_.height[call.target];
      if (inside == kUnreached || after == kUnreached) return;
      height = std::max<std::size_t>(inside + (is_last ? 0U : 1U), after);
    }
    if (height < ready_.size()) ready_[height].push_back(link.source);
  }

  Automaton& a_;
  std::vector<std::vector<std::uint32_t>> ready_;  // [height] states that can be given it
  std::vector<std::uint32_t> sources_;             // [states + 1] into links_
  std::vector<Link> links_;                        // who leads to a state
};

void mark_last_calls(Automaton& a) {
  for (CallEdge& call : a.calls) {
    const std::uint32_t to = call.target;
    const bool is_end =
        a.accepts[to] && a.first_edge[to] == a.first_edge[to + 1] && a.first_call[to] == a.first_call[to + 1];
    if (is_end) call.target = kNoState;
  }
}

// Takes out edges and calls from which no end is in reach.
void trim(Automaton& a) {
  const auto leads_on = [&](std::uint32_t state) { return a.height[state] != kUnreached; };
  std::uint32_t edges = 0, calls = 0;
  for (std::uint32_t s = 0; s < a.num_states(); ++s) {
    const std::uint32_t edges_end = a.first_edge[s + 1], calls_end = a.first_call[s + 1];
    std::uint32_t e = a.first_edge[s], c = a.first_call[s];
    a.first_edge[s] = edges;
    a.first_call[s] = calls;
    for (; e < edges_end; ++e) {
      if (leads_on(a.edges[e].target)) a.edges[edges++] = a.edges[e];
    }
    for (; c < calls_end; ++c) {
      if (!leads_on(a.calls[c].rule) || (a.calls[c].target != kNoState && !leads_on(a.calls[c].target))) continue;
      a.pushes = a.pushes || a.calls[c].target != kNoState;
      a.calls[calls++] = a.calls[c];
    }
  }
  a.first_edge.back() = edges;
  a.first_call.back() = calls;
  a.edges.resize(edges);
  a.calls.resize(calls);
}

// Finds a rule that can call itself before it has read anything.
class LeftRecursion {
 public:
  LeftRecursion(const Automaton& automaton, const Joiner& joiner, Budget& budget)
      : a_(automaton), joiner_(joiner), budget_(budget), met_(automaton.num_states(), 0) {
    rule_at_.resize(a_.num_states(), kNoState);
    for (const std::uint32_t rule : joiner.reached()) rule_at_[joiner.start_of(rule)] = rule;
    find_empty_rules();
  }

  // A rule on such a cycle, or kNoState.
  std::uint32_t find() {
    marks_.resize(a_.num_states(), Mark::New);
    for (const std::uint32_t rule : joiner_.reached()) {
      if (const std::uint32_t found = visit(joiner_.start_of(rule)); found != kNoState) return rule_at_[found];
    }
    return kNoState;
  }

 private:
  enum class Mark : std::uint8_t { New, Open, Done };

  bool may_be_empty(std::uint32_t start) const { return is_empty_[start]; }

  // The states reached from `start` without a byte.
  std::span<const std::uint32_t> reach_for_nothing(std::uint32_t start) {
    ++round_;
    states_ = {start};
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const auto calls = a_.calls_of(states_[i]);
      if (!budget_.take_work(calls.size() + 1)) break;
      for (const CallEdge& call : calls) {
        if (call.target == kNoState || !may_be_empty(call.rule) || met_[call.target] == round_) continue;
        met_[call.target] = round_;
        states_.push_back(call.target);
      }
    }
    return states_;
  }

  void find_empty_rules() {
    is_empty_.assign(a_.num_states(), false);
    for (bool changed = true; changed && !budget_.is_spent();) {
      changed = false;
      for (std::size_t i = joiner_.reached().size(); i-- > 0;) {  // what a rule calls comes mostly after it
        const std::uint32_t start = joiner_.start_of(joiner_.reached()[i]);
        if (is_empty_[start]) continue;
        for (const std::uint32_t state : reach_for_nothing(start)) {
          const auto calls = a_.calls_of(state);
          const bool ends = a_.accepts[state] || std::any_of(calls.begin(), calls.end(), [&](const CallEdge& call) {
                              return call.target == kNoState && may_be_empty(call.rule);
                            });
          if (!ends) continue;
          is_empty_[start] = changed = true;
          break;
        }
      }
    }
  }

  // Depth first over "calls before reading", with a stack of our own: a chain of rules may be long.
  std::uint32_t visit(std::uint32_t first) {
    if (marks_[first] != Mark::New) return kNoState;
    std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> open;
    const auto enter = [&](std::uint32_t start) {
      marks_[start] = Mark::Open;
      std::vector<std::uint32_t> called;
      for (const std::uint32_t state : reach_for_nothing(start)) {
        for (const CallEdge& call : a_.calls_of(state)) called.push_back(call.rule);
      }
      open.emplace_back(start, std::move(called));
    };
    enter(first);
    while (!open.empty() && !budget_.is_spent()) {
      auto& [start, called] = open.back();
      if (called.empty()) {
        marks_[start] = Mark::Done;
        open.pop_back();
        continue;
      }
      const std::uint32_t next = called.back();
      called.pop_back();
      if (marks_[next] == Mark::Open) return next;
      if (marks_[next] == Mark::New) enter(next);
    }
    return kNoState;
  }

  const Automaton& a_;
  const Joiner& joiner_;
  Budget& budget_;
  std::vector<std::uint32_t> met_;  // [states] the round that met it last
  std::uint32_t round_ = 0;
  std::vector<std::uint32_t> states_;
  std::vector<std::uint32_t> rule_at_;  // [states] the rule that starts there
  std::vector<bool> is_empty_;          // [states] of a rule's start: it matches the empty text
  std::vector<Mark> marks_;             // [states], of starts
};

}  // namespace

std::size_t Automaton::num_bytes() const {
  return edges.size() * sizeof(ByteEdge) + calls.size() * sizeof(CallEdge) +
         num_states() * (2 * sizeof(std::uint32_t) + 4);
}

Result<Automaton> make_automaton(Rules& rules, RuleId root, Budget& budget) {
  const RuleId after_thought = rules.add_rule("the grammar after a thought");
  rules.define(after_thought, rules.sequence({rules.repeat(rules.bytes("\n"), 0, 2), rules.call(root)}));
  if (rules.is_too_large()) return tl::unexpected(too_large());
  Joiner joiner(rules, budget);
  Automaton automaton = joiner.join({root, after_thought});
  if (budget.is_spent()) return tl::unexpected(too_large());
  automaton.start = joiner.start_of(root.value);
  automaton.start_after_thought = joiner.start_of(after_thought.value);
  mark_last_calls(automaton);
  if (const std::uint32_t rule = LeftRecursion(automaton, joiner, budget).find(); rule != kNoState) {
    return failure(
        ErrorCode::InvalidArgument,
        fmt::format("{} refers to itself before anything is read (left recursion)", rules.name_of(RuleId{rule})));
  }
  Heights(automaton).run();
  if (automaton.height[automaton.start] == kUnreached) {
    return failure(ErrorCode::InvalidArgument, "no text can match, or only one that nests deeper than 64");
  }
  trim(automaton);
  fill_free_chars(automaton);
  if (budget.is_spent()) return tl::unexpected(too_large());
  return automaton;
}

}  // namespace rondo::grammar
