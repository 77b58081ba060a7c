// Rules: a grammar as its readers (JSON schema, regex, EBNF, tool calls) write it down: expressions over bytes and code
// points, which may call rules by name, also recursively. automaton.h turns it into tables.
//
// Expressions are values in a shared graph: an id may stand in several places, and what follows it there is compiled
// once where it is the same. Code points are written as UTF-8.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"

namespace rondo::grammar {

struct ExprId {
  std::uint32_t value = 0;
  bool operator==(const ExprId&) const = default;
};
struct RuleId {
  std::uint32_t value = 0;
  bool operator==(const RuleId&) const = default;
};

constexpr int kNoLimit = -1;

struct Expr {
  enum class Kind : std::uint8_t { Bytes, Chars, Sequence, Choice, Repeat, Call, Both, Without, Last };
  Kind kind = Kind::Sequence;
  int low = 0, high = 0;        // Repeat: times; high may be kNoLimit
  std::uint32_t at = 0;         // Bytes, Chars: index; Call: rule; else the first of its parts
  std::uint32_t num_parts = 0;  // Both and Without have two, neither of which may call a rule; Repeat one
};

class Rules {
 public:
  Rules();

  ExprId bytes(std::string_view text);
  ExprId chars(CharSet set);
  ExprId sequence(std::span<const ExprId> parts);
  ExprId sequence(std::initializer_list<ExprId> parts) { return sequence(std::span(parts.begin(), parts.size())); }
  ExprId choice(std::span<const ExprId> parts);  // of none: nothing matches
  ExprId choice(std::initializer_list<ExprId> parts) { return choice(std::span(parts.begin(), parts.size())); }
  ExprId repeat(ExprId part, int low, int high);
  ExprId optional(ExprId part) { return repeat(part, 0, 1); }
  ExprId both(ExprId a, ExprId b);     // texts that both match
  ExprId without(ExprId a, ExprId b);  // texts that a matches and b does not
  // The last part, which ends as those before it do: each may stand at the end of the next. It says no more than the
  // last part alone, but a long chain of them is compiled link by link and not by recursion.
  ExprId last_of(std::span<const ExprId> chain);
  ExprId empty() const { return ExprId{0}; }  // the empty text
  ExprId call(RuleId rule);

  RuleId add_rule(std::string name);
  void define(RuleId rule, ExprId body) { rules_[rule.value].body = body; }

  const Expr& expr(ExprId id) const { return exprs_[id.value]; }
  ExprId part(const Expr& expr, std::size_t i) const { return parts_[expr.at + i]; }
  const std::string& text_of(const Expr& expr) const { return texts_[expr.at]; }
  const CharSet& set_of(const Expr& expr) const { return sets_[expr.at]; }
  std::size_t num_rules() const { return rules_.size(); }
  const std::string& name_of(RuleId rule) const { return rules_[rule.value].name; }
  ExprId body_of(RuleId rule) const { return rules_[rule.value].body; }

  // More expressions were asked for than a grammar may have: what was built is not what was meant.
  bool is_too_large() const { return too_large_; }

 private:
  struct Rule {
    std::string name;
    ExprId body;
  };
  ExprId add(Expr expr);
  ExprId add(Expr expr, std::span<const ExprId> parts);

  std::vector<Expr> exprs_;
  std::vector<ExprId> parts_;
  std::vector<std::string> texts_;
  std::vector<CharSet> sets_;
  std::vector<Rule> rules_;
  bool too_large_ = false;
};

}  // namespace rondo::grammar
