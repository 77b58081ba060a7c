#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/methods.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

const Value kNone = Value::none();

template <char kMapping>
Value case_filter(Interpreter& in, const Value& value, CallArgs& args) {
  constexpr std::string_view kName = kMapping == 'u' ? "upper" : kMapping == 'l' ? "lower" : "capitalize";
  bind(kName, args, {});
  return map_case(in.heap(), as_text(in.heap(), value), kName);
}

// Words begin behind white space and -({[<; what follows is upper, then lower case.
Value title_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("title", args, {});
  Heap& heap = in.heap();
  const Text& text = as_text(heap, value);
  TextBuilder out(heap);
  const auto is_border = [&](std::size_t at) {
    const char32_t c = decode_char(text.view(), at);
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  for (std::size_t at = 0; at < text.size;) {
    heap.step();
    const bool border = is_border(at);
    const std::size_t first_end = at + char_bytes(text.data[at]);
    std::size_t end = first_end;
    while (end < text.size && is_border(end) == border) end += char_bytes(text.data[end]);
    out.add(*map_case(heap, *slice_text(heap, text, at, first_end), "upper").text);
    out.add(*map_case(heap, *slice_text(heap, text, first_end, end), "lower").text);
    at = end;
  }
  return out.value();
}

Value trim_filter(Interpreter& in, const Value& value, CallArgs& args) {
  return strip(in.heap(), as_text(in.heap(), value), bind("trim", args, {{"chars", kNone}})[0], true, true);
}

Value string_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("string", args, {});
  return Value::str(&as_text(in.heap(), value));
}

Value replace_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("replace", args, {{"old"}, {"new"}, {"count", kNone}});
  Heap& heap = in.heap();
  const std::int64_t count = bound[2].is(Kind::None) ? -1 : to_index(bound[2]);
  return replace(heap, as_text(heap, value), as_text(heap, bound[0]), as_text(heap, bound[1]), count);
}

Value join_filter(Interpreter& in, const Value& value, CallArgs& args) {
  Heap& heap = in.heap();
  const std::vector<Value> bound = bind("join", args, {{"d", str(heap, "")}, {"attribute", kNone}});
  const Text& separator = as_text(heap, bound[0]);
  Value parts = value;
  if (!bound[1].is(Kind::None)) {
    CallArgs map_args;
    map_args.keywords.emplace_back(str(heap, "attribute"), bound[1]);
    parts = find_filter("map")(in, value, map_args);
  }
  TextBuilder out(heap);
  bool is_first = true;
  for (const Value& part : elements(heap, parts)) {
    heap.step();
    if (!is_first) out.add(separator);
    is_first = false;
    append_str(out, heap, part);
  }
  return out.value();
}

Value format_filter(Interpreter& in, const Value& value, CallArgs& args) {
  if (!args.positional.empty() && !args.keywords.empty()) {
    fault("can't handle positional and keyword arguments at the same time");
  }
  Heap& heap = in.heap();
  if (args.keywords.empty()) return percent_format(in, as_text(heap, value), tuple_of(heap, args.positional));
  Dict* const dict = heap.make<Dict>();
  for (const auto& [key, item] : args.keywords) dict_set(heap, *dict, key, item);
  return percent_format(in, as_text(heap, value), Value::of_dict(dict));
}

const Text& want_str(const Value& value, const char* filter) {
  if (value.is_undefined()) use_of_undefined(value);
  if (!value.is(Kind::Str)) fault(std::string(filter) + " needs a string, not " + type_name(value));
  return *value.text;
}

Value indent_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const Value no = Value::boolean(false);
  const std::vector<Value> bound = bind("indent", args, {{"width", Value::integer(4)}, {"first", no}, {"blank", no}});
  Heap& heap = in.heap();
  Value indent = bound[0];
  if (!indent.is(Kind::Str)) indent = in.binary(Op::Mul, str(heap, " "), indent);
  const Text& text = want_str(value, "indent");
  TextBuilder with_end(heap);
  with_end.add(text);
  with_end.add("\n");
  const std::vector<Value> lines = split_lines(heap, *with_end.text(), false);
  TextBuilder out(heap);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    heap.step();
    const Text& line = *lines[i].text;
    if (i > 0) out.add("\n");
    if (i == 0 ? truthy(bound[1]) : truthy(bound[2]) || line.size > 0) out.add(*indent.text);
    out.add(line);
  }
  return out.value();
}

