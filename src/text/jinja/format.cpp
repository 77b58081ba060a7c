// str(), repr() and json.dumps of any value. Punctuation and numbers are the template's own; the characters of strings,
// escaped or not, keep their marks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto [end, ec] = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view all(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = all.find('e');
  int exponent = 0;
  const std::string_view exponent_text = all.substr(all[e + 1] == '+' ? e + 2 : e + 1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(all);
  std::string digits;
  for (const char c : all.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const std::string sign = all[0] == '-' ? "-" : "";
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

std::string hex(char32_t c, int width) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(static_cast<std::size_t>(width), '0');
  for (int i = width - 1; i >= 0; --i, c >>= 4) out[static_cast<std::size_t>(i)] = kDigits[c & 15];
  return out;
}

std::string repr_char(char32_t c, char quote) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  if (c == '\\' || c == static_cast<char32_t>(quote)) return std::string("\\") + static_cast<char>(c);
  if (is_printable(c)) return {};
  if (c < 0x100) return "\\x" + hex(c, 2);
  return c < 0x10000 ? "\\u" + hex(c, 4) : "\\U" + hex(c, 8);
}

std::string json_char(char32_t c, bool ensure_ascii) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\f': return "\\f";
    case '\b': return "\\b";
    default: break;
  }
  if (c < 0x20) return "\\u" + hex(c, 4);
  if (c < 0x7F || !ensure_ascii) return {};
  if (c < 0x10000) return "\\u" + hex(c, 4);
  c -= 0x10000;
  return "\\u" + hex(0xD800 + (c >> 10), 4) + "\\u" + hex(0xDC00 + (c & 0x3FF), 4);
}

// The characters of `text`, each as escape(c) writes it, or itself where that is empty.
template <class Escape>
void append_escaped(TextBuilder& out, const Text& text, Escape escape) {
  MarkCursor marks(text);
  std::size_t plain = 0;  // begin of a run that needs no escape
  for (std::size_t at = 0; at < text.size;) {
    const std::size_t next = at + char_bytes(text.data[at]);
    const std::string escaped = escape(decode_char(text.view(), at));
    if (!escaped.empty()) {
      out.add(text, plain, at);
      out.add(escaped, marks.touches(at, next));
      plain = next;
    }
    at = next;
  }
  out.add(text, plain, text.size);
}

void append_str_repr(TextBuilder& out, Heap& heap, const Text& text) {
  heap.touch(text.size);
  const bool has_single = text.view().find('\'') != std::string_view::npos;
  const char quote = has_single && text.view().find('"') == std::string_view::npos ? '"' : '\'';
  if (text.markup) out.add("Markup(");
  out.add(std::string_view(&quote, 1));
  append_escaped(out, text, [quote](char32_t c) { return repr_char(c, quote); });
  out.add(std::string_view(&quote, 1));
  if (text.markup) out.add(")");
}

void append_items_repr(TextBuilder& out, Heap& heap, std::span<const Value> items, const char* open,
                       const char* close) {
  out.add(open);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(", ");
    append_repr(out, heap, items[i]);
  }
  out.add(close);
}

void append_dict_repr(TextBuilder& out, Heap& heap, const Dict& dict) {
  out.add("{");
  for (std::size_t i = 0; i < dict.size; ++i) {
    if (i > 0) out.add(", ");
    append_repr(out, heap, dict.entries[i].key);
    out.add(": ");
    append_repr(out, heap, dict.entries[i].value);
  }
  out.add("}");
}

void append_range_repr(TextBuilder& out, const Range& range) {
  out.add("range(" + std::to_string(range.start) + ", " + std::to_string(range.stop));
  if (range.step != 1) out.add(", " + std::to_string(range.step));
  out.add(")");
}

void append_view_repr(TextBuilder& out, Heap& heap, const Value& value) {
  const View::Of of = value.view->of;
  out.add(of == View::Of::Items ? "dict_items(" : of == View::Of::Keys ? "dict_keys(" : "dict_values(");
  append_items_repr(out, heap, elements(heap, value), "[", "]");
  out.add(")");
}

}  // namespace

