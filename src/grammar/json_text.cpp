#include "grammar/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace rondo::grammar {

namespace {

constexpr int kMostIndent = 24, kMostTabs = 6;
constexpr int kIntegerDigits = 18, kFractionDigits = 24;
constexpr int kBoundedDigits = 15;  // a double tells apart all decimals of so many digits

const CharSet& escaped_chars() {
  static const CharSet kSet = [] {
    CharSet set(0, 0x1F);
    set.add(U'"', U'"');
    set.add(U'\\', U'\\');
    return set;
  }();
  return kSet;
}

std::string fixed_escape(char32_t code_point) {
  switch (code_point) {
    case U'"': return "\\\"";
    case U'\\': return "\\\\";
    case U'\b': return "\\b";
    case U'\f': return "\\f";
    case U'\n': return "\\n";
    case U'\r': return "\\r";
    case U'\t': return "\\t";
    default: return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code_point));
  }
}

CharSet set_of(std::string_view chars) {
  CharSet set;
  for (const char c : chars) set.add(static_cast<char32_t>(c), static_cast<char32_t>(c));
  return set;
}

// One character in any spelling.
ExprId make_free_char(Rules& rules) {
  CharSet hex_set = set_of("0123456789abcdefABCDEF");
  const ExprId hex = rules.chars(hex_set), d = rules.chars(set_of("dD")), u = rules.bytes("\\u");
  const ExprId no_surrogate = rules.choice({
      rules.sequence({rules.chars(hex_set.without(set_of("dD"))), hex, hex, hex}),
      rules.sequence({d, rules.chars(set_of("01234567")), hex, hex}),
  });
  const ExprId pair =
      rules.sequence({d, rules.chars(set_of("89abAB")), hex, hex, u, d, rules.chars(set_of("cdefCDEF")), hex, hex});
  return rules.choice({rules.chars(escaped_chars().inverted()),
                       rules.sequence({rules.bytes("\\"), rules.chars(set_of("\"\\/bfnrt"))}),
                       rules.sequence({u, rules.choice({no_surrogate, pair})})});
}

}  // namespace

std::string fixed_spelling(std::string_view text) {
  std::string fixed;
  for (std::size_t pos = 0; pos < text.size();) {
    const char32_t c = next_code_point(text, pos);
    if (escaped_chars().contains(c)) {
      fixed += fixed_escape(c);
    } else {
      append_utf8(fixed, c);
    }
  }
  return fixed;
}

ExprId write_chars_in_json(Rules& rules, const CharSet& set) {
  std::vector<ExprId> spellings;
  if (CharSet plain = set.without(escaped_chars()); !plain.empty()) spellings.push_back(rules.chars(std::move(plain)));
  const CharSet escaped = set.within(escaped_chars());
  for (const CharRange& range : escaped.ranges()) {
    for (char32_t c = range.low; c <= range.high; ++c) spellings.push_back(rules.bytes(fixed_escape(c)));
  }
  return rules.choice(spellings);
}

JsonText::JsonText(Rules& rules) : rules_(rules) {
  const ExprId spaces = rules.repeat(rules.bytes(" "), 0, kMostIndent),
               tabs = rules.repeat(rules.bytes("\t"), 0, kMostTabs);
  space_ = rules.optional(rules.bytes(" "));
  gap_ = rules.choice({space_, rules.sequence({rules.bytes("\n"), rules.choice({spaces, tabs})})});
  comma_ = rules.sequence({rules.bytes(","), gap_});
  colon_ = rules.sequence({rules.bytes(":"), space_});
  free_char_ = make_free_char(rules);
  fixed_char_ = write_chars_in_json(rules, CharSet::all());
}

ExprId JsonText::object_of(ExprId members) const {
  return rules_.sequence({rules_.bytes("{"), gap_, members, rules_.bytes("}")});
}

ExprId JsonText::array_of(ExprId items) const {
  return rules_.sequence({rules_.bytes("["), gap_, items, rules_.bytes("]")});
}

ExprId JsonText::array_of(std::span<const ExprId> first, std::optional<ExprId> others, int least_items,
                          int most_items) {
  const int num_first = static_cast<int>(first.size());
  if (!others) most_items = most_items == kNoLimit ? num_first : std::min(most_items, num_first);
  if (most_items != kNoLimit && most_items < least_items) return nothing();
  if (most_items == 0) return array_of(rules_.empty());
  // After i items, from the last backwards: what may follow.
  const int listed = most_items == kNoLimit ? num_first : std::min(num_first, most_items);
  ExprId after = rules_.empty();
  if (others && listed == num_first) {
    const int done = std::max(1, num_first);
    const int most = most_items == kNoLimit ? kNoLimit : most_items - done;
    after = rules_.repeat(rules_.sequence({comma_, *others}), std::max(0, least_items - done), most);
  }
  for (int i = listed - 1; i >= 1; --i) {
    const ExprId next = rules_.sequence({comma_, first[static_cast<std::size_t>(i)], after});
    after = least_items > i ? next : rules_.optional(next);
  }
  const ExprId items = rules_.sequence({num_first > 0 ? first[0] : *others, after, gap_});
  return array_of(least_items > 0 ? items : rules_.optional(items));
}

