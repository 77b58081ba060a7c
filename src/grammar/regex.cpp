#include "grammar/regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "grammar/char_classes.h"
#include "text/utf8.h"

namespace rondo::grammar {

namespace {

constexpr int kMostDepth = 100;      // of groups
constexpr int kMostTimes = 100'000;  // a count beyond this is a slip; the budget of states is met sooner

class RegexReader {
 public:
  RegexReader(Rules& rules, std::string_view pattern, RegexMatch match, WriteChars write)
      : rules_(rules), text_(pattern), match_(match), write_(write) {}

  Result<ExprId> read() {
    if (!is_utf8(text_)) return failure(ErrorCode::InvalidArgument, "the pattern is not UTF-8");
    TRY(const ExprId expr, read_top());
    if (!at_end()) return wrong("an unmatched )");
    return expr;
  }

 private:
  bool at_end() const { return pos_ == text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[pos_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++pos_;
    return true;
  }
  tl::unexpected<Error> wrong(std::string_view what) const {
    return failure(ErrorCode::InvalidArgument, fmt::format("pattern, at byte {}: {}", pos_, what));
  }
  tl::unexpected<Error> unsupported(std::string_view what) const {
    return failure(ErrorCode::Unsupported, fmt::format("pattern, at byte {}: {} not supported", pos_, what));
  }

  // Alternatives of the whole pattern, each of which may say ^ first and $ last.
  Result<ExprId> read_top() {
    std::vector<ExprId> alternatives;
    const ExprId anything = rules_.repeat(write_(rules_, CharSet::all()), 0, kNoLimit);
    do {
      while (take('^')) from_begin_ = true;
      TRY(const ExprId middle, read_sequence(0));
      const bool is_whole = match_ == RegexMatch::Whole;
      alternatives.push_back(rules_.sequence({is_whole || from_begin_ ? rules_.empty() : anything, middle,
                                              is_whole || to_end_ ? rules_.empty() : anything}));
      from_begin_ = to_end_ = false;
    } while (take('|'));
    return rules_.choice(alternatives);
  }

  Result<ExprId> read_alternatives(int depth) {
    std::vector<ExprId> alternatives;
    do {
      TRY(const ExprId sequence, read_sequence(depth));
      alternatives.push_back(sequence);
    } while (take('|'));
    return rules_.choice(alternatives);
  }

  Result<ExprId> read_sequence(int depth) {
    std::vector<ExprId> parts;
    while (!at_end() && !next_is('|') && !next_is(')')) {
      if (next_is('$')) {
        TRY_VOID(read_end_anchor(depth));
        break;
      }
      TRY(const ExprId atom, read_atom(depth));
      TRY(const ExprId repeated, read_repeats(atom));
      parts.push_back(repeated);
    }
    return rules_.sequence(parts);
  }

  Result<void> read_end_anchor(int depth) {
    const std::size_t at = pos_;
    while (take('$')) {
    }
    if (depth == 0 && (at_end() || next_is('|'))) {
      to_end_ = true;
      return {};
    }
    pos_ = at;
    return unsupported("$ is, except where the text ends,");
  }

  Result<ExprId> read_atom(int depth) {
    const char c = text_[pos_];
    switch (c) {
      case '(': return read_group(depth);
      case '[': return read_class();
      case '.': ++pos_; return write_(rules_, not_line_ends());
      case '\\': return read_escape();
      case '*':
      case '+':
      case '?': return wrong("nothing to repeat");
      case '^': return unsupported("^ is, except where the text begins,");
      default: break;
    }
    if (c == '{' && count_follows()) return wrong("nothing to repeat");
    const char32_t code_point = next_code_point(text_, pos_);
    return write_(rules_, CharSet(code_point, code_point));
  }

  Result<ExprId> read_group(int depth) {
    if (depth == kMostDepth) return unsupported(fmt::format("groups nested deeper than {} are", kMostDepth));
    ++pos_;
    if (take('?')) TRY_VOID(read_group_kind());
    TRY(const ExprId inside, read_alternatives(depth + 1));
    if (!take(')')) return wrong("a group without its )");
    return inside;
  }

  Result<void> read_group_kind() {
    if (take(':')) return {};
    if (next_is('=') || next_is('!')) return unsupported("lookahead is");
    take('P');
    if (!take('<')) return unsupported("this kind of group, or flags, are");
    if (next_is('=') || next_is('!')) return unsupported("lookbehind is");
    while (!at_end() && !next_is('>')) ++pos_;
    if (!take('>')) return wrong("a group's name without its >");
    return {};
  }

  // Whether {m}, {m,} or {m,n} stands here; another { is a literal.
  bool count_follows() const {
    std::size_t at = pos_ + 1;
    const std::size_t first = at;
    const auto skip_digits = [&] {
      while (at < text_.size() && text_[at] >= '0' && text_[at] <= '9') ++at;
    };
    skip_digits();
    if (at == first) return false;
    if (at < text_.size() && text_[at] == ',') {
      ++at;
      skip_digits();
    }
    return at < text_.size() && text_[at] == '}';
  }

  int read_times() {
    int value = 0;
    while (!at_end() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      value = std::min(kMostTimes + 1, value * 10 + (text_[pos_++] - '0'));
    }
    return value;
  }

  Result<ExprId> read_repeats(ExprId atom) {
    for (int stacked = 0; !at_end(); ++stacked) {
      int low = 0, high = kNoLimit;
      if (take('*')) {
      } else if (take('+')) {
        low = 1;
      } else if (take('?')) {
        high = 1;
      } else if (next_is('{') && count_follows()) {
        ++pos_;
        low = high = read_times();
        if (take(',')) high = next_is('}') ? kNoLimit : read_times();
        take('}');
      } else {
        break;
      }
      if (stacked > 0) return wrong("nothing to repeat");
      if (low > kMostTimes || high > kMostTimes) return unsupported(fmt::format("more than {} times is", kMostTimes));
      if (high != kNoLimit && high < low) return wrong("a count whose end is before its beginning");
      take('?');  // lazy: which match is found first does not matter here
      atom = rules_.repeat(atom, low, high);
    }
    return atom;
  }

  Result<ExprId> read_escape() {
    ++pos_;
    if (at_end()) return wrong("a \\ at the end");
    if (const auto set = class_of_escape(text_[pos_])) {
      ++pos_;
      return write_(rules_, *set);
    }
    TRY(const char32_t code_point, read_escaped_char());
    return write_(rules_, CharSet(code_point, code_point));
  }

  // After the backslash.
  Result<char32_t> read_escaped_char() {
    const char c = text_[pos_];
    if (const auto found = char_of_escape(c)) {
      ++pos_;
      if (c == '0' && !at_end() && text_[pos_] >= '0' && text_[pos_] <= '9') return unsupported("octal escapes are");
      return *found;
    }
    if (c == 'x' || c == 'u') {
      ++pos_;
      return read_hex_escape(c);
    }
    if (c >= '1' && c <= '9') return unsupported("back references are");
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter) return unsupported(fmt::format("\\{} is", c));
    return next_code_point(text_, pos_);
  }

