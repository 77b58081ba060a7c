#include "text/jinja/lexer.h"

#include <algorithm>
#include <charconv>

#include "text/jinja/heap.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_word(char32_t c) { return c == '_' || is_alnum(c); }
bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_plain_newlines(source)) {}
  std::vector<Token> run();

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool starts(std::string_view s) const { return std::string_view(source_).substr(at_).starts_with(s); }
  void go_to(std::size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    line_starting_ = end > 0 && end > at_ ? source_[end - 1] == '\n' : line_starting_;
    at_ = end;
  }
  std::size_t after_spaces(std::size_t from) const;
  void push(TokenKind kind, std::string text = {}) { tokens_.push_back({kind, line_, std::move(text)}); }

  void data(std::size_t end, char sign, bool is_variable);
  bool raw_block(std::size_t tag);
  std::size_t end_of_tag(std::size_t from, std::string_view close, bool trims_newline) const;
  void comment();
  void inside(std::string_view close, TokenKind end_kind);
  bool close_tag(std::string_view close, TokenKind end_kind);
  void token();
  bool number();
  std::size_t digits(std::size_t from) const;
  void name();
  void string();
  void operator_();
  void escape(std::string_view body, std::size_t& i, std::string& out) const;

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last match ended a line
  std::string open_;           // brackets waiting for their partner
  std::vector<Token> tokens_;
};

std::size_t Lexer::after_spaces(std::size_t from) const {
  while (from < source_.size() && is_space(decode_char(source_, from))) from += char_bytes(source_[from]);
  return from;
}

// Text up to the tag at `end`, stripped as the tag's sign asks.
void Lexer::data(std::size_t end, char sign, bool is_variable) {
  std::string_view text = std::string_view(source_).substr(at_, end - at_);
  if (sign == '-') {
    while (!text.empty()) {
      std::size_t last = text.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      if (!is_space(decode_char(text, last))) break;
      text = text.substr(0, last);
    }
  } else if (sign != '+' && !is_variable) {
    const std::size_t newline = text.rfind('\n');
    const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if ((line_begin > 0 || line_starting_) && after_spaces(at_ + line_begin) >= end) text = text.substr(0, line_begin);
  }
  if (!text.empty()) push(TokenKind::Data, std::string(text));
  go_to(end);
}

// Where a tag that closes at `from` ends: -%} takes the white space behind it, %} a newline if it trims.
// npos when there is no closing there.
std::size_t Lexer::end_of_tag(std::size_t from, std::string_view close, bool trims_newline) const {
  const std::string_view rest = std::string_view(source_).substr(std::min(from, source_.size()));
  if (rest.starts_with(close)) {
    const std::size_t end = from + close.size();
    return trims_newline && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }
  if (rest.size() <= close.size() || !rest.substr(1).starts_with(close)) return std::string::npos;
  if (rest[0] == '-') return after_spaces(from + 1 + close.size());
  if (rest[0] == '+' && trims_newline) return from + 1 + close.size();
  return std::string::npos;
}

// {% raw %} at `tag`: its content as data. False when the tag is another.
bool Lexer::raw_block(std::size_t tag) {
  std::size_t p = tag + 2;
  char sign = '\0';
  if (p < source_.size() && (source_[p] == '-' || source_[p] == '+')) sign = source_[p++];
  p = after_spaces(p);
  if (std::string_view(source_).substr(p, 3) != "raw") return false;
  p = after_spaces(p + 3);
  if (source_.compare(p, 3, "-%}") == 0) {
    p = after_spaces(p + 3);
  } else if (source_.compare(p, 2, "%}") == 0) {
    p += 2;
  } else {
    return false;
  }
  data(tag, sign, false);
  go_to(p);
  if (at_ >= source_.size()) return true;  // jinja2 lets an empty raw block end with the template
  for (std::size_t end = source_.find("{%", at_); end != std::string::npos; end = source_.find("{%", end + 1)) {
    std::size_t q = end + 2;
    char end_sign = '\0';
    if (q < source_.size() && (source_[q] == '-' || source_[q] == '+')) end_sign = source_[q++];
    q = after_spaces(q);
    if (std::string_view(source_).substr(q, 6) != "endraw") continue;
    const std::size_t tag_end = end_of_tag(after_spaces(q + 6), "%}", true);
    if (tag_end == std::string::npos) continue;
    data(end, end_sign, false);
    go_to(tag_end);
    return true;
  }
  fault_at(line_, "Missing end of raw directive");
}