// From the last member backwards, what may stand from member i on: `name`, after a quote that opens a name; `more`,
// after a member. Each is shared by all that lead there, so the whole is linear in the number of members.
ExprId JsonText::object_of(std::span<const Member> members, std::optional<ExprId> other) {
  const ExprId quote = rules_.bytes("\""), next = rules_.sequence({comma_, quote});
  ExprId name = nothing(), more = gap_;
  if (other) {
    more = rules_.sequence({rules_.repeat(rules_.sequence({next, *other}), 0, kNoLimit), gap_});
    name = rules_.sequence({*other, more});
  }
  bool may_end = true;
  std::vector<ExprId> chain;
  for (std::size_t i = members.size(); i-- > 0;) {
    const ExprId here = rules_.sequence({members[i].text, more});
    name = members[i].required ? here : rules_.choice({here, name});
    may_end = may_end && !members[i].required;
    more = rules_.sequence({next, name});
    if (may_end) more = rules_.choice({more, gap_});
    chain.push_back(more);
  }
  const ExprId all = rules_.sequence({quote, name});
  chain.push_back(may_end ? rules_.optional(all) : all);
  return object_of(rules_.last_of(chain));
}

ExprId JsonText::any_object() {
  const ExprId member = rules_.sequence({string(0, kNoLimit), colon_, any_value()});
  const ExprId more = rules_.repeat(rules_.sequence({comma_, member}), 0, kNoLimit);
  return object_of(rules_.optional(rules_.sequence({member, more, gap_})));
}

ExprId JsonText::any_array() {
  const ExprId more = rules_.repeat(rules_.sequence({comma_, any_value()}), 0, kNoLimit);
  return array_of(rules_.optional(rules_.sequence({any_value(), more, gap_})));
}

ExprId JsonText::any_value() {
  if (!any_value_) {
    any_value_ = rules_.add_rule("any JSON value");
    const ExprId object = any_object(), array = any_array();
    rules_.define(*any_value_, rules_.choice({object, array, string(0, kNoLimit), number(), rules_.bytes("true"),
                                              rules_.bytes("false"), rules_.bytes("null")}));
  }
  return rules_.call(*any_value_);
}

ExprId JsonText::quoted(ExprId chars) { return rules_.sequence({rules_.bytes("\""), chars, rules_.bytes("\"")}); }

ExprId JsonText::string(int least_chars, int most_chars) {
  return quoted(rules_.repeat(free_char_, least_chars, most_chars));
}

ExprId JsonText::fixed_chars(int least_chars, int most_chars) {
  return rules_.repeat(fixed_char_, least_chars, most_chars);
}

ExprId JsonText::one_of_digits(char low, char high) {
  return rules_.chars(CharSet(static_cast<char32_t>(low), static_cast<char32_t>(high)));
}

ExprId JsonText::digits(int least, int most) { return rules_.repeat(one_of_digits('0', '9'), least, most); }

// Numbers of as many digits as both, from low to high.
ExprId JsonText::same_length(std::string_view low, std::string_view high) {
  if (low.empty()) return rules_.empty();
  const auto rest = static_cast<int>(low.size()) - 1;
  const auto all_are = [](std::string_view text, char c) {
    return text.find_first_not_of(c) == std::string_view::npos;
  };
  if (all_are(low.substr(1), '0') && all_are(high.substr(1), '9')) {
    return rules_.sequence({one_of_digits(low[0], high[0]), digits(rest, rest)});
  }
  if (low[0] == high[0])
    return rules_.sequence({rules_.bytes(low.substr(0, 1)), same_length(low.substr(1), high.substr(1))});
  const std::string zeros(low.size() - 1, '0'), nines(low.size() - 1, '9');
  std::vector<ExprId> parts = {
      rules_.sequence({rules_.bytes(low.substr(0, 1)), same_length(low.substr(1), nines)}),
      rules_.sequence({rules_.bytes(high.substr(0, 1)), same_length(zeros, high.substr(1))}),
  };
  if (high[0] - low[0] > 1) {
    parts.push_back(rules_.sequence(
        {one_of_digits(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)), digits(rest, rest)}));
  }
  return rules_.choice(parts);
}

ExprId JsonText::natural(std::uint64_t low, std::uint64_t high) {
  const std::string first = fmt::format("{}", low), last = fmt::format("{}", high);
  std::vector<ExprId> lengths;
  for (std::size_t length = first.size(); low <= high && length <= last.size(); ++length) {
    std::string least(length, '0');
    least[0] = '1';
    const std::string most(length, '9');
    lengths.push_back(same_length(length == first.size() ? first : least, length == last.size() ? last : most));
  }
  return rules_.choice(lengths);
}

