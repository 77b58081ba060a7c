#include "grammar/ebnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "grammar/char_classes.h"
#include "text/utf8.h"

namespace rondo::grammar {

namespace {

constexpr int kMostDepth = 100;
constexpr int kMostTimes = 100'000;
constexpr int kMostStacked = 8;  // repeats of a repeat

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class EbnfReader {
 public:
  EbnfReader(Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

  Result<RuleId> read() {
    if (!is_utf8(text_)) return failure(ErrorCode::InvalidArgument, "the grammar is not UTF-8");
    skip_space();
    while (!at_end()) TRY_VOID(read_rule());
    for (const auto& [name, named] : names_) {
      if (named.is_defined) continue;
      return failure(ErrorCode::InvalidArgument,
                     fmt::format("grammar, line {}: the rule '{}' is nowhere defined", named.line, name));
    }
    const auto root = names_.find("root");
    if (root == names_.end()) return failure(ErrorCode::InvalidArgument, "the grammar has no rule named 'root'");
    return root->second.id;
  }

 private:
  struct Named {
    RuleId id;
    std::size_t line;  // where it is met first
    bool is_defined = false;
  };

  bool at_end() const { return pos_ == text_.size(); }
  bool next_is(std::string_view what) const { return text_.substr(pos_, what.size()) == what; }
  bool take(std::string_view what) {
    if (!next_is(what)) return false;
    pos_ += what.size();
    return true;
  }
  std::size_t line() const {
    return 1 +
           static_cast<std::size_t>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(pos_), '\n'));
  }
  tl::unexpected<Error> wrong(std::string_view what) const {
    return failure(ErrorCode::InvalidArgument, fmt::format("grammar, line {}: {}", line(), what));
  }

  void skip_space() {
    while (!at_end()) {
      const char c = text_[pos_];
      if (c == '#') {
        while (!at_end() && text_[pos_] != '\n') ++pos_;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++pos_;
      } else {
        break;
      }
    }
  }

  std::string_view read_name() {
    const std::size_t begin = pos_;
    while (!at_end() && is_name_char(text_[pos_])) ++pos_;
    return text_.substr(begin, pos_ - begin);
  }

  Named& named(std::string_view name) {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    const RuleId id = rules_.add_rule(fmt::format("rule '{}'", name));
    return names_.emplace(std::string(name), Named{id, line()}).first->second;
  }

  // Whether what stands here begins the next rule: a name, then ::=
  bool rule_begins() const {
    std::size_t at = pos_;
    while (at < text_.size() && is_name_char(text_[at])) ++at;
    if (at == pos_) return false;
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    return text_.substr(at, 3) == "::=";
  }

  Result<void> read_rule() {
    if (!rule_begins()) return wrong("expected 'name ::= ...'");
    Named& rule = named(read_name());
    if (rule.is_defined) return wrong("this rule is defined twice");
    rule.is_defined = true;
    const RuleId id = rule.id;
    skip_space();
    take("::=");
    TRY(const ExprId body, read_alternatives(0));
    if (!at_end() && !rule_begins()) return wrong(fmt::format("'{}' is not expected here", text_[pos_]));
    rules_.define(id, body);
    return {};
  }

  Result<ExprId> read_alternatives(int depth) {
    std::vector<ExprId> alternatives;
    do {
      TRY(const ExprId sequence, read_sequence(depth));
      alternatives.push_back(sequence);
    } while (take("|"));
    return rules_.choice(alternatives);
  }

  Result<ExprId> read_sequence(int depth) {
    std::vector<ExprId> parts;
    skip_space();
    while (!at_end() && !next_is("|") && !next_is(")") && !rule_begins()) {
      TRY(const ExprId atom, read_atom(depth));
      skip_space();
      TRY(const ExprId repeated, read_repeats(atom));
      parts.push_back(repeated);
      skip_space();
    }
    return rules_.sequence(parts);
  }

  Result<ExprId> read_atom(int depth) {
    if (next_is("\"")) return read_text();
    if (next_is("[")) return read_class();
    if (take(".")) return rules_.chars(CharSet::all());
    if (take("(")) {
      if (depth == kMostDepth) return wrong(fmt::format("groups nest deeper than {}", kMostDepth));
      TRY(const ExprId inside, read_alternatives(depth + 1));
      if (!take(")")) return wrong("a group without its )");
      return inside;
    }
    const std::string_view name = read_name();
    if (name.empty()) return wrong(fmt::format("'{}' is not expected here", text_[pos_]));
    return rules_.call(named(name).id);
  }