void Lexer::comment() {
  if (at_ >= source_.size()) return;  // jinja2 lets an empty comment end with the template
  for (std::size_t p = at_; p < source_.size(); ++p) {
    const std::size_t end = end_of_tag(p, "#}", true);
    if (end == std::string::npos) continue;
    go_to(end);
    return;
  }
  fault_at(line_, "Missing end of comment tag");
}

bool Lexer::close_tag(std::string_view close, TokenKind end_kind) {
  if (!open_.empty()) return false;
  const std::size_t end = end_of_tag(at_, close, end_kind == TokenKind::BlockEnd);
  if (end == std::string::npos) return false;
  push(end_kind);
  go_to(end);
  return true;
}

void Lexer::inside(std::string_view close, TokenKind end_kind) {
  open_.clear();
  while (!close_tag(close, end_kind)) {
    if (at_ >= source_.size()) return;  // the parser sees End where it wants the tag's end
    const std::size_t next = after_spaces(at_);
    if (next > at_) {
      go_to(next);
    } else {
      token();
    }
  }
}

void Lexer::token() {
  if (number()) return;
  const char c = peek();
  if (is_word(decode_char(source_, at_))) return name();
  if (c == '\'' || c == '"') return string();
  operator_();
}

// Digits, single underscores between them; 0 when there is none at `from`.
std::size_t Lexer::digits(std::size_t from) const {
  std::size_t p = from;
  while (p < source_.size()) {
    if (is_ascii_digit(source_[p])) {
      ++p;
    } else if (source_[p] == '_' && p > from && p + 1 < source_.size() && is_ascii_digit(source_[p + 1])) {
      ++p;
    } else {
      break;
    }
  }
  return p - from;
}

bool Lexer::number() {
  if (!is_ascii_digit(peek())) return false;
  const auto plain = [&](std::size_t from, std::size_t end) {
    std::string text = source_.substr(from, end - from);
    std::erase(text, '_');
    return text;
  };
  const std::size_t whole = at_ + digits(at_);
  std::size_t end = whole;
  if (at_ == 0 || source_[at_ - 1] != '.') {  // x.0.1 is two subscripts
    if (end < source_.size() && source_[end] == '.' && digits(end + 1) > 0) end += 1 + digits(end + 1);
    if (end < source_.size() && (source_[end] | 0x20) == 'e') {
      std::size_t p = end + 1;
      if (p < source_.size() && (source_[p] == '+' || source_[p] == '-')) ++p;
      if (const std::size_t n = digits(p); n > 0) end = p + n;
    }
  }
  if (end > whole) {
    const std::string text = plain(at_, end);
    push(TokenKind::Float);
    const auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), tokens_.back().real);
    if (ec != std::errc()) fault_at(line_, "the number " + text + " is out of range");
    go_to(end);
    return true;
  }
  int base = 10;
  std::size_t from = at_;
  const char letter = static_cast<char>(peek(1) | 0x20);
  if (peek() == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : 2;
    const std::string_view allowed = std::string_view("0123456789abcdefABCDEF").substr(0, base == 16 ? 22 : base);
    std::size_t p = at_ + 2;
    while (p < source_.size() &&
           (allowed.find(source_[p]) != std::string_view::npos ||
            (source_[p] == '_' && p + 1 < source_.size() && allowed.find(source_[p + 1]) != std::string_view::npos))) {
      ++p;
    }
    if (p > at_ + 2) {
      from = at_ + 2;
      end = p;
    } else {
      base = 10;
      end = at_ + 1;
    }
  } else if (peek() == '0') {  // only zeros may follow a leading zero
    end = at_ + 1;
    while (end < whole && (source_[end] == '0' || source_[end] == '_')) ++end;
  }
  const std::string text = plain(from, end);
  push(TokenKind::Integer);
  const auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), tokens_.back().integer, base);
  if (ec != std::errc()) fault_at(line_, "the integer " + text + " does not fit in 64 bits");
  go_to(end);
  return true;
}

void Lexer::name() {
  std::size_t end = at_;
  while (end < source_.size() && is_word(decode_char(source_, end))) end += char_bytes(source_[end]);
  const char32_t first = decode_char(source_, at_);
  if (first != '_' && !is_alpha(first)) fault_at(line_, "Invalid character in identifier");
  push(TokenKind::Name, source_.substr(at_, end - at_));
  go_to(end);
}

void Lexer::string() {
  const char quote = peek();
  std::size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fault_at(line_, std::string("unexpected char '") + (quote == '\'' ? "\\'" : "\"") + "'");
  const std::string_view body = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
  std::string out;
  for (std::size_t i = 0; i < body.size();) {
    if (body[i] == '\\') {
      escape(body, i, out);
    } else {
      out.push_back(body[i++]);
    }
  }
  push(TokenKind::String, std::move(out));
  go_to(end + 1);
}

