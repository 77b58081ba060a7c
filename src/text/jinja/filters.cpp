#include "text/jinja/filters.h"

#include <algorithm>
#include <cmath>

namespace rondo::jinja {

namespace {

const Value kNone = Value::none();

Value default_filter(Interpreter&, const Value& value, CallArgs& args) {
  const std::vector<Value> bound =
      bind("default", args, {{"default_value", Value()}, {"boolean", Value::boolean(false)}});
  if (!value.is_undefined() && !(truthy(bound[1]) && !truthy(value))) return value;
  static const Text kEmpty;
  return bound[0].is_missing() ? Value::str(&kEmpty) : bound[0];
}

Value abs_filter(Interpreter&, const Value& value, CallArgs& args) {
  bind("abs", args, {});
  if (value.is_undefined()) use_of_undefined(value);
  if (!value.is_number()) fault(std::string("bad operand type for abs(): '") + type_name(value) + "'");
  if (value.is(Kind::Float)) return Value::real(std::fabs(value.f));
  return value.as_int() < 0 ? negate(value) : Value::integer(value.as_int());
}

Value int_filter(Interpreter&, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("int", args, {{"default", Value::integer(0)}, {"base", Value::integer(10)}});
  if (value.is_undefined()) use_of_undefined(value);
  if (value.is_integral()) return Value::integer(value.as_int());
  std::optional<double> number;
  if (value.is(Kind::Str)) {
    if (const auto parsed = parse_int(value.text->view(), to_index(bound[1]))) return Value::integer(*parsed);
    number = parse_float(value.text->view());  // "42.23"|int is 42
  } else if (value.is(Kind::Float)) {
    number = value.f;
  }
  return number && std::isfinite(*number) ? to_int(*number) : bound[0];
}

Value float_filter(Interpreter&, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("float", args, {{"default", Value::real(0.0)}});
  if (value.is_undefined()) use_of_undefined(value);
  if (value.is_number()) return Value::real(value.as_double());
  if (!value.is(Kind::Str)) return bound[0];
  const std::optional<double> parsed = parse_float(value.text->view());
  return parsed ? Value::real(*parsed) : bound[0];
}

Value round_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound =
      bind("round", args, {{"precision", Value::integer(0)}, {"method", str(in.heap(), "common")}});
  const std::string_view method = bound[1].is(Kind::Str) ? bound[1].text->view() : "";
  if (method == "common") return round_to(value, to_index(bound[0]));
  if (method != "ceil" && method != "floor") fault("method must be common, ceil or floor");
  const Value unit = in.binary(Op::Pow, Value::integer(10), bound[0]);
  const Value scaled = in.binary(Op::Mul, value, unit);
  if (!scaled.is_number()) fault(std::string("must be real number, not ") + type_name(scaled));
  const double f = scaled.as_double();
  const Value whole = scaled.is_integral() ? scaled : to_int(method == "ceil" ? std::ceil(f) : std::floor(f));
  return in.binary(Op::Div, whole, unit);
}

// json.dumps(x, ensure_ascii=, indent=, separators=, sort_keys=), as transformers defines the filter.
Value tojson_filter(Interpreter& in, const Value& value, CallArgs& args) {
  Heap& heap = in.heap();
  const Value no = Value::boolean(false);
  const std::vector<Value> bound =
      bind("tojson", args, {{"ensure_ascii", no}, {"indent", kNone}, {"separators", kNone}, {"sort_keys", no}});
  JsonStyle style;
  style.ensure_ascii = truthy(bound[0]);
  style.sort_keys = truthy(bound[3]);
  const Value& indent = bound[1];
  if (indent.is(Kind::Str)) {
    style.indent = indent.text;
  } else if (!indent.is(Kind::None)) {
    const std::int64_t width = to_index(indent);
    if (width > 1000) fault("tojson: an indent of more than 1000 is not supported");
    style.indent = make_text(heap, std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  style.item_separator = make_text(heap, style.indent ? "," : ", ");
  style.key_separator = make_text(heap, ": ");
  if (!bound[2].is(Kind::None)) {
    const std::span<const Value> both = elements(heap, bound[2]);
    if (both.size() != 2 || !both[0].is(Kind::Str) || !both[1].is(Kind::Str)) {
      fault("tojson: separators must be two strings");
    }
    style.item_separator = both[0].text;
    style.key_separator = both[1].text;
  }
  TextBuilder out(heap);
  append_json(out, heap, value, style);
  return out.value();
}

Value attr_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const Value name = bind("attr", args, {{"name"}})[0];
  if (value.is_undefined()) use_of_undefined(value);
  const Text& text = as_text(in.heap(), name);
  const Value found = find_attribute(in, value, text.view());
  if (!found.is_missing()) return found;
  Value undefined = Value::of(Kind::Undefined);
  undefined.why = in.heap().make<UndefinedWhy>(nullptr, value.kind, Value::str(&text));
  return undefined;
}

const FilterTable& value_filters() {
  static const FilterTable kTable = {
      {"default", default_filter}, {"d", default_filter},   {"abs", abs_filter},       {"int", int_filter},
      {"float", float_filter},     {"round", round_filter}, {"tojson", tojson_filter}, {"attr", attr_filter},
  };
  return kTable;
}

}  // namespace

FilterFn find_filter(std::string_view name) {
  for (const FilterTable* table : {&value_filters(), &text_filters(), &sequence_filters()}) {
    if (const auto it = table->find(name); it != table->end()) return it->second;
  }
  return nullptr;
}

std::string unknown_filter(std::string_view name) {
  for (const std::string_view refused :
       {"random", "pprint", "urlize", "urlencode", "filesizeformat", "striptags", "wordwrap", "xmlattr"}) {
    if (name == refused) return "the filter '" + std::string(name) + "' is not supported";
  }
  return "No filter named '" + std::string(name) + "'.";
}

}  // namespace rondo::jinja
