// JSON texts as expressions.
//
// Whitespace is bounded: a *gap* (after an opening bracket or a comma, and before a closing bracket) is nothing, one
// space, or one line end with up to 24 spaces or 6 tabs; after a colon there may be one space; there is none elsewhere.
// Strings have two spellings. *Free*: any escape JSON knows (half of a surrogate pair is none). *Fixed*, where what a
// string says matters (names, enum, const, pattern): every character as it is, in UTF-8, except \" \\ \b \f \n \r \t
// and \u00xx for the other control characters. Numbers have at most 18 digits before the point, 24 after it and an
// exponent of up to 299.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "grammar/rules.h"

namespace rondo::grammar {

class JsonText {
 public:
  explicit JsonText(Rules& rules);

  ExprId colon() const { return colon_; }

  ExprId any_value();  // calls a rule: values nest as deep as a reading's stack may be high
  ExprId any_object();
  ExprId any_array();
  ExprId string(int least_chars, int most_chars);       // free; most_chars may be kNoLimit
  ExprId fixed_chars(int least_chars, int most_chars);  // fixed, without quotes
  ExprId quoted(ExprId chars);
  ExprId integer(std::optional<std::int64_t> low, std::optional<std::int64_t> high);
  ExprId number();
  // As far as doubles tell such texts apart from the bounds: no exponent, 15 digits in all near a bound.
  struct Bound {
    std::int64_t value;
    bool included;
  };
  ExprId number(std::optional<Bound> low, std::optional<Bound> high);
  ExprId value(const json::Value& value);  // this one, fixed, with gaps

  struct Member {
    ExprId text;  // its name after the opening quote, and its value
    bool required = false;
  };
  // In this order; then any number of `other`, which are such texts too.
  ExprId object_of(std::span<const Member> members, std::optional<ExprId> other);
  // The first items as listed, then any number of `others`: least_items to most_items of them all.
  ExprId array_of(std::span<const ExprId> first, std::optional<ExprId> others, int least_items, int most_items);

 private:
  ExprId object_of(ExprId members) const;  // members: what stands between { gap and }
  ExprId array_of(ExprId items) const;
  ExprId nothing() { return rules_.choice(std::span<const ExprId>()); }
  ExprId one_of_digits(char low, char high);
  ExprId digits(int least, int most);
  ExprId same_length(std::string_view low, std::string_view high);
  ExprId natural(std::uint64_t low, std::uint64_t high);
  ExprId above_and_below(std::optional<Bound> low, std::optional<Bound> high, int fraction_digits);

  Rules& rules_;
  ExprId gap_, comma_, colon_, space_;
  ExprId free_char_, fixed_char_;
  std::optional<RuleId> any_value_;
  std::optional<ExprId> number_;
};

std::string fixed_spelling(std::string_view text);  // without quotes
// A set of code points in fixed spelling.
ExprId write_chars_in_json(Rules& rules, const CharSet& set);

}  // namespace rondo::grammar