Value truncate_filter(Interpreter& in, const Value& value, CallArgs& args) {
  Heap& heap = in.heap();
  const std::vector<Value> bound = bind("truncate", args,
                                        {{"length", Value::integer(255)},
                                         {"killwords", Value::boolean(false)},
                                         {"end", str(heap, "...")},
                                         {"leeway", Value::integer(5)}});
  const Text& text = want_str(value, "truncate");
  const Text& end = want_str(bound[2], "truncate");
  const std::int64_t length = to_index(bound[0]);
  const std::int64_t leeway = bound[3].is(Kind::None) ? 5 : to_index(bound[3]);
  const auto end_chars = static_cast<std::int64_t>(end.chars);
  if (length < end_chars) fault("expected length >= " + std::to_string(end_chars) + ", got " + std::to_string(length));
  if (leeway < 0) fault("expected leeway >= 0, got " + std::to_string(leeway));
  const auto chars = static_cast<std::int64_t>(text.chars);
  if (length >= chars || chars - length <= leeway) return value;
  std::size_t cut = byte_at(heap, text, static_cast<std::size_t>(length - end_chars));
  if (!truthy(bound[1])) cut = std::min(text.view().substr(0, cut).rfind(' '), cut);
  TextBuilder out(heap);
  out.add(text, 0, cut);
  out.add(end);
  return out.value();
}

Value wordcount_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("wordcount", args, {});
  const Text& text = as_text(in.heap(), value);
  in.heap().touch(text.size);
  std::int64_t words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size; at += char_bytes(text.data[at])) {
    const char32_t c = decode_char(text.view(), at);
    const bool is_word = c == '_' || is_alnum(c);
    words += is_word && !in_word ? 1 : 0;
    in_word = is_word;
  }
  return Value::integer(words);
}

Value center_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::int64_t width = to_index(bind("center", args, {{"width", Value::integer(80)}})[0]);
  return justify(in.heap(), as_text(in.heap(), value), width, *make_text(in.heap(), " "), 'c');
}

Value as_markup(Heap& heap, const Text& text) {
  Text* const markup = heap.make<Text>(text);
  markup->markup = true;
  return Value::str(markup);
}

Value safe_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("safe", args, {});
  return as_markup(in.heap(), as_text(in.heap(), value));
}

Value escape_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("escape", args, {});
  Heap& heap = in.heap();
  const Text& text = as_text(heap, value);
  if (text.markup) return value;
  heap.touch(text.size);
  TextBuilder out(heap);
  MarkCursor marks(text);
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size; ++at) {
    const char c = text.data[at];
    const char* const escaped = c == '&'    ? "&amp;"
                                : c == '<'  ? "&lt;"
                                : c == '>'  ? "&gt;"
                                : c == '\'' ? "&#39;"
                                : c == '"'  ? "&#34;"
                                            : nullptr;
    if (escaped == nullptr) continue;
    out.add(text, plain, at);
    out.add(escaped, marks.touches(at, at + 1));
    plain = at + 1;
  }
  out.add(text, plain, text.size);
  return as_markup(heap, *out.text());
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable kTable = {
      {"upper", case_filter<'u'>}, {"lower", case_filter<'l'>},    {"capitalize", case_filter<'c'>},
      {"title", title_filter},     {"trim", trim_filter},          {"string", string_filter},
      {"replace", replace_filter}, {"join", join_filter},          {"format", format_filter},
      {"indent", indent_filter},   {"truncate", truncate_filter},  {"wordcount", wordcount_filter},
      {"center", center_filter},   {"safe", safe_filter},          {"escape", escape_filter},
      {"e", escape_filter},        {"forceescape", escape_filter},
  };
  return kTable;
}

}  // namespace rondo::jinja
