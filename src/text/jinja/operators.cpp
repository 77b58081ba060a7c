// Python's operators, on 64-bit integers: an overflow is a Fault.
#include <cmath>

#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

[[noreturn]] void overflow() { fault("integer overflow: only 64-bit integers are supported"); }

const char* symbol(Op op) {
  switch (op) {
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Mul: return "*";
    case Op::Div: return "/";
    case Op::FloorDiv: return "//";
    case Op::Mod: return "%";
    case Op::Pow: return "** or pow()";
    default: return "?";
  }
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) fault("integer division or modulo by zero");
  if (a == INT64_MIN && b == -1) overflow();
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) fault("integer modulo by zero");
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_mod(double a, double b) {
  if (b == 0) fault("float modulo");
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((b < 0) != (r < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

double float_floor_div(double a, double b) {
  if (b == 0) fault("float floor division by zero");
  double r = std::fmod(a, b);
  double q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(q);
  return q - floored > 0.5 ? floored + 1 : floored;
}

Value float_pow(double a, double b) {
  if (a == 0 && b < 0) fault("0.0 cannot be raised to a negative power");
  if (a < 0 && std::floor(b) != b && std::isfinite(a) && std::isfinite(b)) fault("complex numbers are not supported");
  const double r = std::pow(a, b);
  if (std::isinf(r) && std::isfinite(a) && std::isfinite(b)) fault("(34, 'Numerical result out of range')");
  return Value::real(r);
}

Value int_pow(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return float_pow(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return Value::integer(result);
}

Value int_binary(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Op::Add: overflows = __builtin_add_overflow(a, b, &result); break;
    case Op::Sub: overflows = __builtin_sub_overflow(a, b, &result); break;
    case Op::Mul: overflows = __builtin_mul_overflow(a, b, &result); break;
    case Op::Div:
      if (b == 0) fault("division by zero");
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case Op::FloorDiv: return Value::integer(floor_div(a, b));
    case Op::Mod: return Value::integer(floor_mod(a, b));
    default: return int_pow(a, b);
  }
  if (overflows) overflow();
  return Value::integer(result);
}

Value float_binary(Op op, double a, double b) {
  switch (op) {
    case Op::Add: return Value::real(a + b);
    case Op::Sub: return Value::real(a - b);
    case Op::Mul: return Value::real(a * b);
    case Op::Div:
      if (b == 0) fault("float division by zero");
      return Value::real(a / b);
    case Op::FloorDiv: return Value::real(float_floor_div(a, b));
    case Op::Mod: return Value::real(float_mod(a, b));
    default: return float_pow(a, b);
  }
}

void refuse_markup(const Value& value) {
  if (value.is(Kind::Str) && value.text->markup) {
    fault("text from 'safe' or 'escape' can only be written or joined with ~ here");
  }
}

Value repeat(Heap& heap, const Value& value, std::int64_t times) {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (value.is(Kind::Str)) {
    refuse_markup(value);
    if (value.text->size == 0 || n == 0) return str(heap, "");
    if (n > kMaxOutputBytes / value.text->size) fault("a repeated string grows too large");
    TextBuilder text(heap);
    text.fill(n, *value.text);
    return text.value();
  }
  const std::size_t size = value.seq->size;
  if (size != 0 && n > kMaxHeapBytes / sizeof(Value) / size) fault("a repeated list grows too large");
  Value* const items = heap.array<Value>(size * n);
  heap.step(size * n);
  for (std::size_t i = 0; i < size * n; ++i) items[i] = value.seq->items[i % size];
  const Sequence* const seq = heap.make<Sequence>(items, size * n);
  return value.is(Kind::List) ? Value::list(seq) : Value::tuple(seq);
}

bool is_sequence(const Value& v) { return v.is(Kind::Str) || v.is(Kind::List) || v.is(Kind::Tuple); }

Value concatenated(Heap& heap, const Value& a, const Value& b) {
  if (a.is(Kind::Str)) {
    refuse_markup(a);
    refuse_markup(b);
    TextBuilder text(heap);
    text.add(*a.text);
    text.add(*b.text);
    return text.value();
  }
  Value* const items = heap.array<Value>(a.seq->size + b.seq->size);
  heap.step(a.seq->size + b.seq->size);
  Value* const middle = std::copy(a.seq->items, a.seq->items + a.seq->size, items);
  std::copy(b.seq->items, b.seq->items + b.seq->size, middle);
  const Sequence* const seq = heap.make<Sequence>(items, a.seq->size + b.seq->size);
  return a.is(Kind::List) ? Value::list(seq) : Value::tuple(seq);
}

}  // namespace

Value Interpreter::binary(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::Eq: return Value::boolean(equal(heap_, a, b));
    case Op::Ne: return Value::boolean(!equal(heap_, a, b));
    case Op::Lt: return Value::boolean(less(heap_, a, b, "<"));
    case Op::Gt: return Value::boolean(less(heap_, b, a, ">"));
    case Op::In: return Value::boolean(contains(b, a));
    case Op::NotIn: return Value::boolean(!contains(b, a));
    case Op::Le:
    case Op::Ge: {
      const Value& low = op == Op::Le ? a : b;
      const Value& high = op == Op::Le ? b : a;
      const bool is_less = less(heap_, low, high, op == Op::Le ? "<=" : ">=");
      return Value::boolean(is_less || equal(heap_, low, high));
    }
    default: break;
  }
  if (a.is_integral() && b.is_integral()) return int_binary(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return float_binary(op, a.as_double(), b.as_double());
  if (op == Op::Mod && a.is(Kind::Str)) {
    refuse_markup(a);
    return percent_format(*this, *a.text, b);
  }
  if (a.is_undefined()) use_of_undefined(a);
  if (b.is_undefined()) use_of_undefined(b);
  if (op == Op::Add && is_sequence(a) && a.kind == b.kind) return concatenated(heap_, a, b);
  if (op == Op::Mul && is_sequence(a) && b.is_integral()) return repeat(heap_, a, b.as_int());
  if (op == Op::Mul && is_sequence(b) && a.is_integral()) return repeat(heap_, b, a.as_int());
  if (op == Op::Add && is_sequence(a)) {
    fault(std::string("can only concatenate ") + type_name(a) + " (not \"" + type_name(b) + "\") to " + type_name(a));
  }
  fault(std::string("unsupported operand type(s) for ") + symbol(op) + ": '" + type_name(a) + "' and '" + type_name(b) +
        "'");
}

bool Interpreter::contains(const Value& container, const Value& element) {
  switch (container.kind) {
    case Kind::Str: {
      if (!element.is(Kind::Str)) {
        fault(std::string("'in <string>' requires string as left operand, not ") + type_name(element));
      }
      heap_.touch(container.text->size);
      return container.text->view().find(element.text->view()) != std::string_view::npos;
    }
    case Kind::Dict: return dict_find(heap_, *container.dict, element) != nullptr;
    case Kind::View:
      if (container.view->of == View::Of::Keys) return dict_find(heap_, *container.view->dict, element) != nullptr;
      break;
    case Kind::Iterator: {  // reads it up to the element, as Python does
      Iterator& it = *container.iterator;
      while (it.pos < it.size) {
        if (equal(heap_, it.items[it.pos++], element)) return true;
      }
      return false;
    }
    default: break;
  }
  if (!is_iterable(container)) fault(std::string("argument of type '") + type_name(container) + "' is not iterable");
  for (const Value& item : elements(heap_, container)) {
    if (equal(heap_, item, element)) return true;
  }
  return false;
}

Value negate(const Value& value) {
  if (value.is_undefined()) use_of_undefined(value);
  if (value.is(Kind::Float)) return Value::real(-value.f);
  if (!value.is_integral()) fault(std::string("bad operand type for unary -: '") + type_name(value) + "'");
  if (value.as_int() == INT64_MIN) overflow();
  return Value::integer(-value.as_int());
}

std::int64_t to_index(const Value& value) {
  if (value.is_undefined()) use_of_undefined(value);
  if (!value.is_integral()) {
    fault(std::string("'") + type_name(value) + "' object cannot be interpreted as an integer");
  }
  return value.as_int();
}

namespace {

struct SliceBounds {
  std::int64_t start, step;
  std::size_t size;
};

SliceBounds slice_bounds(std::int64_t n, const Value& start, const Value& stop, const Value& step) {
  const auto part = [](const Value& v, std::int64_t fallback) {
    if (v.is(Kind::None)) return fallback;
    if (!v.is_integral()) fault("slice indices must be integers or None or have an __index__ method");
    return v.as_int();
  };
  const std::int64_t by = part(step, 1);
  if (by == 0) fault("slice step cannot be zero");
  const std::int64_t low = by > 0 ? 0 : -1;
  const std::int64_t high = by > 0 ? n : n - 1;
  const auto clamp = [&](std::int64_t i) {
    if (i < 0) i = i < -n ? low : i + n;
    return std::max(low, std::min(i, high));
  };
  const std::int64_t from = start.is(Kind::None) ? (by > 0 ? low : high) : clamp(part(start, 0));
  const std::int64_t to = stop.is(Kind::None) ? (by > 0 ? high : low) : clamp(part(stop, 0));
  std::size_t size = 0;
  if (by > 0 && from < to) size = static_cast<std::size_t>((to - from - 1) / by + 1);
  if (by < 0 && from > to)
    size =
        static_cast<std::size_t>(static_cast<std::uint64_t>(from - to - 1) / (0 - static_cast<std::uint64_t>(by)) + 1);
  return {from, by, size};
}

Value slice_str(Heap& heap, const Text& text, const SliceBounds& bounds) {
  if (bounds.size == 0) return str(heap, "");
  const auto start = static_cast<std::size_t>(bounds.start);
  if (bounds.step == 1) {
    const std::size_t begin = byte_at(heap, text, start);
    const std::size_t end = byte_at(heap, text, start + bounds.size);
    return Value::str(slice_text(heap, text, begin, end));
  }
  heap.step(bounds.size);
  std::vector<std::uint32_t> starts;  // byte position of each code point, where they are not all one byte
  if (!text.is_ascii()) {
    heap.touch(text.size);
    for (std::size_t at = 0; at < text.size; at += char_bytes(text.data[at])) {
      starts.push_back(static_cast<std::uint32_t>(at));
    }
  }
  TextBuilder out(heap);
  for (std::size_t i = 0; i < bounds.size; ++i) {
    const auto index = static_cast<std::size_t>(bounds.start + static_cast<std::int64_t>(i) * bounds.step);
    const std::size_t at = text.is_ascii() ? index : starts[index];
    out.add(text, at, at + char_bytes(text.data[at]));
  }
  return out.value();
}

}  // namespace

Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) use_of_undefined(object);
  if (!is_sequence(object) && !object.is(Kind::Range)) {
    fault(std::string("'") + type_name(object) + "' object is not subscriptable by a slice");
  }
  const SliceBounds bounds = slice_bounds(length_of(object), start, stop, step);
  if (object.is(Kind::Str)) return slice_str(heap, *object.text, bounds);
  if (object.is(Kind::Range)) {
    const Range& range = *object.range;
    const auto n = static_cast<std::int64_t>(bounds.size);
    Value v = Value::of(Kind::Range);
    std::int64_t by = 0;
    if (__builtin_mul_overflow(range.step, bounds.step, &by)) overflow();
    const std::int64_t from = range.at(bounds.start);
    v.range = heap.make<Range>(from, n == 0 ? from : from + (n - 1) * by + (by > 0 ? 1 : -1), by);
    return v;
  }
  Value* const items = heap.array<Value>(bounds.size);
  heap.step(bounds.size);
  for (std::size_t i = 0; i < bounds.size; ++i) {
    items[i] = object.seq->items[bounds.start + static_cast<std::int64_t>(i) * bounds.step];
  }
  const Sequence* const seq = heap.make<Sequence>(items, bounds.size);
  return object.is(Kind::List) ? Value::list(seq) : Value::tuple(seq);
}

}  // namespace rondo::jinja
