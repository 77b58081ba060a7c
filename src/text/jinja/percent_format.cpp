// Python's format % values.
#include <cmath>
#include <cstdio>

#include "text/jinja/methods.h"
#include "text/jinja/number_format.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

struct Spec {
  bool left = false, plus = false, space = false, alternate = false, zero = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 's';
};

class PercentFormat {
 public:
  PercentFormat(Interpreter& in, const Text& format, const Value& args)
      : heap_(in.heap()), format_(format), args_(args), out_(in.heap()) {}
  Value run();

 private:
  char peek() const {
    if (at_ >= format_.size) fault("incomplete format");
    return format_.data[at_];
  }
  Value next_value();
  void directive();
  Value key();
  std::int64_t number(std::int64_t limit);
  void write(const Spec& spec, const Value& value);
  void write_int(const Spec& spec, const Value& value);
  void write_padded(const Spec& spec, const Text& text);
  void write_number(const Spec& spec, const std::string& sign, std::string digits);

  Heap& heap_;
  const Text& format_;
  const Value& args_;
  TextBuilder out_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
};

Value PercentFormat::next_value() {
  const std::span<const Value> all =
      args_.is(Kind::Tuple) ? args_.seq->span() : std::span<const Value>(&args_, std::size_t{1});
  if (used_ >= all.size()) fault("not enough arguments for format string");
  return all[used_++];
}

// %(name): looked up in the mapping; Missing when there is no name.
Value PercentFormat::key() {
  if (peek() != '(') return {};
  if (!args_.is(Kind::Dict)) fault("format requires a mapping");
  const std::size_t begin = ++at_;
  int open = 1;
  for (; open > 0; ++at_) open += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
  const Value name = Value::str(slice_text(heap_, format_, begin, at_ - 1));
  const Value* const value = dict_find(heap_, *args_.dict, name);
  if (value == nullptr) fault(repr_of(heap_, name));
  return *value;
}

std::int64_t PercentFormat::number(std::int64_t limit) {
  std::int64_t n = 0;
  while (peek() >= '0' && peek() <= '9') {
    n = n * 10 + (format_.data[at_++] - '0');
    if (n > limit) fault("a width or precision in a format is too large");
  }
  return n;
}

void PercentFormat::directive() {
  Spec spec;
  const Value named = key();
  for (bool more = true; more;) {
    switch (peek()) {
      case '-': spec.left = true; break;
      case '+': spec.plus = true; break;
      case ' ': spec.space = true; break;
      case '#': spec.alternate = true; break;
      case '0': spec.zero = true; break;
      default: more = false; continue;
    }
    ++at_;
  }
  const auto amount = [&](std::int64_t limit) {
    if (peek() != '*') return number(limit);
    ++at_;
    const Value value = next_value();
    if (!value.is_integral()) fault("* wants int");
    if (value.as_int() > limit || value.as_int() < -limit) fault("a width or precision in a format is too large");
    return value.as_int();
  };
  spec.width = amount(kMaxWidth);
  if (spec.width < 0) {
    spec.left = true;
    spec.width = -spec.width;
  }
  if (peek() == '.') {
    ++at_;
    spec.precision = std::max<std::int64_t>(amount(kMaxWidth), 0);
  }
  if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
  spec.type = peek();
  ++at_;
  if (spec.type == '%') return out_.add("%");
  write(spec, named.is_missing() ? next_value() : named);
}

void PercentFormat::write_padded(const Spec& spec, const Text& text) {
  const Value padded = justify(heap_, text, spec.width, *make_text(heap_, " "), spec.left ? 'l' : 'r');
  out_.add(*padded.text);
}

void PercentFormat::write_number(const Spec& spec, const std::string& sign, std::string digits) {
  const auto width = static_cast<std::size_t>(spec.width);
  if (spec.zero && !spec.left && sign.size() + digits.size() < width) {
    digits.insert(0, width - sign.size() - digits.size(), '0');
  }
  write_padded(spec, *make_text(heap_, sign + digits));
}

void PercentFormat::write_int(const Spec& spec, const Value& value) {
  const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
  if (!value.is_integral() && !(decimal && value.is(Kind::Float))) {
    fault(std::string("%") + spec.type + " format: " + (decimal ? "a real number" : "an integer") +
          " is required, not " + type_name(value));
  }
  const std::int64_t i = value.is(Kind::Float) ? to_int(value.f).i : value.as_int();
  const int base = spec.type == 'x' || spec.type == 'X' ? 16 : spec.type == 'o' ? 8 : 10;
  std::string digits = magnitude(i, base, spec.type == 'X');
  if (spec.precision > static_cast<std::int64_t>(digits.size())) {
    digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
  }
  std::string sign = i < 0 ? "-" : spec.plus ? "+" : spec.space ? " " : "";
  if (spec.alternate && base != 10) sign += std::string("0") + spec.type;
  write_number(spec, sign, digits);
}

void PercentFormat::write(const Spec& spec, const Value& value) {
  switch (spec.type) {
    case 's':
    case 'r': {
      TextBuilder text(heap_);
      spec.type == 's' ? append_str(text, heap_, value) : append_repr(text, heap_, value);
      const Text* whole = text.text();
      if (spec.precision >= 0 && spec.precision < static_cast<std::int64_t>(whole->chars)) {
        whole = slice_text(heap_, *whole, 0, byte_at(heap_, *whole, static_cast<std::size_t>(spec.precision)));
      }
      return write_padded(spec, *whole);
    }
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': return write_int(spec, value);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
      if (value.is_undefined()) use_of_undefined(value);
      if (!value.is_number()) fault(std::string("must be real number, not ") + type_name(value));
      const double f = value.as_double();
      const std::string sign = std::signbit(f) && !std::isnan(f) ? "-" : spec.plus ? "+" : spec.space ? " " : "";
      return write_number(spec, sign, float_digits(f, spec.type, spec.precision, spec.alternate));
    }
    case 'c': {
      if (value.is(Kind::Str) && value.text->chars == 1) return write_padded(spec, *value.text);
      if (!value.is_integral()) fault("%c requires int or char");
      return write_padded(spec, *char_text(heap_, value.as_int()));
    }
    default: fault(std::string("unsupported format character '") + spec.type + "'");
  }
}

Value PercentFormat::run() {
  heap_.touch(format_.size);
  while (at_ < format_.size) {
    const std::size_t found = format_.view().find('%', at_);
    const std::size_t end = found == std::string_view::npos ? format_.size : found;
    out_.add(format_, at_, end);
    at_ = end;
    if (at_ == format_.size) break;
    ++at_;
    heap_.step();
    directive();
  }
  const bool is_mapping = args_.is(Kind::Dict) || args_.is(Kind::List) || args_.is(Kind::Range);
  const std::size_t given = args_.is(Kind::Tuple) ? args_.seq->size : 1;
  if (!is_mapping && used_ < given) fault("not all arguments converted during string formatting");
  return out_.value();
}

}  // namespace

Value percent_format(Interpreter& in, const Text& format, const Value& args) {
  return PercentFormat(in, format, args).run();
}

}  // namespace rondo::jinja
