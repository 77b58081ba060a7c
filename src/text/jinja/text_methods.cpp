// What methods and filters share of Python's str: every piece of a result keeps the marks of what it came from.
#include <algorithm>

#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

// The byte position where the code point before `end` begins.
std::size_t before(const Text& text, std::size_t end) {
  --end;
  while (end > 0 && (static_cast<unsigned char>(text.data[end]) & 0xC0) == 0x80) --end;
  return end;
}

bool is_wholly_marked(const Text& text) { return text.num_marks == 1 && text.marks[0] == ByteRange{0, text.size}; }

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

enum class Mapping { Upper, Lower, Title, Capitalize, Swapcase };

Mapping mapping_of(std::string_view name) {
  if (name == "upper") return Mapping::Upper;
  if (name == "lower") return Mapping::Lower;
  if (name == "title") return Mapping::Title;
  return name == "capitalize" ? Mapping::Capitalize : Mapping::Swapcase;
}

std::string ascii_mapped(std::string_view text, Mapping mapping) {
  std::string out(text);
  bool in_word = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const char c = out[i];
    switch (mapping) {
      case Mapping::Upper: out[i] = ascii_upper(c); break;
      case Mapping::Lower: out[i] = ascii_lower(c); break;
      case Mapping::Title: out[i] = in_word ? ascii_lower(c) : ascii_upper(c); break;
      case Mapping::Capitalize: out[i] = i > 0 ? ascii_lower(c) : ascii_upper(c); break;
      case Mapping::Swapcase: out[i] = ascii_lower(c) == c ? ascii_upper(c) : ascii_lower(c); break;
    }
    in_word = is_ascii_letter(c);
  }
  return out;
}

// A capital sigma ends a word when a cased letter comes before it and none after, case-ignorable ones aside.
bool ends_word(const Text& text, std::size_t at, std::size_t next) {
  std::size_t p = at;
  char32_t c = 0;
  do {
    if (p == 0) return false;
    p = before(text, p);
    c = decode_char(text.view(), p);
  } while (is_case_ignorable(c));
  if (!is_cased(c)) return false;
  for (p = next; p < text.size; p += char_bytes(text.data[p])) {
    c = decode_char(text.view(), p);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower_at(std::string& out, const Text& text, std::size_t at, std::size_t next, char32_t c) {
  if (c == 0x3A3) {
    out += ends_word(text, at, next) ? "\xCF\x82" : "\xCF\x83";
  } else {
    append_lower(out, c);
  }
}

void append_mapped(std::string& out, const Text& text, std::size_t at, std::size_t next, Mapping mapping,
                   bool in_word) {
  const char32_t c = decode_char(text.view(), at);
  switch (mapping) {
    case Mapping::Upper: return append_upper(out, c);
    case Mapping::Lower: return append_lower_at(out, text, at, next, c);
    case Mapping::Title: return in_word ? append_lower_at(out, text, at, next, c) : append_title(out, c);
    case Mapping::Capitalize: return at > 0 ? append_lower_at(out, text, at, next, c) : append_title(out, c);
    case Mapping::Swapcase:
      if (is_upper(c)) return append_lower_at(out, text, at, next, c);
      return is_lower(c) ? append_upper(out, c) : append_char(out, c);
  }
}

}  // namespace

Value map_case(Heap& heap, const Text& text, std::string_view name) {
  const Mapping mapping = mapping_of(name);
  heap.touch(text.size);
  if (text.is_ascii() && (text.is_trusted() || is_wholly_marked(text))) {
    return str(heap, ascii_mapped(text.view(), mapping), !text.is_trusted());
  }
  heap.step(text.chars / 4);
  TextBuilder out(heap);
  MarkCursor marks(text);
  std::string piece;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size;) {
    const std::size_t next = at + char_bytes(text.data[at]);
    piece.clear();
    append_mapped(piece, text, at, next, mapping, in_word);
    out.add(piece, marks.touches(at, next));
    in_word = is_cased(decode_char(text.view(), at));
    at = next;
  }
  return out.value();
}

Value strip(Heap& heap, const Text& text, const Value& chars, bool left, bool right) {
  if (!chars.is(Kind::None) && !chars.is(Kind::Str)) fault("strip arg must be None or str");
  const std::string_view set = chars.is(Kind::Str) ? chars.text->view() : std::string_view();
  const auto goes = [&](std::size_t at) {
    if (!chars.is(Kind::Str)) return is_space(decode_char(text.view(), at));
    heap.touch(set.size());
    return set.find(text.view().substr(at, char_bytes(text.data[at]))) != std::string_view::npos;
  };
  std::size_t begin = 0;
  std::size_t end = text.size;
  while (left && begin < end && goes(begin)) begin += char_bytes(text.data[begin]);
  while (right && begin < end && goes(before(text, end))) end = before(text, end);
  return Value::str(slice_text(heap, text, begin, end));
}

namespace {

Value replace_nothing(Heap& heap, const Text& text, const Text& to, std::int64_t count) {
  TextBuilder out(heap);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {  // before each code point, and at the end
    out.add(to);
    heap.step();
    if (at >= text.size) break;
    const std::size_t next = at + char_bytes(text.data[at]);
    out.add(text, at, next);
    at = next;
  }
  out.add(text, at, text.size);
  return out.value();
}

}  // namespace

Value replace(Heap& heap, const Text& text, const Text& from, const Text& to, std::int64_t count) {
  if (count < 0) count = INT64_MAX;
  if (from.size == 0) return replace_nothing(heap, text, to, count);
  TextBuilder out(heap);
  std::size_t at = 0;
  heap.touch(text.size);
  for (; count > 0; --count) {
    const std::size_t found = text.view().find(from.view(), at);
    if (found == std::string_view::npos) break;
    heap.step();
    out.add(text, at, found);
    out.add(to);
    at = found + from.size;
  }
  if (at == 0) return Value::str(&text);
  out.add(text, at, text.size);
  return out.value();
}

std::vector<Value> split_lines(Heap& heap, const Text& text, bool keep_ends) {
  std::vector<Value> lines;
  std::size_t begin = 0;
  heap.touch(text.size);
  for (std::size_t at = 0; at < text.size;) {
    std::size_t next = at + char_bytes(text.data[at]);
    if (is_line_end(decode_char(text.view(), at))) {
      if (text.data[at] == '\r' && next < text.size && text.data[next] == '\n') ++next;
      heap.step();
      lines.push_back(Value::str(slice_text(heap, text, begin, keep_ends ? next : at)));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size) lines.push_back(Value::str(slice_text(heap, text, begin, text.size)));
  return lines;
}

namespace {
template <class Is, class IsNot>
bool all_cased(const Text& text, Is is, IsNot is_not) {
  bool any = false;
  for (std::size_t at = 0; at < text.size; at += char_bytes(text.data[at])) {
    const char32_t c = decode_char(text.view(), at);
    if (is_not(c)) return false;
    any = any || is(c);
  }
  return any;
}
}  // namespace

bool is_all_lower(const Text& text) {
  return all_cased(text, is_lower, [](char32_t c) { return is_upper(c) || is_title(c); });
}
bool is_all_upper(const Text& text) {
  return all_cased(text, is_upper, [](char32_t c) { return is_lower(c) || is_title(c); });
}

}  // namespace rondo::jinja
