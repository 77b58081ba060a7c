// Python's format.format(...): fields, conversions, and the common part of the format specifications.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/methods.h"
#include "text/jinja/number_format.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

std::string magnitude(std::int64_t value, int base, bool upper) {
  auto rest = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const char* const digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[rest % static_cast<std::uint64_t>(base)]);
    rest /= static_cast<std::uint64_t>(base);
  } while (rest > 0);
  return out;
}

std::string float_digits(double value, char type, std::int64_t precision, bool alternate) {
  if (precision > kMaxPrecision) fault("a float's precision in a format is too large");
  const bool upper = type >= 'A' && type <= 'Z';
  if (std::isnan(value)) return upper ? "NAN" : "nan";
  if (std::isinf(value)) return upper ? "INF" : "inf";
  const std::string format = std::string(alternate ? "%#.*" : "%.*") + type;
  char buffer[1024];
  const int digits = precision < 0 ? 6 : static_cast<int>(precision);
  const int n = std::snprintf(buffer, sizeof(buffer), format.c_str(), digits, std::fabs(value));
  return {buffer, static_cast<std::size_t>(n)};
}

const Text* char_text(Heap& heap, std::int64_t code_point) {
  if (code_point < 0 || code_point > 0x10FFFF) fault("%c arg not in range(0x110000)");
  if (code_point >= 0xD800 && code_point < 0xE000) fault("a surrogate is not a character");
  std::string bytes;
  append_char(bytes, static_cast<char32_t>(code_point));
  return make_text(heap, bytes, true);
}