// A backslash at body[i]: Python's unicode-escape, which keeps the backslash of an escape it does not know.
void Lexer::escape(std::string_view body, std::size_t& i, std::string& out) const {
  const char c = i + 1 < body.size() ? body[i + 1] : '\\';
  i += 2;
  const auto code_point = [&](std::size_t num_digits) {
    std::uint32_t value = 0;
    const std::string_view hex = body.substr(std::min(i, body.size()), num_digits);
    const auto [p, ec] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (ec != std::errc() || p != hex.data() + num_digits) fault_at(line_, "truncated escape in a string");
    if (value > 0x10FFFF) fault_at(line_, "illegal Unicode character");
    if (value >= 0xD800 && value < 0xE000) fault_at(line_, "a surrogate escape in a string is not supported");
    i += num_digits;
    append_char(out, value);
  };
  switch (c) {
    case '\n': return;
    case '\\':
    case '\'':
    case '"': out.push_back(c); return;
    case 'a': out.push_back('\a'); return;
    case 'b': out.push_back('\b'); return;
    case 'f': out.push_back('\f'); return;
    case 'n': out.push_back('\n'); return;
    case 'r': out.push_back('\r'); return;
    case 't': out.push_back('\t'); return;
    case 'v': out.push_back('\v'); return;
    case 'x': return code_point(2);
    case 'u': return code_point(4);
    case 'U': return code_point(8);
    case 'N': fault_at(line_, "a \\N escape in a string is not supported");
    default: break;
  }
  if (c >= '0' && c <= '7') {
    char32_t value = 0;
    for (--i; i < body.size() && body[i] >= '0' && body[i] <= '7' && value < 64; ++i) {
      value = value * 8 + static_cast<char32_t>(body[i] - '0');
    }
    append_char(out, value);
    return;
  }
  out.push_back('\\');
  if (static_cast<unsigned char>(c) < 0x80) {
    out.push_back(c);
    return;
  }
  // jinja2 first turns what is not ASCII into escapes; behind a backslash the escape's own backslash is then literal.
  const char32_t wide = decode_char(body, i - 1);
  i += char_bytes(c) - 1;
  char hex[16];
  const auto [p, ec] = std::to_chars(hex, hex + sizeof(hex), static_cast<std::uint32_t>(wide), 16);
  const std::string digits_text(hex, p);
  const std::size_t width = wide < 0x100 ? 2 : wide < 0x10000 ? 4 : 8;
  out += wide < 0x100 ? 'x' : wide < 0x10000 ? 'u' : 'U';
  out += std::string(width - digits_text.size(), '0') + digits_text;
}

void Lexer::operator_() {
  static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
  for (const std::string_view op : kOperators) {
    if (!starts(op)) continue;
    const char c = op[0];
    if (c == '(' || c == '[' || c == '{') open_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (open_.empty()) fault_at(line_, "unexpected '" + std::string(op) + "'");
      if (open_.back() != c) {
        fault_at(line_, "unexpected '" + std::string(op) + "', expected '" + std::string(1, open_.back()) + "'");
      }
      open_.pop_back();
    }
    push(TokenKind::Operator, std::string(op));
    go_to(at_ + op.size());
    return;
  }
  fault_at(line_, "unexpected char '" + source_.substr(at_, char_bytes(peek())) + "' at " + std::to_string(at_));
}

std::vector<Token> Lexer::run() {
  while (at_ < source_.size()) {
    std::size_t tag = source_.find('{', at_);
    while (tag != std::string::npos &&
           (tag + 1 >= source_.size() ||
            (source_[tag + 1] != '%' && source_[tag + 1] != '{' && source_[tag + 1] != '#'))) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string::npos) {
      push(TokenKind::Data, source_.substr(at_));
      go_to(source_.size());
      break;
    }
    const char type = source_[tag + 1];
    if (type == '%' && raw_block(tag)) continue;
    const char next = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    data(tag, sign, type == '{');
    if (type != '#') push(type == '%' ? TokenKind::BlockBegin : TokenKind::VariableBegin);
    go_to(tag + (sign == '\0' ? 2 : 3));
    if (type == '#') {
      comment();
    } else if (type == '%') {
      inside("%}", TokenKind::BlockEnd);
    } else {
      inside("}}", TokenKind::VariableEnd);
    }
  }
  push(TokenKind::End);
  return std::move(tokens_);
}

}  // namespace

std::vector<Token> lex(std::string_view source) { return Lexer(source).run(); }

}  // namespace rondo::jinja