  Result<char32_t> read_hex_escape(char kind) {
    if (kind == 'u' && take('{')) {
      std::size_t digits = 0;
      while (pos_ + digits < text_.size() && text_[pos_ + digits] != '}') ++digits;
      const auto value = digits >= 1 && digits <= 6 ? read_hex(text_, pos_, digits) : std::nullopt;
      if (!value || *value > 0x10FFFF || !take('}')) return wrong("\\u{...} is not a code point");
      return *value;
    }
    const auto value = read_hex(text_, pos_, kind == 'x' ? 2 : 4);
    if (!value) return wrong(kind == 'x' ? "\\x takes two hexadecimal digits" : "\\u takes four hexadecimal digits");
    if (*value < 0xD800 || *value > 0xDFFF) return *value;
    std::optional<char32_t> low;
    if (*value < 0xDC00 && text_.substr(pos_, 2) == "\\u") {
      pos_ += 2;
      low = read_hex(text_, pos_, 4);
    }
    if (!low || *low < 0xDC00 || *low > 0xDFFF) return wrong("half of a surrogate pair is no character");
    return 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
  }

  Result<ExprId> read_class() {
    ++pos_;
    const bool inverted = take('^');
    CharSet set;
    for (int parts = 0; !next_is(']'); ++parts) {
      if (at_end()) return wrong("a [ without its ]");
      if (parts == kMostClassParts)
        return unsupported(fmt::format("a class of more than {} parts is", kMostClassParts));
      TRY(const CharSet first, read_class_part());
      const bool is_range = next_is('-') && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']';
      if (!is_range) {
        set.add(first);
        continue;
      }
      ++pos_;
      TRY(const CharSet last, read_class_part());
      const auto is_one = [](const CharSet& s) {
        return s.ranges().size() == 1 && s.ranges()[0].low == s.ranges()[0].high;
      };
      if (!is_one(first) || !is_one(last)) return wrong("a range between classes");
      if (last.ranges()[0].low < first.ranges()[0].low) return wrong("a range whose end is before its beginning");
      set.add(first.ranges()[0].low, last.ranges()[0].low);
    }
    ++pos_;
    return write_(rules_, inverted ? set.inverted() : set);
  }

  Result<CharSet> read_class_part() {
    if (!take('\\')) {
      const char32_t code_point = next_code_point(text_, pos_);
      return CharSet(code_point, code_point);
    }
    if (at_end()) return wrong("a \\ at the end");
    if (const auto set = class_of_escape(text_[pos_])) {
      ++pos_;
      return *set;
    }
    if (take('b')) return CharSet(U'\b', U'\b');
    TRY(const char32_t code_point, read_escaped_char());
    return CharSet(code_point, code_point);
  }

  Rules& rules_;
  std::string_view text_;
  RegexMatch match_;
  WriteChars write_;
  std::size_t pos_ = 0;
  bool from_begin_ = false, to_end_ = false;  // of the alternative being read
};

}  // namespace

ExprId write_chars_plainly(Rules& rules, const CharSet& set) { return rules.chars(set); }

Result<ExprId> read_regex(Rules& rules, std::string_view pattern, RegexMatch match, WriteChars write) {
  return RegexReader(rules, pattern, match, write).read();
}

}  // namespace rondo::grammar