ExprId JsonText::integer(std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  constexpr std::int64_t kMost = 999'999'999'999'999'999;
  const std::int64_t least = std::max(low.value_or(-kMost), -kMost), most = std::min(high.value_or(kMost), kMost);
  std::vector<ExprId> signs;
  if (most >= 0 && least <= most) {
    signs.push_back(
        natural(static_cast<std::uint64_t>(std::max<std::int64_t>(least, 0)), static_cast<std::uint64_t>(most)));
  }
  if (least < 0 && least <= most) {
    const auto nearest = static_cast<std::uint64_t>(std::max<std::int64_t>(-most, 1));
    signs.push_back(rules_.sequence({rules_.bytes("-"), natural(nearest, static_cast<std::uint64_t>(-least))}));
  }
  return rules_.choice(signs);
}

ExprId JsonText::number() {
  if (!number_) {
    const ExprId whole =
        rules_.choice({rules_.bytes("0"), rules_.sequence({one_of_digits('1', '9'), digits(0, kIntegerDigits - 1)})});
    const ExprId fraction = rules_.sequence({rules_.bytes("."), digits(1, kFractionDigits)});
    const ExprId exponent =
        rules_.sequence({rules_.chars(set_of("eE")), rules_.optional(rules_.chars(set_of("+-"))),
                         rules_.choice({digits(1, 2), rules_.sequence({one_of_digits('1', '2'), digits(2, 2)})})});
    number_ = rules_.sequence(
        {rules_.optional(rules_.bytes("-")), whole, rules_.optional(fraction), rules_.optional(exponent)});
  }
  return *number_;
}

// Numbers from low to high, both at or above zero; no high: as far as numbers go.
ExprId JsonText::above_and_below(std::optional<Bound> low, std::optional<Bound> high, int fraction_digits) {
  const ExprId zeros = rules_.repeat(rules_.bytes("0"), 0, fraction_digits - 1);
  const ExprId any_fraction = rules_.optional(rules_.sequence({rules_.bytes("."), digits(1, fraction_digits)}));
  const ExprId zero_fraction = rules_.optional(rules_.sequence({rules_.bytes(".0"), zeros}));
  std::int64_t first = low ? low->value : 0;
  const std::int64_t end = high ? high->value : 999'999'999'999'999'999;  // whole parts below it take any fraction
  std::vector<ExprId> parts;
  if (low && !low->included && first < end) {
    std::vector<ExprId> some_digit;  // a fraction that is not zero
    for (int i = 0; i < fraction_digits; ++i) {
      some_digit.push_back(rules_.sequence(
          {rules_.repeat(rules_.bytes("0"), i, i), one_of_digits('1', '9'), digits(0, fraction_digits - 1 - i)}));
    }
    parts.push_back(rules_.sequence({natural(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(first)),
                                     rules_.bytes("."), rules_.choice(some_digit)}));
    ++first;
  }
  if (first < end) {
    parts.push_back(rules_.sequence(
        {natural(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(end - 1)), any_fraction}));
  }
  const bool end_fits = high && high->included && (!low || low->value < end || low->included);
  if (end_fits && (!low || low->value <= end)) {
    parts.push_back(
        rules_.sequence({natural(static_cast<std::uint64_t>(end), static_cast<std::uint64_t>(end)), zero_fraction}));
  }
  return rules_.choice(parts);
}

ExprId JsonText::number(std::optional<Bound> low, std::optional<Bound> high) {
  if (!low && !high) return number();
  std::size_t bound_digits = 1;
  for (const auto& bound : {low, high}) {
    if (bound) bound_digits = std::max(bound_digits, fmt::format("{}", std::abs(bound->value)).size());
  }
  CHECK(bound_digits < kBoundedDigits);
  const int fraction_digits = kBoundedDigits - static_cast<int>(bound_digits);
  const auto mirrored = [](const std::optional<Bound>& bound) {
    return bound ? std::optional(Bound{-bound->value, bound->included}) : std::nullopt;
  };
  constexpr Bound kZero{0, true};
  std::vector<ExprId> signs;
  if (!high || high->value >= 0) {
    signs.push_back(above_and_below(low && low->value >= 0 ? low : std::optional(kZero), high, fraction_digits));
  }
  if (!low || low->value < 0) {
    const std::optional<Bound> nearest = high && high->value < 0 ? mirrored(high) : std::optional(Bound{0, false});
    signs.push_back(rules_.sequence({rules_.bytes("-"), above_and_below(nearest, mirrored(low), fraction_digits)}));
  }
  return rules_.choice(signs);
}

ExprId JsonText::value(const json::Value& value) {
  std::vector<ExprId> parts;
  if (value.is_string()) return quoted(rules_.bytes(fixed_spelling(value.get_string())));
  if (!value.is_array() && !value.is_object()) return rules_.bytes(to_json(value));
  const auto separate = [&] {
    if (!parts.empty()) parts.push_back(comma_);
  };
  if (value.is_array()) {
    for (const json::Value& each : value.get_array()) {
      separate();
      parts.push_back(this->value(each));
    }
  } else {
    for (const auto& member : value.get_object()) {
      separate();
      parts.insert(parts.end(), {this->value(json::Value(member.key())), colon_, this->value(member.value())});
    }
  }
  if (!parts.empty()) parts.push_back(gap_);
  return value.is_array() ? array_of(rules_.sequence(parts)) : object_of(rules_.sequence(parts));
}

}  // namespace rondo::grammar
