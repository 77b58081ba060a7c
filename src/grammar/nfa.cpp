#include "grammar/nfa.h"

#include <array>
#include <string>

#include "grammar/dfa_product.h"
#include "text/utf8.h"

namespace rondo::grammar {

namespace {

constexpr int kMostDepth = 1500;  // of expressions inside expressions: some 1 MB of stack

// Calls take(first, last) for ranges whose UTF-8 forms have the same length, and in which each byte ranges from that of
// the first to that of the last.
template <class Take>
void split_by_bytes(char32_t low, char32_t high, const Take& take) {
  for (const char32_t last : {0x7FU, 0x7FFU, 0xFFFFU}) {
    if (low > last || high <= last) continue;
    split_by_bytes(low, last, take);
    return split_by_bytes(last + 1, high, take);
  }
  const int num_tails = high <= 0x7F ? 0 : high <= 0x7FF ? 1 : high <= 0xFFFF ? 2 : 3;
  for (int i = 1; i <= num_tails; ++i) {
    const char32_t tail = (char32_t{1} << (6 * i)) - 1;
    if ((low & ~tail) == (high & ~tail)) continue;
    if ((low & tail) != 0) {
      split_by_bytes(low, low | tail, take);
      return split_by_bytes((low | tail) + 1, high, take);
    }
    if ((high & tail) != tail) {
      split_by_bytes(low, (high & ~tail) - 1, take);
      return split_by_bytes(high & ~tail, high, take);
    }
  }
  take(low, high);
}

std::uint64_t key_of(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

}  // namespace

std::uint32_t Nfa::add_state() {
  if (!budget_.take_states(1)) return kAccept;
  states_.emplace_back();
  return static_cast<std::uint32_t>(states_.size() - 1);
}

void Nfa::add_edge(std::uint32_t from, std::uint8_t low, std::uint8_t high, std::uint32_t to) {
  edges_.push_back({low, high, to, states_[from].edge});
  states_[from].edge = static_cast<std::uint32_t>(edges_.size() - 1);
}

void Nfa::add_jump(std::uint32_t from, std::uint32_t to) {
  jumps_.push_back({to, states_[from].jump});
  states_[from].jump = static_cast<std::uint32_t>(jumps_.size() - 1);
}

std::uint32_t Nfa::one_edge(std::uint8_t low, std::uint8_t high, std::uint32_t to) {
  const auto [found, is_new] = singles_.try_emplace(key_of(low * 256U + high, to), 0);
  if (is_new) {
    found->second = add_state();
    add_edge(found->second, low, high, to);
  }
  return found->second;
}

std::uint32_t Nfa::build(ExprId expr, std::uint32_t next) {
  if (budget_.is_spent()) return kAccept;
  const std::uint64_t key = key_of(expr.value, next);
  if (const auto found = built_.find(key); found != built_.end()) return found->second;
  if (depth_ == kMostDepth) budget_.spend();
  ++depth_;
  const std::uint32_t state = build_new(rules_.expr(expr), next);
  --depth_;
  built_.emplace(key, state);
  return state;
}

std::uint32_t Nfa::build_new(const Expr& expr, std::uint32_t next) {
  switch (expr.kind) {
    case Expr::Kind::Bytes: {
      const std::string& text = rules_.text_of(expr);
      for (std::size_t i = text.size(); i-- > 0;) {
        const auto byte = static_cast<std::uint8_t>(text[i]);
        next = one_edge(byte, byte, next);
      }
      return next;
    }
    case Expr::Kind::Chars: return build_chars(rules_.set_of(expr), next);
    case Expr::Kind::Sequence:
      for (std::size_t i = expr.num_parts; i-- > 0;) next = build(rules_.part(expr, i), next);
      return next;
    case Expr::Kind::Last: {
      std::uint32_t state = next;
      for (std::size_t i = 0; i < expr.num_parts; ++i) state = build(rules_.part(expr, i), next);
      return state;
    }
    case Expr::Kind::Choice: {
      const std::uint32_t state = add_state();
      for (std::size_t i = 0; i < expr.num_parts; ++i) add_jump(state, build(rules_.part(expr, i), next));
      return state;
    }
    case Expr::Kind::Repeat: return build_repeat(expr, next);
    case Expr::Kind::Call: {
      const std::uint32_t state = add_state();
      calls_.push_back({expr.at, next, states_[state].call});
      states_[state].call = static_cast<std::uint32_t>(calls_.size() - 1);
      return state;
    }
    case Expr::Kind::Both:
    case Expr::Kind::Without: break;
  }
  return build_product(expr, next);
}

std::uint32_t Nfa::build_chars(const CharSet& set, std::uint32_t next) {
  const std::uint32_t state = add_state();
  for (const CharRange& range : set.ranges()) {
    split_by_bytes(range.low, range.high, [&](char32_t low, char32_t high) {
      std::string first, last;
      append_utf8(first, low);
      append_utf8(last, high);
      std::uint32_t to = next;
      for (std::size_t i = first.size() - 1; i > 0; --i) {
        to = one_edge(static_cast<std::uint8_t>(first[i]), static_cast<std::uint8_t>(last[i]), to);
      }
      add_edge(state, static_cast<std::uint8_t>(first[0]), static_cast<std::uint8_t>(last[0]), to);
    });
  }
  return state;
}

std::uint32_t Nfa::build_repeat(const Expr& expr, std::uint32_t next) {
  const ExprId part = rules_.part(expr, 0);
  std::uint32_t state = next;
  if (expr.high == kNoLimit) {
    state = add_state();
    add_jump(state, next);
    add_jump(state, build(part, state));
  }
  for (int i = expr.low; i < expr.high && !budget_.is_spent(); ++i) {
    const std::uint32_t more = build(part, state);
    state = add_state();
    add_jump(state, next);
    add_jump(state, more);
  }
  for (int i = 0; i < expr.low && !budget_.is_spent(); ++i) state = build(part, state);
  return state;
}

std::uint32_t Nfa::build_product(const Expr& expr, std::uint32_t next) {
  const Dfa a = make_dfa(rules_, rules_.part(expr, 0), budget_);
  const Dfa b = make_dfa(rules_, rules_.part(expr, 1), budget_);
  if (budget_.is_spent()) return kAccept;
  const Dfa product = make_product(a, b, expr.kind == Expr::Kind::Both ? Product::Both : Product::Without, budget_);
  if (budget_.is_spent() || !budget_.take_states(product.num_states())) return kAccept;
  const auto first = static_cast<std::uint32_t>(states_.size());
  states_.resize(states_.size() + product.num_states());
  for (std::uint32_t s = 0; s < product.num_states(); ++s) {
    for (const ByteEdge& edge : product.edges_of(s)) add_edge(first + s, edge.low, edge.high, first + edge.target);
    if (product.accepts[s]) add_jump(first + s, next);
  }
  return first;
}

}  // namespace rondo::grammar
