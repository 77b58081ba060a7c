#include "grammar/dfa.h"

#include <algorithm>
#include <unordered_map>

#include "grammar/nfa.h"

namespace rondo::grammar {

namespace {

using Subset = std::vector<std::uint32_t>;  // NFA states, ascending: those that read, call or accept

struct SubsetHash {
  std::size_t operator()(const Subset& subset) const {
    std::uint64_t hash = subset.size();
    for (const std::uint32_t state : subset) hash = (hash ^ state) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(hash ^ hash >> 29);
  }
};

// The subset construction.
class Determiniser {
 public:
  Determiniser(const Nfa& nfa, Budget& budget) : nfa_(nfa), budget_(budget), met_(nfa.num_states(), 0) {}

  Dfa run(std::uint32_t start) {
    targets_ = {start};
    number_of_targets();
    for (std::size_t i = 0; i < subsets_.size() && !budget_.is_spent(); ++i) {
      const Subset subset = *subsets_[i];
      dfa_.first_edge.push_back(static_cast<std::uint32_t>(dfa_.edges.size()));
      dfa_.first_call.push_back(static_cast<std::uint32_t>(dfa_.calls.size()));
      dfa_.accepts.push_back(!subset.empty() && subset.front() == Nfa::kAccept);
      add_edges(subset);
      add_calls(subset);
    }
    dfa_.first_edge.push_back(static_cast<std::uint32_t>(dfa_.edges.size()));
    dfa_.first_call.push_back(static_cast<std::uint32_t>(dfa_.calls.size()));
    return std::move(dfa_);
  }

 private:
  // The number of the subset that targets_ lead to.
  std::uint32_t number_of_targets() {
    Subset closed;
    ++round_;
    while (!targets_.empty()) {
      const std::uint32_t id = targets_.back();
      targets_.pop_back();
      if (met_[id] == round_) continue;
      met_[id] = round_;
      const Nfa::State& state = nfa_.state(id);
      if (id == Nfa::kAccept || state.edge != Nfa::kNone || state.call != Nfa::kNone) closed.push_back(id);
      std::size_t jumps = 1;
      for (std::uint32_t at = state.jump; at != Nfa::kNone; at = nfa_.jump(at).next, ++jumps) {
        targets_.push_back(nfa_.jump(at).target);
      }
      if (!budget_.take_work(jumps)) return 0;
    }
    std::sort(closed.begin(), closed.end());
    const auto [found, is_new] = numbers_.try_emplace(std::move(closed), static_cast<std::uint32_t>(subsets_.size()));
    if (is_new && budget_.take_states(1)) subsets_.push_back(&found->first);
    return found->second;
  }

  void add_edges(const Subset& subset) {
    leaving_.clear();
    for (const std::uint32_t id : subset) {
      for (std::uint32_t at = nfa_.state(id).edge; at != Nfa::kNone; at = nfa_.edge(at).next) {
        leaving_.push_back(nfa_.edge(at));
      }
    }
    std::sort(leaving_.begin(), leaving_.end(), [](const auto& a, const auto& b) { return a.low < b.low; });
    const std::size_t first = dfa_.edges.size();
    for (int low = 0; low < 256;) {
      int high = 255;  // the longest range from low in which the targets stay the same
      for (const Nfa::Edge& edge : leaving_) {
        if (edge.low > low) {
          high = std::min<int>(high, edge.low - 1);
          break;
        }
        if (edge.high < low) continue;
        targets_.push_back(edge.target);
        high = std::min<int>(high, edge.high);
      }
      if (!budget_.take_work(leaving_.size() + 1)) return;
      if (!targets_.empty()) add_edge(first, low, high, number_of_targets());
      low = high + 1;
    }
  }

  void add_edge(std::size_t first, int low, int high, std::uint32_t target) {
    if (dfa_.edges.size() > first && dfa_.edges.back().target == target && dfa_.edges.back().high + 1 == low) {
      dfa_.edges.back().high = static_cast<std::uint8_t>(high);
    } else {
      dfa_.edges.push_back({static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), target});
    }
  }

  void add_calls(const Subset& subset) {
    std::vector<Nfa::Call> calls;
    for (const std::uint32_t id : subset) {
      for (std::uint32_t at = nfa_.state(id).call; at != Nfa::kNone; at = nfa_.call(at).next) {
        calls.push_back(nfa_.call(at));
      }
    }
    std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.rule < b.rule; });
    for (std::size_t i = 0; i < calls.size() && !budget_.is_spent();) {
      const std::uint32_t rule = calls[i].rule;
      for (; i < calls.size() && calls[i].rule == rule; ++i) targets_.push_back(calls[i].target);
      dfa_.calls.push_back({rule, number_of_targets()});
    }
  }

  const Nfa& nfa_;
  Budget& budget_;
  Dfa dfa_;
  std::unordered_map<Subset, std::uint32_t, SubsetHash> numbers_;
  std::vector<const Subset*> subsets_;  // keys of numbers_, which stay where they are
  std::vector<std::uint32_t> met_;      // [NFA states] the round that met it last
  std::uint32_t round_ = 0;
  Subset targets_;  // scratch: what the next subset starts from
  std::vector<Nfa::Edge> leaving_;
};

}  // namespace

Dfa make_dfa(const Rules& rules, ExprId expr, Budget& budget) {
  Nfa nfa(rules, budget);
  const std::uint32_t start = nfa.build(expr, Nfa::kAccept);
  if (budget.is_spent()) return {};
  return Determiniser(nfa, budget).run(start);
}

}  // namespace rondo::grammar