  Result<ExprId> read_repeats(ExprId atom) {
    for (int stacked = 0;; ++stacked) {
      if (stacked > kMostStacked) return wrong("too many repeats of one thing after each other");
      if (take("*")) {
        atom = rules_.repeat(atom, 0, kNoLimit);
      } else if (take("+")) {
        atom = rules_.repeat(atom, 1, kNoLimit);
      } else if (take("?")) {
        atom = rules_.optional(atom);
      } else if (take("{")) {
        TRY(const ExprId counted, read_count(atom));
        atom = counted;
      } else {
        return atom;
      }
      skip_space();
    }
  }

  Result<int> read_times() {
    int value = 0;
    const std::size_t begin = pos_;
    while (!at_end() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      value = std::min(kMostTimes + 1, value * 10 + (text_[pos_++] - '0'));
    }
    if (pos_ == begin) return wrong("a count is {m}, {m,} or {m,n}");
    if (value > kMostTimes) return wrong(fmt::format("a count is at most {}", kMostTimes));
    return value;
  }

  Result<ExprId> read_count(ExprId atom) {
    TRY(const int low, read_times());
    int high = low;
    if (take(",")) {
      high = kNoLimit;
      if (!next_is("}")) {
        TRY(const int given, read_times());
        high = given;
      }
    }
    if (!take("}")) return wrong("a count is {m}, {m,} or {m,n}");
    if (high != kNoLimit && high < low) return wrong("a count whose end is before its beginning");
    return rules_.repeat(atom, low, high);
  }

  Result<char32_t> read_escape() {
    if (at_end()) return wrong("a \\ at the end");
    const char c = text_[pos_++];
    if (const auto found = char_of_escape(c)) return *found;
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      if (std::string_view("\\\"'[]-^/").find(c) == std::string_view::npos)
        return wrong(fmt::format("unknown escape \\{}", c));
      return static_cast<char32_t>(c);
    }
    const auto value = read_hex(text_, pos_, digits);
    const bool is_char = value && *value <= 0x10FFFF && (*value < 0xD800 || *value > 0xDFFF);
    if (!is_char) return wrong(fmt::format("\\{} takes {} hexadecimal digits of a character", c, digits));
    return *value;
  }

  Result<ExprId> read_text() {
    ++pos_;
    std::string literal;
    while (!take("\"")) {
      if (at_end() || next_is("\n")) return wrong("a \" without its end");
      if (take("\\")) {
        TRY(const char32_t code_point, read_escape());
        append_utf8(literal, code_point);
      } else {
        append_utf8(literal, next_code_point(text_, pos_));
      }
    }
    return rules_.bytes(literal);
  }

  Result<ExprId> read_class() {
    ++pos_;
    const bool inverted = take("^");
    CharSet set;
    for (int parts = 0; !take("]"); ++parts) {
      if (at_end()) return wrong("a [ without its ]");
      if (parts == kMostClassParts) return wrong(fmt::format("a class of more than {} parts", kMostClassParts));
      if (next_is("\\") && pos_ + 1 < text_.size()) {
        if (const auto known = class_of_escape(text_[pos_ + 1])) {
          pos_ += 2;
          set.add(*known);
          continue;
        }
      }
      TRY(const char32_t low, read_class_char());
      char32_t high = low;
      if (next_is("-") && !next_is("-]")) {
        ++pos_;
        TRY(const char32_t last, read_class_char());
        high = last;
      }
      if (high < low) return wrong("a range whose end is before its beginning");
      set.add(low, high);
    }
    return rules_.chars(inverted ? set.inverted() : set);
  }

  Result<char32_t> read_class_char() {
    if (at_end()) return wrong("a [ without its ]");
    if (take("\\")) return read_escape();
    return next_code_point(text_, pos_);
  }

  Rules& rules_;
  std::string_view text_;
  std::size_t pos_ = 0;
  std::map<std::string, Named, std::less<>> names_;
};

}  // namespace

Result<RuleId> read_ebnf(Rules& rules, std::string_view text) { return EbnfReader(rules, text).read(); }

}  // namespace rondo::grammar
