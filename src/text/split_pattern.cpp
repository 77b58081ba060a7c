#include "text/split_pattern.h"

#include <fmt/format.h>

#include "text/code_points.h"
#include "text/utf8.h"

namespace rondo {

namespace {

constexpr int kMaxDepth = 32;
constexpr int kMaxRepeat = 1000;
constexpr std::size_t kMaxPatternBytes = 16384;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_punctuation(char c) { return c > ' ' && c < 0x7F && !is_digit(c) && !is_letter(c); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class PatternTranslator {
 public:
  explicit PatternTranslator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> translate() {
    if (pattern_.size() > kMaxPatternBytes) return unsupported("a pattern this long");
    if (!is_utf8(pattern_)) return unsupported("a pattern that is not UTF-8");
    TRY_VOID(alternatives(0));
    if (pos_ < pattern_.size()) return unsupported("an unmatched )");
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> unsupported(std::string_view what) const {
    return failure(ErrorCode::Unsupported, fmt::format("split pattern, byte {}: {} is not supported", pos_, what));
  }
  bool at(std::string_view text) const { return pattern_.substr(pos_).starts_with(text); }
  bool take(std::string_view text) {
    if (!at(text)) return false;
    pos_ += text.size();
    return true;
  }

  Result<void> alternatives(int depth) {
    while (pos_ < pattern_.size() && pattern_[pos_] != ')') {
      if (take("|")) {
        out_ += '|';
      } else if (at("(")) {
        TRY_VOID(group(depth));
      } else {
        TRY_VOID(single());
        TRY_VOID(quantifier());
      }
    }
    return {};
  }

  Result<void> group(int depth) {
    if (depth == kMaxDepth) return unsupported("deeper nesting");
    const bool looks_ahead = at("(?=") || at("(?!");
    const bool was_caseless = caseless_;
    std::string_view opening;
    for (const std::string_view known : {"(?:", "(?i:", "(?=", "(?!"}) {
      if (take(known)) opening = known;
    }
    if (opening.empty()) {
      if (at("(?") || at("(*")) return unsupported(fmt::format("the group '{}'", pattern_.substr(pos_, 4)));
      take("(");
      opening = "(";
    }
    if (opening == "(?i:") caseless_ = true;
    out_ += opening;
    TRY_VOID(alternatives(depth + 1));
    if (!take(")")) return unsupported("an unmatched (");
    out_ += ')';
    caseless_ = was_caseless;
    if (!looks_ahead && take("?")) out_ += '?';
    if (pos_ < pattern_.size() && std::string_view("?*+{").find(pattern_[pos_]) != std::string_view::npos) {
      return unsupported("a repeated group");
    }
    return {};
  }

  // One character, class or escape.
  Result<void> single() {
    if (at("[")) return char_class();
    if (at("\\")) return escape(InClass::No);
    const char c = pattern_[pos_];
    if (std::string_view("^$?*+{}]").find(c) != std::string_view::npos) return unsupported(fmt::format("a bare {}", c));
    return literal();
  }

  Result<void> literal() {
    const std::size_t begin = pos_;
    const char32_t code_point = next_code_point(pattern_, pos_);
    if (caseless_) {
      // The dialect lets one character match several here (\u00DF and ss); PCRE2 does not.
      if (code_point >= 0x80) return unsupported("a letter outside ASCII in (?i:");
      for (const std::string_view pair : {"ss", "ff", "fi", "fl", "st"}) {
        if (begin > 0 && (pattern_[begin - 1] | 0x20) == pair[0] && (pattern_[begin] | 0x20) == pair[1]) {
          return unsupported(fmt::format("{} in (?i:", pair));
        }
      }
    }
    out_ += pattern_.substr(begin, pos_ - begin);
    return {};
  }

  Result<void> quantifier() {
    if (pos_ == pattern_.size()) return {};
    const char c = pattern_[pos_];
    if (c == '{') return counted();
    if (c != '?' && c != '*' && c != '+') return {};
    out_ += pattern_[pos_++];
    if (at("?") || at("+")) out_ += pattern_[pos_++];
    return no_second_quantifier();
  }

  Result<void> counted() {
    take("{");
    TRY(const int low, number());
    std::string text = fmt::format("{{{}", low);
    if (take(",")) {
      text += ',';
      if (!at("}")) {
        TRY(const int high, number());
        if (high < low) return unsupported("a repetition with its bounds swapped");
        text += std::to_string(high);
      }
    }
    if (!take("}")) return unsupported("this repetition");
    out_ += text + '}';
    return no_second_quantifier();  // {n}? and {n}+ mean different things in the two dialects
  }

  Result<void> no_second_quantifier() const {
    if (pos_ < pattern_.size() && std::string_view("?*+{").find(pattern_[pos_]) != std::string_view::npos) {
      return unsupported("a repetition of a repetition");
    }
    return {};
  }

  Result<int> number() {
    int value = 0;
    const std::size_t begin = pos_;
    while (pos_ < pattern_.size() && is_digit(pattern_[pos_]) && value <= kMaxRepeat) {
      value = value * 10 + (pattern_[pos_++] - '0');
    }
    if (begin == pos_) return unsupported("a repetition without a number");
    if (value > kMaxRepeat) return unsupported(fmt::format("a repetition of more than {}", kMaxRepeat));
    return value;
  }

  Result<void> char_class() {
    if (caseless_) return unsupported("a class in (?i:");
    take("[");
    out_ += take("^") ? "[^" : "[";
    if (at("]")) return unsupported("an empty class");
    while (!at("]")) {
      if (pos_ == pattern_.size()) return unsupported("an unmatched [");
      if (at("[")) return unsupported("a class in a class");
      if (at("&&")) return unsupported("&& in a class");
      if (at("\\")) {
        TRY_VOID(escape(InClass::Yes));
      } else if (at("-")) {
        TRY_VOID(class_hyphen());
      } else {
        const std::size_t begin = pos_;
        next_code_point(pattern_, pos_);
        out_ += pattern_.substr(begin, pos_ - begin);
        last_is_character_ = true;
      }
    }
    take("]");
    out_ += ']';
    return {};
  }

  // A hyphen makes a range only between two characters; elsewhere the dialects differ, so it must stand first or last.
  Result<void> class_hyphen() {
    take("-");
    const bool is_first = out_.back() == '[' || out_.ends_with("[^");
    if (is_first || at("]")) {
      out_ += "\\-";
      last_is_character_ = false;
      return {};
    }
    if (!last_is_character_ || at("[") || at("-")) return unsupported("a - here in a class");
    out_ += '-';
    if (at("\\")) {
      TRY_VOID(escape(InClass::Yes));
      if (!last_is_character_) return unsupported("a range that ends in a class");
    } else {
      const std::size_t begin = pos_;
      next_code_point(pattern_, pos_);
      out_ += pattern_.substr(begin, pos_ - begin);
    }
    last_is_character_ = false;
    return {};
  }

  enum class InClass { No, Yes };

  Result<void> escape(InClass in_class) {
    if (pos_ + 1 == pattern_.size()) return unsupported("a \\ at the end");
    const char c = pattern_[pos_ + 1];
    last_is_character_ = true;
    if (is_punctuation(c) || c == ' ' || c == 'r' || c == 'n' || c == 't' || c == 'f') {
      out_ += c == ' ' ? std::string(" ") : std::string(pattern_.substr(pos_, 2));
      pos_ += 2;
      return {};
    }
    if (c == 'x' || c == 'u') return hex();
    last_is_character_ = false;
    // PCRE2's own \s knows U+180E as a space, which the dialect does not.
    if (take("\\s")) return out_ += "\\p{White_Space}", Result<void>();
    if (take("\\S")) return out_ += "\\P{White_Space}", Result<void>();
    if (take("\\d")) return category("Nd", false, in_class);
    if (c == 'p' || c == 'P') return property(in_class);
    return unsupported(fmt::format("\\{}", c));
  }

  Result<void> hex() {
    const bool braced = at("\\x{");
    if (!braced && pattern_[pos_ + 1] == 'x') return unsupported("\\x without braces");
    pos_ += braced ? 3 : 2;
    std::string digits;
    while (pos_ < pattern_.size() && is_hex(pattern_[pos_]) && digits.size() < (braced ? 6U : 4U)) {
      digits += pattern_[pos_++];
    }
    if (digits.empty() || (!braced && digits.size() < 4)) return unsupported("an unfinished code point");
    if (braced && !take("}")) return unsupported("an unfinished code point");
    out_ += "\\x{" + digits + '}';
    return {};
  }

  Result<void> property(InClass in_class) {
    bool negated = pattern_[pos_ + 1] == 'P';
    pos_ += 2;
    if (!take("{")) return unsupported("\\p without braces");
    if (take("^")) negated = !negated;
    const std::size_t end = pattern_.find('}', pos_);
    const std::string_view name = pattern_.substr(pos_, end == std::string_view::npos ? 0 : end - pos_);
    constexpr std::string_view kCategories =
        " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf ";
    if (name.empty() || kCategories.find(fmt::format(" {} ", name)) == std::string_view::npos) {
      return unsupported(fmt::format("\\p{{{}}}", name));
    }
    pos_ = end + 1;
    return category(name, negated, in_class);
  }

  // \p{name}, with the code points that are newer than PCRE2's tables.
  Result<void> category(std::string_view name, bool negated, InClass in_class) {
    std::string members = fmt::format("\\p{{{}}}", name);
    for (const NewCodePoints& range : new_code_points()) {
      if (std::string_view(range.category, 2).starts_with(name)) {
        members += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<unsigned>(range.first),
                               static_cast<unsigned>(range.last));
      }
    }
    if (in_class == InClass::No) {
      out_ += (negated ? "[^" : "[") + members + ']';
    } else if (!negated) {
      out_ += members;
    } else {
      return unsupported(fmt::format("\\P{{{}}} in a class", name));
    }
    return {};
  }

  std::string_view pattern_;
  std::size_t pos_ = 0;
  std::string out_;
  bool caseless_ = false;
  bool last_is_character_ = false;  // in a class: whether a range may begin at what was read last
};

}  // namespace

Result<std::string> to_pcre2(std::string_view pattern) { return PatternTranslator(pattern).translate(); }

}  // namespace rondo
