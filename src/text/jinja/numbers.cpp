// Python's int(), float() and round().
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && is_space(decode_char(text, 0))) text.remove_prefix(char_bytes(text[0]));
  while (!text.empty()) {
    std::size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!is_space(decode_char(text, last))) break;
    text = text.substr(0, last);
  }
  return text;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Underscores may stand singly between digits; false when one stands elsewhere.
bool drop_underscores(std::string_view text, bool (*is_part)(char), std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
    } else if (i == 0 || i + 1 == text.size() || !is_part(text[i - 1]) || !is_part(text[i + 1])) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) return std::nullopt;
  text = without_spaces(text);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  const char letter = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const std::int64_t prefix_base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    base = prefix_base;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
  } else if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  std::string digits;
  const auto is_alnum_char = [](char c) { return is_ascii_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); };
  if (!drop_underscores(text, is_alnum_char, digits) || digits.empty() || digits[0] == '-') return std::nullopt;
  if (is_negative) digits.insert(digits.begin(), '-');
  std::int64_t value = 0;
  const auto [p, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (p != digits.data() + digits.size()) return std::nullopt;
  if (ec == std::errc::result_out_of_range) fault("integer overflow: only 64-bit integers are supported");
  if (ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  std::string plain;
  if (!drop_underscores(without_spaces(text), is_ascii_digit, plain)) return std::nullopt;
  std::string_view body = plain;
  const bool is_negative = body.starts_with('-');
  if (is_negative || body.starts_with('+')) body.remove_prefix(1);
  std::string lower;
  for (const char c : body) lower.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  const double sign = is_negative ? -1.0 : 1.0;
  if (lower == "inf" || lower == "infinity") return sign * INFINITY;
  if (lower == "nan") return std::copysign(NAN, sign);
  if (lower.empty() || !(is_ascii_digit(lower[0]) || lower[0] == '.')) return std::nullopt;
  double value = 0;
  const auto [p, ec] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
  if (p != lower.data() + lower.size() || ec == std::errc::invalid_argument) return std::nullopt;
  if (ec == std::errc::result_out_of_range) value = std::strtod(lower.c_str(), nullptr);  // 0 or infinity, as Python
  return sign * value;
}

Value to_int(double value) {
  if (std::isnan(value)) fault("cannot convert float NaN to integer");
  if (std::isinf(value)) fault("cannot convert float infinity to integer");
  constexpr double kLimit = 9223372036854775808.0;
  if (value >= kLimit || value < -kLimit) fault("integer overflow: only 64-bit integers are supported");
  return Value::integer(static_cast<std::int64_t>(value));
}

namespace {

Value round_int(std::int64_t value, std::int64_t digits) {
  if (digits >= 0) return Value::integer(value);
  if (digits < -18) return Value::integer(0);
  std::int64_t unit = 1;
  for (std::int64_t i = digits; i < 0; ++i) unit *= 10;
  std::int64_t quotient = value / unit;
  const std::int64_t rest = value % unit < 0 ? -(value % unit) : value % unit;
  const bool up = rest > unit / 2 || (rest == unit / 2 && quotient % 2 != 0);  // ties to even
  if (up) quotient += value < 0 ? -1 : 1;
  std::int64_t result = 0;
  if (__builtin_mul_overflow(quotient, unit, &result)) fault("integer overflow: only 64-bit integers are supported");
  return Value::integer(result);
}

}  // namespace

Value round_to(const Value& value, std::int64_t digits) {
  if (value.is_undefined()) use_of_undefined(value);
  if (!value.is_number()) fault(std::string("type ") + type_name(value) + " doesn't define __round__ method");
  if (value.is_integral()) return round_int(value.as_int(), digits);
  if (!std::isfinite(value.f) || digits > 323) return value;
  if (digits < -308) return Value::real(std::copysign(0.0, value.f));
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return Value::real(std::nearbyint(value.f / unit) * unit);
  }
  // The C library rounds the exact binary value, ties to even, as Python does.
  char buffer[800];
  const int n = std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(digits), value.f);
  double rounded = value.f;
  std::from_chars(buffer, buffer + n, rounded);
  return Value::real(rounded);
}

}  // namespace rondo::jinja
