// The methods of str a template may call.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "text/jinja/methods.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

namespace {

const Value kNone = Value::none();

const Text& want_text(const Value& value, const char* what) {
  if (!value.is(Kind::Str)) fault(std::string(what) + " must be str, not " + type_name(value));
  return *value.text;
}

Value strip_method(Interpreter& in, const Value& self, CallArgs& args) {
  return strip(in.heap(), *self.text, bind("strip", args, {{"/chars", kNone}})[0], true, true);
}
Value lstrip_method(Interpreter& in, const Value& self, CallArgs& args) {
  return strip(in.heap(), *self.text, bind("lstrip", args, {{"/chars", kNone}})[0], true, false);
}
Value rstrip_method(Interpreter& in, const Value& self, CallArgs& args) {
  return strip(in.heap(), *self.text, bind("rstrip", args, {{"/chars", kNone}})[0], false, true);
}

// ---- splitting

struct Splitter {
  Heap& heap;
  const Text& text;
  std::int64_t left;  // how many more cuts
  std::vector<Value> parts;
  void add(std::size_t begin, std::size_t end) {
    heap.step();
    parts.push_back(Value::str(slice_text(heap, text, begin, end)));
  }
  bool space_at(std::size_t at) const { return is_space(decode_char(text.view(), at)); }
  std::size_t before(std::size_t end) const {
    --end;
    while (end > 0 && (static_cast<unsigned char>(text.data[end]) & 0xC0) == 0x80) --end;
    return end;
  }
};

void split_on_spaces(Splitter& s) {
  std::size_t at = 0;
  const std::size_t n = s.text.size;
  const auto skip = [&](bool spaces) {
    while (at < n && s.space_at(at) == spaces) at += char_bytes(s.text.data[at]);
  };
  for (skip(true); at < n; skip(true)) {
    const std::size_t begin = at;
    if (s.left-- == 0) return s.add(begin, n);
    skip(false);
    s.add(begin, at);
  }
}

void rsplit_on_spaces(Splitter& s) {
  std::size_t end = s.text.size;
  const auto skip = [&](bool spaces) {
    while (end > 0 && s.space_at(s.before(end)) == spaces) end = s.before(end);
  };
  for (skip(true); end > 0; skip(true)) {
    const std::size_t stop = end;
    if (s.left-- == 0) {
      s.add(0, stop);
      break;
    }
    skip(false);
    s.add(end, stop);
  }
  std::reverse(s.parts.begin(), s.parts.end());
}

void split_on(Splitter& s, std::string_view separator) {
  std::size_t at = 0;
  for (; s.left != 0; --s.left) {
    const std::size_t found = s.text.view().find(separator, at);
    if (found == std::string_view::npos) break;
    s.add(at, found);
    at = found + separator.size();
  }
  s.add(at, s.text.size);
}

void rsplit_on(Splitter& s, std::string_view separator) {
  std::size_t end = s.text.size;
  for (; s.left != 0 && end >= separator.size(); --s.left) {
    const std::size_t found = s.text.view().rfind(separator, end - separator.size());
    if (found == std::string_view::npos) break;
    s.add(found + separator.size(), end);
    end = found;
  }
  s.add(0, end);
  std::reverse(s.parts.begin(), s.parts.end());
}

Value any_split(Interpreter& in, const Value& self, CallArgs& args, bool from_right) {
  const std::vector<Value> bound =
      bind(from_right ? "rsplit" : "split", args, {{"sep", kNone}, {"maxsplit", Value::integer(-1)}});
  in.heap().touch(self.text->size);
  Splitter s{in.heap(), *self.text, to_index(bound[1]), {}};
  if (s.left < 0) s.left = -1;
  if (bound[0].is(Kind::None)) {
    from_right ? rsplit_on_spaces(s) : split_on_spaces(s);
  } else {
    const Text& separator = want_text(bound[0], "separator");
    if (separator.size == 0) fault("empty separator");
    from_right ? rsplit_on(s, separator.view()) : split_on(s, separator.view());
  }
  return list_of(in.heap(), s.parts);
}

Value split_method(Interpreter& in, const Value& self, CallArgs& args) { return any_split(in, self, args, false); }
Value rsplit_method(Interpreter& in, const Value& self, CallArgs& args) { return any_split(in, self, args, true); }

Value any_partition(Interpreter& in, const Value& self, CallArgs& args, bool from_right) {
  const std::vector<Value> bound = bind("partition", args, {{"/sep"}});
  const Text& separator = want_text(bound[0], "separator");
  if (separator.size == 0) fault("empty separator");
  Heap& heap = in.heap();
  const Text& text = *self.text;
  heap.touch(text.size);
  const std::size_t at = from_right ? text.view().rfind(separator.view()) : text.view().find(separator.view());
  const Value empty = str(heap, "");
  if (at == std::string_view::npos) {
    return from_right ? tuple_of(heap, std::array{empty, empty, self}) : tuple_of(heap, std::array{self, empty, empty});
  }
  return tuple_of(heap, std::array{Value::str(slice_text(heap, text, 0, at)), bound[0],
                                   Value::str(slice_text(heap, text, at + separator.size, text.size))});
}
Value partition_method(Interpreter& in, const Value& self, CallArgs& args) {
  return any_partition(in, self, args, false);
}
Value rpartition_method(Interpreter& in, const Value& self, CallArgs& args) {
  return any_partition(in, self, args, true);
}

Value splitlines_method(Interpreter& in, const Value& self, CallArgs& args) {
  const std::vector<Value> bound = bind("splitlines", args, {{"keepends", Value::boolean(false)}});
  return list_of(in.heap(), split_lines(in.heap(), *self.text, truthy(bound[0])));
}

// ---- searching

struct Window {
  std::size_t begin, end;  // bytes
  std::size_t first;       // code point at begin
  bool is_valid;           // start <= end, as Python needs even for an empty needle
};

Window window(Heap& heap, const Text& text, const Value& start, const Value& end) {
  const auto n = static_cast<std::int64_t>(text.chars);
  const auto clamp = [n](const Value& v, std::int64_t fallback) {
    if (v.is(Kind::None)) return fallback;
    std::int64_t i = to_index(v);
    if (i < 0) i = std::max<std::int64_t>(i < -n ? 0 : i + n, 0);
    return i;
  };
  const std::int64_t from = clamp(start, 0);
  const std::int64_t to = std::min(clamp(end, n), n);
  if (from > to) return {0, 0, 0, false};
  const auto first = static_cast<std::size_t>(from);
  return {byte_at(heap, text, first), byte_at(heap, text, static_cast<std::size_t>(to)), first, true};
}

std::int64_t search(Interpreter& in, const Value& self, CallArgs& args, const char* name, bool from_right) {
  const std::vector<Value> bound = bind(name, args, {{"/sub"}, {"/start", kNone}, {"/end", kNone}});
  const Text& needle = want_text(bound[0], "argument");
  const Window w = window(in.heap(), *self.text, bound[1], bound[2]);
  if (!w.is_valid) return -1;
  const std::string_view hay = self.text->view().substr(w.begin, w.end - w.begin);
  in.heap().touch(hay.size() * 2);
  const std::size_t at = from_right ? hay.rfind(needle.view()) : hay.find(needle.view());
  if (at == std::string_view::npos) return -1;
  return static_cast<std::int64_t>(w.first + count_chars(hay.substr(0, at)));
}

Value find_method(Interpreter& in, const Value& self, CallArgs& args) {
  return Value::integer(search(in, self, args, "find", false));
}
Value rfind_method(Interpreter& in, const Value& self, CallArgs& args) {
  return Value::integer(search(in, self, args, "rfind", true));
}
Value found_or_fault(std::int64_t at) {
  if (at < 0) fault("substring not found");
  return Value::integer(at);
}
Value index_method(Interpreter& in, const Value& self, CallArgs& args) {
  return found_or_fault(search(in, self, args, "index", false));
}
Value rindex_method(Interpreter& in, const Value& self, CallArgs& args) {
  return found_or_fault(search(in, self, args, "rindex", true));
}

Value count_method(Interpreter& in, const Value& self, CallArgs& args) {
  const std::vector<Value> bound = bind("count", args, {{"/sub"}, {"/start", kNone}, {"/end", kNone}});
  const Text& needle = want_text(bound[0], "argument");
  const Window w = window(in.heap(), *self.text, bound[1], bound[2]);
  if (!w.is_valid) return Value::integer(0);
  const std::string_view hay = self.text->view().substr(w.begin, w.end - w.begin);
  in.heap().touch(hay.size());
  if (needle.size == 0) return Value::integer(static_cast<std::int64_t>(count_chars(hay)) + 1);
  std::int64_t n = 0;
  for (std::size_t at = hay.find(needle.view()); at != std::string_view::npos;
       at = hay.find(needle.view(), at + needle.size))
    ++n;
  return Value::integer(n);
}

Value any_affix(Interpreter& in, const Value& self, CallArgs& args, bool at_end) {
  const char* const name = at_end ? "endswith" : "startswith";
  const std::vector<Value> bound = bind(name, args, {{"/prefix"}, {"/start", kNone}, {"/end", kNone}});
  const Window w = window(in.heap(), *self.text, bound[1], bound[2]);
  const std::string_view text = self.text->view().substr(w.begin, w.end - w.begin);
  const auto fits = [&](const Value& affix) {
    if (!affix.is(Kind::Str))
      fault(std::string(name) + " first arg must be str or a tuple of str, not " + type_name(affix));
    in.heap().touch(affix.text->size);
    return w.is_valid && (at_end ? text.ends_with(affix.text->view()) : text.starts_with(affix.text->view()));
  };
  if (!bound[0].is(Kind::Tuple)) return Value::boolean(fits(bound[0]));
  const auto affixes = bound[0].seq->span();
  return Value::boolean(std::any_of(affixes.begin(), affixes.end(), fits));
}
Value startswith_method(Interpreter& in, const Value& self, CallArgs& args) { return any_affix(in, self, args, false); }
Value endswith_method(Interpreter& in, const Value& self, CallArgs& args) { return any_affix(in, self, args, true); }

Value removeprefix_method(Interpreter& in, const Value& self, CallArgs& args) {
  const Text& prefix = want_text(bind("removeprefix", args, {{"/prefix"}})[0], "argument");
  if (!self.text->view().starts_with(prefix.view())) return self;
  return Value::str(slice_text(in.heap(), *self.text, prefix.size, self.text->size));
}
Value removesuffix_method(Interpreter& in, const Value& self, CallArgs& args) {
  const Text& suffix = want_text(bind("removesuffix", args, {{"/suffix"}})[0], "argument");
  if (!self.text->view().ends_with(suffix.view())) return self;
  return Value::str(slice_text(in.heap(), *self.text, 0, self.text->size - suffix.size));
}

// ---- making

Value replace_method(Interpreter& in, const Value& self, CallArgs& args) {
  const std::vector<Value> bound = bind("replace", args, {{"/old"}, {"/new"}, {"/count", Value::integer(-1)}});
  return replace(in.heap(), *self.text, want_text(bound[0], "replace() argument 1"),
                 want_text(bound[1], "replace() argument 2"), to_index(bound[2]));
}

Value join_method(Interpreter& in, const Value& self, CallArgs& args) {
  const Value parts = bind("join", args, {{"/iterable"}})[0];
  if (!is_iterable(parts)) fault("can only join an iterable");
  TextBuilder out(in.heap());
  std::size_t i = 0;
  for (const Value& part : elements(in.heap(), parts)) {
    in.heap().step();
    if (!part.is(Kind::Str)) {
      fault("sequence item " + std::to_string(i) + ": expected str instance, " + type_name(part) + " found");
    }
    if (i++ > 0) out.add(*self.text);
    out.add(*part.text);
  }
  return out.value();
}

template <char kMapping>
Value case_method(Interpreter& in, const Value& self, CallArgs& args) {
  constexpr std::string_view kName = kMapping == 'u'   ? "upper"
                                     : kMapping == 'l' ? "lower"
                                     : kMapping == 't' ? "title"
                                     : kMapping == 'c' ? "capitalize"
                                                       : "swapcase";
  bind(kName, args, {});
  return map_case(in.heap(), *self.text, kName);
}

Value any_justified(Interpreter& in, const Value& self, CallArgs& args, const char* name, char where) {
  const std::vector<Value> bound = bind(name, args, {{"/width"}, {"/fillchar", str(in.heap(), " ")}});
  const std::int64_t width = to_index(bound[0]);
  if (!bound[1].is(Kind::Str) || bound[1].text->chars != 1)
    fault("The fill character must be exactly one character long");
  return justify(in.heap(), *self.text, width, *bound[1].text, where);
}
Value center_method(Interpreter& in, const Value& self, CallArgs& args) {
  return any_justified(in, self, args, "center", 'c');
}
Value ljust_method(Interpreter& in, const Value& self, CallArgs& args) {
  return any_justified(in, self, args, "ljust", 'l');
}
Value rjust_method(Interpreter& in, const Value& self, CallArgs& args) {
  return any_justified(in, self, args, "rjust", 'r');
}

Value zfill_method(Interpreter& in, const Value& self, CallArgs& args) {
  const std::int64_t width = to_index(bind("zfill", args, {{"/width"}})[0]);
  Heap& heap = in.heap();
  const Text& text = *self.text;
  if (width <= static_cast<std::int64_t>(text.chars)) return self;
  TextBuilder out(heap);
  const std::size_t sign = text.size > 0 && (text.data[0] == '+' || text.data[0] == '-') ? 1 : 0;
  out.add(text, 0, sign);
  out.fill(static_cast<std::size_t>(width) - text.chars, *make_text(heap, "0"));
  out.add(text, sign, text.size);
  return out.value();
}

Value format_method(Interpreter& in, const Value& self, CallArgs& args) { return str_format(in, *self.text, args); }

// ---- asking

template <bool (*kIs)(char32_t), bool kOfEmpty>
Value all_method(Interpreter& in, const Value& self, CallArgs& args) {
  bind("is...", args, {});
  in.heap().touch(self.text->size);
  for (std::size_t at = 0; at < self.text->size; at += char_bytes(self.text->data[at])) {
    if (!kIs(decode_char(self.text->view(), at))) return Value::boolean(false);
  }
  return Value::boolean(kOfEmpty || self.text->size > 0);
}
Value islower_method(Interpreter&, const Value& self, CallArgs& args) {
  bind("islower", args, {});
  return Value::boolean(is_all_lower(*self.text));
}
Value isupper_method(Interpreter&, const Value& self, CallArgs& args) {
  bind("isupper", args, {});
  return Value::boolean(is_all_upper(*self.text));
}
Value isascii_method(Interpreter&, const Value& self, CallArgs& args) {
  bind("isascii", args, {});
  return Value::boolean(self.text->is_ascii());
}
Value istitle_method(Interpreter& in, const Value& self, CallArgs& args) {
  bind("istitle", args, {});
  in.heap().touch(self.text->size);
  bool in_word = false;
  bool any = false;
  for (std::size_t at = 0; at < self.text->size; at += char_bytes(self.text->data[at])) {
    const char32_t c = decode_char(self.text->view(), at);
    if (is_upper(c) || is_title(c)) {
      if (in_word) return Value::boolean(false);
      in_word = any = true;
    } else if (is_lower(c)) {
      if (!in_word) return Value::boolean(false);
    } else {
      in_word = false;
    }
  }
  return Value::boolean(any);
}

}  // namespace

