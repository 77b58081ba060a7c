#include "grammar/rules.h"

#include <utility>

#include "base/check.h"

namespace rondo::grammar {

namespace {

constexpr std::size_t kMaxParts = 500'000;  // expressions and their parts: about 20 MB

}  // namespace

Rules::Rules() { exprs_.push_back({}); }

ExprId Rules::add(Expr expr) {
  if (exprs_.size() + parts_.size() >= kMaxParts) {
    too_large_ = true;
    return empty();
  }
  exprs_.push_back(expr);
  return ExprId{static_cast<std::uint32_t>(exprs_.size() - 1)};
}

ExprId Rules::add(Expr expr, std::span<const ExprId> parts) {
  expr.at = static_cast<std::uint32_t>(parts_.size());
  expr.num_parts = static_cast<std::uint32_t>(parts.size());
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  return add(expr);
}

ExprId Rules::bytes(std::string_view text) {
  if (text.empty()) return empty();
  texts_.emplace_back(text);
  return add({.kind = Expr::Kind::Bytes, .at = static_cast<std::uint32_t>(texts_.size() - 1)});
}

ExprId Rules::chars(CharSet set) {
  sets_.push_back(std::move(set));
  return add({.kind = Expr::Kind::Chars, .at = static_cast<std::uint32_t>(sets_.size() - 1)});
}

ExprId Rules::sequence(std::span<const ExprId> parts) {
  if (parts.empty()) return empty();
  return parts.size() == 1 ? parts[0] : add({.kind = Expr::Kind::Sequence}, parts);
}

ExprId Rules::choice(std::span<const ExprId> parts) {
  return parts.size() == 1 ? parts[0] : add({.kind = Expr::Kind::Choice}, parts);
}

ExprId Rules::repeat(ExprId part, int low, int high) {
  CHECK(low >= 0 && (high == kNoLimit || high >= low));
  if (high == 0) return empty();
  return low == 1 && high == 1 ? part : add({.kind = Expr::Kind::Repeat, .low = low, .high = high}, {&part, 1});
}

ExprId Rules::both(ExprId a, ExprId b) {
  const ExprId parts[] = {a, b};
  return add({.kind = Expr::Kind::Both}, parts);
}

ExprId Rules::without(ExprId a, ExprId b) {
  const ExprId parts[] = {a, b};
  return add({.kind = Expr::Kind::Without}, parts);
}

ExprId Rules::last_of(std::span<const ExprId> chain) {
  CHECK(!chain.empty());
  return add({.kind = Expr::Kind::Last}, chain);
}

ExprId Rules::call(RuleId rule) { return add({.kind = Expr::Kind::Call, .at = rule.value}); }

RuleId Rules::add_rule(std::string name) {
  rules_.push_back({std::move(name), empty()});
  return RuleId{static_cast<std::uint32_t>(rules_.size() - 1)};
}

}  // namespace rondo::grammar