void append_repr(TextBuilder& out, Heap& heap, const Value& value) {
  const Nested nested(heap);
  heap.step();
  switch (value.kind) {
    case Kind::Missing: return out.add("missing");
    case Kind::Undefined: return out.add("Undefined");
    case Kind::None: return out.add("None");
    case Kind::Bool: return out.add(value.b ? "True" : "False");
    case Kind::Int: return out.add(std::to_string(value.i));
    case Kind::Float: return out.add(float_repr(value.f));
    case Kind::Str: return append_str_repr(out, heap, *value.text);
    case Kind::List: return append_items_repr(out, heap, value.seq->span(), "[", "]");
    case Kind::Tuple: return append_items_repr(out, heap, value.seq->span(), "(", value.seq->size == 1 ? ",)" : ")");
    case Kind::Dict: return append_dict_repr(out, heap, *value.dict);
    case Kind::Namespace:
      out.add("<Namespace ");
      append_dict_repr(out, heap, *value.dict);
      return out.add(">");
    case Kind::Range: return append_range_repr(out, *value.range);
    case Kind::View: return append_view_repr(out, heap, value);
    case Kind::Macro:
      if (value.macro->def->name == nullptr) return out.add("<Macro anonymous>");
      out.add("<Macro ");
      append_str_repr(out, heap, *value.macro->def->name);
      return out.add(">");
    case Kind::Loop:
      return out.add("<LoopContext " + std::to_string(value.loop->index0 + 1) + "/" + std::to_string(value.loop->size) +
                     ">");
    case Kind::Iterator:
      fault("a lazy sequence (of map, select, items, ...) cannot be written as text; put |list behind it");
    case Kind::Function:
    case Kind::Cycler:
    case Kind::Joiner: fault(std::string("a ") + type_name(value) + " cannot be written as text");
  }
}

void append_str(TextBuilder& out, Heap& heap, const Value& value) {
  if (value.is(Kind::Str)) return out.add(*value.text);
  if (value.is_undefined()) return;
  append_repr(out, heap, value);
}

const Text& as_text(Heap& heap, const Value& value) {
  if (value.is(Kind::Str)) return *value.text;
  TextBuilder out(heap);
  append_str(out, heap, value);
  return *out.text();
}

std::string repr_of(Heap& heap, const Value& value) {
  TextBuilder out(heap);
  append_repr(out, heap, value);
  constexpr std::size_t kLongest = 200;  // of a message
  std::string text(out.view());
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// ---- JSON

namespace {

void append_json_text(TextBuilder& out, Heap& heap, const Text& text, bool ensure_ascii) {
  heap.touch(text.size);
  out.add("\"");
  append_escaped(out, text, [ensure_ascii](char32_t c) { return json_char(c, ensure_ascii); });
  out.add("\"");
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

void json_line(TextBuilder& out, const JsonStyle& style, int level) {
  if (!style.indent) return;
  out.add("\n");
  for (int i = 0; i < level; ++i) out.add(**style.indent);
}

void append_json_key(TextBuilder& out, Heap& heap, const Value& key, const JsonStyle& style) {
  switch (key.kind) {
    case Kind::Str: return append_json_text(out, heap, *key.text, style.ensure_ascii);
    case Kind::None: return out.add("\"null\"");
    case Kind::Bool: return out.add(key.b ? "\"true\"" : "\"false\"");
    case Kind::Int: return out.add(fmt::format("\"{}\"", key.i));
    case Kind::Float: return out.add(fmt::format("\"{}\"", json_float(key.f)));
    default: fault(std::string("keys must be str, int, float, bool or None, not ") + type_name(key));
  }
}

void append_json_dict(TextBuilder& out, Heap& heap, const Dict& dict, const JsonStyle& style, int level) {
  if (dict.size == 0) return out.add("{}");
  std::vector<const Dict::Entry*> entries;
  for (const Dict::Entry& entry : dict.span()) entries.push_back(&entry);
  if (style.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&heap](const Dict::Entry* a, const Dict::Entry* b) { return less(heap, a->key, b->key); });
  }
  out.add("{");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.add(*style.item_separator);
    json_line(out, style, level + 1);
    append_json_key(out, heap, entries[i]->key, style);
    out.add(*style.key_separator);
    append_json(out, heap, entries[i]->value, style, level + 1);
  }
  json_line(out, style, level);
  out.add("}");
}

void append_json_list(TextBuilder& out, Heap& heap, std::span<const Value> items, const JsonStyle& style, int level) {
  if (items.empty()) return out.add("[]");
  out.add("[");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.add(*style.item_separator);
    json_line(out, style, level + 1);
    append_json(out, heap, items[i], style, level + 1);
  }
  json_line(out, style, level);
  out.add("]");
}

}  // namespace

void append_json(TextBuilder& out, Heap& heap, const Value& value, const JsonStyle& style, int level) {
  const Nested nested(heap);
  heap.step();
  switch (value.kind) {
    case Kind::None: return out.add("null");
    case Kind::Bool: return out.add(value.b ? "true" : "false");
    case Kind::Int: return out.add(std::to_string(value.i));
    case Kind::Float: return out.add(json_float(value.f));
    case Kind::Str: return append_json_text(out, heap, *value.text, style.ensure_ascii);
    case Kind::List:
    case Kind::Tuple: return append_json_list(out, heap, value.seq->span(), style, level);
    case Kind::Dict: return append_json_dict(out, heap, *value.dict, style, level);
    default: fault(std::string("Object of type ") + type_name(value) + " is not JSON serializable");
  }
}

}  // namespace rondo::jinja