Value justify(Heap& heap, const Text& text, std::int64_t width, const Text& fill, char where) {
  const auto size = static_cast<std::int64_t>(text.chars);
  if (width <= size) return Value::str(&text);
  const std::int64_t pad = width - size;
  const std::int64_t left = where == 'c' ? pad / 2 + (pad & width & 1) : where == 'r' ? pad : 0;
  TextBuilder out(heap);
  out.fill(static_cast<std::size_t>(left), fill);
  out.add(text);
  out.fill(static_cast<std::size_t>(pad - left), fill);
  return out.value();
}

const MethodTable& str_methods() {
  static const MethodTable kTable = {
      {"strip", strip_method},
      {"lstrip", lstrip_method},
      {"rstrip", rstrip_method},
      {"split", split_method},
      {"rsplit", rsplit_method},
      {"splitlines", splitlines_method},
      {"partition", partition_method},
      {"rpartition", rpartition_method},
      {"find", find_method},
      {"rfind", rfind_method},
      {"index", index_method},
      {"rindex", rindex_method},
      {"count", count_method},
      {"startswith", startswith_method},
      {"endswith", endswith_method},
      {"removeprefix", removeprefix_method},
      {"removesuffix", removesuffix_method},
      {"replace", replace_method},
      {"join", join_method},
      {"upper", case_method<'u'>},
      {"lower", case_method<'l'>},
      {"title", case_method<'t'>},
      {"capitalize", case_method<'c'>},
      {"swapcase", case_method<'s'>},
      {"center", center_method},
      {"ljust", ljust_method},
      {"rjust", rjust_method},
      {"zfill", zfill_method},
      {"format", format_method},
      {"isalpha", all_method<is_alpha, false>},
      {"isdigit", all_method<is_digit, false>},
      {"isdecimal", all_method<is_decimal, false>},
      {"isnumeric", all_method<is_numeric, false>},
      {"isalnum", all_method<is_alnum, false>},
      {"isspace", all_method<is_space, false>},
      {"isprintable", all_method<is_printable, true>},
      {"isascii", isascii_method},
      {"islower", islower_method},
      {"isupper", isupper_method},
      {"istitle", istitle_method},
      // Python has them; no template of the family uses them.
      {"casefold", nullptr},
      {"encode", nullptr},
      {"expandtabs", nullptr},
      {"format_map", nullptr},
      {"isidentifier", nullptr},
      {"maketrans", nullptr},
      {"translate", nullptr},
  };
  return kTable;
}

}  // namespace rondo::jinja