namespace {

struct Spec {
  const Text* fill = nullptr;
  char align = '\0';
  char sign = '\0';
  bool alternate = false;
  bool zero = false;
  char grouping = '\0';
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = '\0';
};

// [[fill]align][sign][#][0][width][grouping][.precision][type]
Spec parse_spec(Heap& heap, const Text& text) {
  Spec spec;
  std::size_t at = 0;
  const auto peek = [&](std::size_t i) { return i < text.size ? text.data[i] : '\0'; };
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const std::size_t first = text.size > 0 ? char_bytes(text.data[0]) : 0;
  if (text.size > 0 && is_align(peek(first))) {
    spec.fill = slice_text(heap, text, 0, first);
    spec.align = peek(first);
    at = first + 1;
  } else if (is_align(peek(0))) {
    spec.align = text.data[at++];
  }
  const auto number = [&](std::int64_t limit) {
    std::int64_t n = 0;
    for (; peek(at) >= '0' && peek(at) <= '9'; ++at) {
      n = n * 10 + (text.data[at] - '0');
      if (n > limit) fault("a width or precision in a format is too large");
    }
    return n;
  };
  if (peek(at) == '+' || peek(at) == '-' || peek(at) == ' ') spec.sign = text.data[at++];
  if (peek(at) == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek(at) == '0') {
    spec.zero = true;
    ++at;
  }
  spec.width = number(kMaxWidth);
  if (peek(at) == ',' || peek(at) == '_') spec.grouping = text.data[at++];
  if (peek(at) == '.') {
    ++at;
    if (!(peek(at) >= '0' && peek(at) <= '9')) fault("Format specifier missing precision");
    spec.precision = number(kMaxWidth);
  }
  if (at < text.size) spec.type = text.data[at++];
  if (at < text.size) fault("Invalid format specifier");
  return spec;
}

Value aligned(Heap& heap, const Spec& spec, const Text& text, char default_align) {
  const Text& fill = spec.fill != nullptr ? *spec.fill : *make_text(heap, " ");
  const char align = spec.align == '\0' ? default_align : spec.align;
  if (align != '^') return justify(heap, text, spec.width, fill, align == '<' ? 'l' : 'r');
  const std::int64_t pad = spec.width - static_cast<std::int64_t>(text.chars);
  if (pad <= 0) return Value::str(&text);
  TextBuilder out(heap);  // an odd space goes to the right
  out.fill(static_cast<std::size_t>(pad / 2), fill);
  out.add(text);
  out.fill(static_cast<std::size_t>(pad - pad / 2), fill);
  return out.value();
}

Value format_text(Heap& heap, const Spec& spec, const Text& text) {
  if (spec.sign != '\0') fault("Sign not allowed in string format specifier");
  if (spec.alternate) fault("Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=') fault("'=' alignment not allowed in string format specifier");
  if (spec.grouping != '\0') fault("Cannot specify ',' with 's'.");
  if (spec.type != '\0' && spec.type != 's')
    fault(std::string("Unknown format code '") + spec.type + "' for object of type 'str'");
  const Text* cut = &text;
  if (spec.precision >= 0 && spec.precision < static_cast<std::int64_t>(text.chars)) {
    cut = slice_text(heap, text, 0, byte_at(heap, text, static_cast<std::size_t>(spec.precision)));
  }
  Spec padded = spec;
  if (spec.zero && spec.fill == nullptr) padded.fill = make_text(heap, "0");
  return aligned(heap, padded, *cut, '<');
}

void group_digits(std::string& digits, char grouping, std::size_t every) {
  std::size_t end = 0;
  while (end < digits.size() && std::isxdigit(static_cast<unsigned char>(digits[end])) != 0) ++end;
  while (end > every) {
    end -= every;
    digits.insert(end, 1, grouping);
  }
}

Value format_number(Heap& heap, const Spec& spec, const Value& value) {
  const bool is_float = value.is(Kind::Float) || std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  bool is_negative = false;
  std::string digits;
  std::string prefix;
  const bool has_type = spec.type != '\0';
  if (is_float && (has_type || value.is(Kind::Float))) {
    const double f = value.as_double();
    is_negative = std::signbit(f) && !std::isnan(f);
    if (!has_type && spec.precision >= 0) fault("a precision without a type (f, e, g) is not supported for floats");
    if (has_type && std::string_view("eEfFgG%").find(spec.type) == std::string_view::npos) {
      fault(std::string("Unknown format code '") + spec.type + "' for object of type 'float'");
    }
    digits = !has_type          ? float_repr(std::fabs(f))
             : spec.type == '%' ? float_digits(f * 100, 'f', spec.precision, spec.alternate) + "%"
                                : float_digits(f, spec.type, spec.precision, spec.alternate);
    if (spec.grouping != '\0') group_digits(digits, spec.grouping, 3);
  } else {
    if (spec.precision >= 0) fault("Precision not allowed in integer format specifier");
    if (spec.type == 'c') return aligned(heap, spec, *char_text(heap, value.as_int()), '<');
    const int base = spec.type == 'x' || spec.type == 'X' ? 16 : spec.type == 'o' ? 8 : spec.type == 'b' ? 2 : 10;
    if (has_type && base == 10 && spec.type != 'd' && spec.type != 'n') {
      fault(std::string("Unknown format code '") + spec.type + "' for object of type 'int'");
    }
    is_negative = value.as_int() < 0;
    digits = magnitude(value.as_int(), base, spec.type == 'X');
    if (spec.alternate && base != 10) prefix = std::string("0") + spec.type;
    if (spec.grouping == ',' && base != 10) fault(std::string("Cannot specify ',' with '") + spec.type + "'.");
    if (spec.grouping != '\0') group_digits(digits, spec.grouping, base == 10 ? 3 : 4);
  }
  const std::string sign = (is_negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "") + prefix;
  const bool zeros = spec.zero && spec.align == '\0';
  if (!zeros && spec.align != '=') return aligned(heap, spec, *make_text(heap, sign + digits), '>');
  if (zeros && spec.grouping != '\0') fault("zero padding with grouping is not supported in a format");
  TextBuilder out(heap);
  out.add(sign);
  const std::int64_t pad = spec.width - static_cast<std::int64_t>(sign.size() + digits.size());
  const Text& fill = spec.fill != nullptr ? *spec.fill : *make_text(heap, spec.zero ? "0" : " ");
  if (pad > 0) out.fill(static_cast<std::size_t>(pad), fill);
  out.add(digits);
  return out.value();
}

class StrFormat {
 public:
  StrFormat(Interpreter& in, const CallArgs& args) : in_(in), heap_(in.heap()), args_(args) {}
  Value run(const Text& format, int depth);

 private:
  void field(TextBuilder& out, const Text& format, std::size_t begin, std::size_t end, int depth);
  Value lookup(const Text& name);
  Value first_value(const Text& name);
  Value formatted(const Value& value, const Text& spec);

  Interpreter& in_;
  Heap& heap_;
  const CallArgs& args_;
  std::size_t next_auto_ = 0;
  enum class Numbering { Unknown, Automatic, Manual } numbering_ = Numbering::Unknown;
};

Value StrFormat::first_value(const Text& name) {
  const std::string_view text = name.view();
  const bool is_number = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    for (const auto& [key, value] : args_.keywords) {
      if (key.text->view() == text) return value;
    }
    fault(repr_of(heap_, Value::str(&name)));
  }
  const Numbering kind = text.empty() ? Numbering::Automatic : Numbering::Manual;
  if (numbering_ != Numbering::Unknown && numbering_ != kind) {
    fault("cannot switch between manual field specification and automatic field numbering");
  }
  numbering_ = kind;
  std::size_t i = next_auto_;
  if (text.empty()) {
    ++next_auto_;
  } else {
    const std::optional<std::int64_t> index = parse_int(text, 10);
    i = static_cast<std::size_t>(*index);
  }
  if (i >= args_.positional.size())
    fault("Replacement index " + std::to_string(i) + " out of range for positional args tuple");
  return args_.positional[i];
}

// name.attribute[item]...
Value StrFormat::lookup(const Text& name) {
  std::size_t at = std::min(name.view().find_first_of(".["), name.size);
  Value value = first_value(*slice_text(heap_, name, 0, at));
  while (at < name.size) {
    if (name.data[at] == '.') {
      const std::size_t end = std::min(name.view().find_first_of(".[", at + 1), name.size);
      if (end == at + 1) fault("Empty attribute in format string");
      value = in_.attribute(value, *slice_text(heap_, name, at + 1, end));
      at = end;
      continue;
    }
    if (name.data[at] != '[') fault("Only '.' or '[' may follow ']' in format field specifier");
    const std::size_t close = name.view().find(']', at);
    if (close == std::string_view::npos) fault("Missing ']' in format string");
    if (close == at + 1) fault("Empty attribute in format string");
    const Text& key = *slice_text(heap_, name, at + 1, close);
    const bool is_number = std::all_of(key.data, key.data + key.size, [](char c) { return c >= '0' && c <= '9'; });
    value = in_.item(value, is_number ? Value::integer(*parse_int(key.view(), 10)) : Value::str(&key));
    at = close + 1;
  }
  return value;
}

Value StrFormat::formatted(const Value& value, const Text& spec_text) {
  if (spec_text.size == 0) return Value::str(&as_text(heap_, value));
  if (value.is(Kind::Str)) return format_text(heap_, parse_spec(heap_, spec_text), *value.text);
  if (value.is_number()) return format_number(heap_, parse_spec(heap_, spec_text), value);
  fault(std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
}

// {name!conversion:spec} between begin and end.
void StrFormat::field(TextBuilder& out, const Text& format, std::size_t begin, std::size_t end, int depth) {
  std::size_t name_end = begin;
  bool in_brackets = false;
  while (name_end < end && (in_brackets || (format.data[name_end] != '!' && format.data[name_end] != ':'))) {
    if (format.data[name_end] == '{') fault("unexpected '{' in field name");
    if (format.data[name_end] == '[') in_brackets = true;
    if (format.data[name_end] == ']') in_brackets = false;
    ++name_end;
  }
  Value value = lookup(*slice_text(heap_, format, begin, name_end));
  std::size_t at = name_end;
  if (at < end && format.data[at] == '!') {
    if (at + 1 >= end) fault("end of string while looking for conversion specifier");
    const char conversion = format.data[at + 1];
    at += 2;
    if (at < end && format.data[at] != ':') fault("expected ':' after conversion specifier");
    if (conversion != 's' && conversion != 'r') fault(std::string("Unknown conversion specifier '") + conversion + "'");
    TextBuilder text(heap_);
    conversion == 's' ? append_str(text, heap_, value) : append_repr(text, heap_, value);
    value = text.value();
  }
  const Value spec = at < end ? run(*slice_text(heap_, format, at + 1, end), depth + 1) : str(heap_, "");
  out.add(*formatted(value, *spec.text).text);
}

Value StrFormat::run(const Text& format, int depth) {
  if (depth > 1) fault("Max string recursion exceeded");
  TextBuilder out(heap_);
  heap_.touch(format.size);
  std::size_t at = 0;
  while (at < format.size) {
    const std::size_t brace = std::min(format.view().find_first_of("{}", at), format.size);
    out.add(format, at, brace);
    at = brace;
    if (at == format.size) break;
    heap_.step();
    const char c = format.data[at];
    if (at + 1 < format.size && format.data[at + 1] == c) {
      out.add(format, at, at + 1);
      at += 2;
      continue;
    }
    if (c == '}') fault("Single '}' encountered in format string");
    std::size_t end = at + 1;
    for (int open = 1; open > 0; ++end) {
      if (end >= format.size)
        fault(end == at + 1 ? "Single '{' encountered in format string" : "expected '}' before end of string");
      open += format.data[end] == '{' ? 1 : format.data[end] == '}' ? -1 : 0;
    }
    field(out, format, at + 1, end - 1, depth);
    at = end;
  }
  return out.value();
}

}  // namespace

Value str_format(Interpreter& in, const Text& format, const CallArgs& args) {
  return StrFormat(in, args).run(format, 0);
}

}  // namespace rondo::jinja
