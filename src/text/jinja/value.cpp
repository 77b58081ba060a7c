#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

std::int64_t Range::size() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

const Text* borrow_text(Heap& heap, std::string_view bytes, bool untrusted) {
  heap.touch(bytes.size());
  Text* const text = heap.make<Text>();
  text->data = bytes.data();
  text->size = bytes.size();
  text->chars = count_chars(bytes);
  if (untrusted && !bytes.empty()) {
    text->marks = heap.make<ByteRange>(std::size_t{0}, bytes.size());
    text->num_marks = 1;
  }
  return text;
}

const Text* make_text(Heap& heap, std::string_view bytes, bool untrusted) {
  char* const copy = heap.bytes(bytes.size());
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  return borrow_text(heap, {copy, bytes.size()}, untrusted);
}

const Text* slice_text(Heap& heap, const Text& text, std::size_t begin, std::size_t end) {
  if (begin == 0 && end == text.size && !text.markup) return &text;
  const std::string_view bytes = text.view().substr(begin, end - begin);
  Text* const slice = heap.make<Text>();
  slice->data = bytes.data();
  slice->size = bytes.size();
  if (text.is_ascii()) {
    slice->chars = bytes.size();
  } else {
    heap.touch(bytes.size());
    slice->chars = count_chars(bytes);
  }
  const ByteRange* const marks_end = text.marks + text.num_marks;
  const ByteRange* const first =
      std::partition_point(text.marks, marks_end, [begin](const ByteRange& mark) { return mark.end <= begin; });
  const ByteRange* const last =
      std::partition_point(first, marks_end, [end](const ByteRange& mark) { return mark.begin < end; });
  if (first == last) return slice;
  slice->num_marks = static_cast<std::size_t>(last - first);
  ByteRange* const marks = heap.array<ByteRange>(slice->num_marks);
  for (std::size_t i = 0; i < slice->num_marks; ++i) {
    marks[i] = {std::max(first[i].begin, begin) - begin, std::min(first[i].end, end) - begin};
  }
  slice->marks = marks;
  return slice;
}

Value str(Heap& heap, std::string_view bytes, bool untrusted) { return Value::str(make_text(heap, bytes, untrusted)); }

namespace {
const Sequence* sequence_of(Heap& heap, std::span<const Value> items) {
  Value* const copy = heap.array<Value>(items.size());
  std::copy(items.begin(), items.end(), copy);
  return heap.make<Sequence>(copy, items.size());
}
}  // namespace

Value list_of(Heap& heap, std::span<const Value> items) { return Value::list(sequence_of(heap, items)); }
Value tuple_of(Heap& heap, std::span<const Value> items) { return Value::tuple(sequence_of(heap, items)); }

Value iterator_of(Heap& heap, std::span<const Value> items) {
  const Sequence* const copy = sequence_of(heap, items);
  Value v = Value::of(Kind::Iterator);
  v.iterator = heap.make<Iterator>(copy->items, copy->size, std::size_t{0});
  return v;
}

Value undefined_name(Heap& heap, const Text* name) {
  Value v = Value::of(Kind::Undefined);
  v.why = heap.make<UndefinedWhy>(nullptr, Kind::Missing, Value::str(name));
  return v;
}

Value undefined_hint(Heap& heap, std::string_view hint) {
  Value v = Value::of(Kind::Undefined);
  v.why = heap.make<UndefinedWhy>(make_text(heap, hint), Kind::Missing, Value());
  return v;
}

// ---- hashing and equality

namespace {

std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  return h;
}

std::uint64_t hash_number(const Value& v) {
  if (v.kind == Kind::Float) {
    // An integral float is the same key as the integer.
    if (std::floor(v.f) == v.f && std::fabs(v.f) < 9.2e18)
      return mix(static_cast<std::uint64_t>(static_cast<std::int64_t>(v.f)));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v.f, sizeof(bits));
    return mix(bits);
  }
  return mix(static_cast<std::uint64_t>(v.as_int()));
}

}  // namespace

std::uint64_t hash_of(Heap& heap, const Value& value) {
  heap.step();
  switch (value.kind) {
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float: return hash_number(value);
    case Kind::Str: heap.touch(value.text->size); return std::hash<std::string_view>{}(value.text->view());
    case Kind::Tuple: {
      const Nested nested(heap);
      std::uint64_t h = 0x9e3779b97f4a7c15ULL;
      for (const Value& item : value.seq->span()) h = mix(h * 31 + hash_of(heap, item));
      return h;
    }
    case Kind::List:
    case Kind::Dict:
    case Kind::View: fault(std::string("unhashable type: '") + type_name(value) + "'");
    case Kind::Undefined:
    case Kind::None: return static_cast<std::uint64_t>(value.kind);
    default: return mix(reinterpret_cast<std::uintptr_t>(value.seq));
  }
}

namespace {

bool equal_dicts(Heap& heap, const Dict& a, const Dict& b) {
  if (a.size != b.size) return false;
  for (const Dict::Entry& entry : a.span()) {
    const Value* const other = dict_find(heap, b, entry.key);
    if (other == nullptr || !equal(heap, entry.value, *other)) return false;
  }
  return true;
}

bool equal_sequences(Heap& heap, const Sequence& a, const Sequence& b) {
  if (a.size != b.size) return false;
  for (std::size_t i = 0; i < a.size; ++i) {
    if (!equal(heap, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
  if (a.kind == Kind::Float && b.kind == Kind::Float) return a.f == b.f;
  const double f = a.kind == Kind::Float ? a.f : b.f;
  const std::int64_t i = a.kind == Kind::Float ? b.as_int() : a.as_int();
  return std::floor(f) == f && std::fabs(f) < 9.2e18 && static_cast<std::int64_t>(f) == i;
}

}  // namespace

bool equal(Heap& heap, const Value& a, const Value& b) {
  heap.step();
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::Undefined:
    case Kind::None: return true;
    case Kind::Str:
      if (a.text->size != b.text->size) return false;
      heap.touch(a.text->size);
      return a.text->view() == b.text->view();
    case Kind::List:
    case Kind::Tuple: {
      if (a.seq == b.seq) return true;
      const Nested nested(heap);
      return equal_sequences(heap, *a.seq, *b.seq);
    }
    case Kind::Dict: {
      if (a.dict == b.dict) return true;
      const Nested nested(heap);
      return equal_dicts(heap, *a.dict, *b.dict);
    }
    case Kind::Range: {
      const std::int64_t n = a.range->size();
      if (n != b.range->size()) return false;
      return n == 0 || (a.range->start == b.range->start && (n == 1 || a.range->step == b.range->step));
    }
    default: return a.seq == b.seq;
  }
}

namespace {

bool less_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int();
  return a.as_double() < b.as_double();
}

[[noreturn]] void not_comparable(const Value& a, const Value& b, const char* op) {
  if (a.is_undefined()) use_of_undefined(a);
  if (b.is_undefined()) use_of_undefined(b);
  fault(std::string("'") + op + "' not supported between instances of '" + type_name(a) + "' and '" + type_name(b) +
        "'");
}

}  // namespace

bool less(Heap& heap, const Value& a, const Value& b, const char* op) {
  heap.step();
  if (a.is_number() && b.is_number()) return less_numbers(a, b);
  if (a.kind != b.kind) not_comparable(a, b, op);
  if (a.kind == Kind::Str) {
    heap.touch(std::min(a.text->size, b.text->size));
    return a.text->view() < b.text->view();  // UTF-8 orders as its code points do
  }
  if (a.kind != Kind::List && a.kind != Kind::Tuple) not_comparable(a, b, op);
  const Nested nested(heap);
  const std::size_t n = std::min(a.seq->size, b.seq->size);
  for (std::size_t i = 0; i < n; ++i) {
    if (!equal(heap, a.seq->items[i], b.seq->items[i])) return less(heap, a.seq->items[i], b.seq->items[i], op);
  }
  return a.seq->size < b.seq->size;
}

// ---- dictionaries

namespace {

constexpr std::size_t kScanEntries = 8;  // up to so many entries a scan is as quick as an index

std::size_t find_entry(Heap& heap, const Dict& dict, const Value& key, std::uint64_t hash) {
  if (dict.index == nullptr) {
    for (std::size_t i = 0; i < dict.size; ++i) {
      if (dict.entries[i].hash == hash && equal(heap, dict.entries[i].key, key)) return i;
    }
    return dict.size;
  }
  const std::size_t mask = dict.index_size - 1;
  for (std::size_t at = hash & mask; dict.index[at] != 0; at = (at + 1) & mask) {
    heap.step();
    const std::size_t i = dict.index[at] - 1;
    if (dict.entries[i].hash == hash && equal(heap, dict.entries[i].key, key)) return i;
  }
  return dict.size;
}

void index_entry(Dict& dict, std::size_t i) {
  const std::size_t mask = dict.index_size - 1;
  std::size_t at = dict.entries[i].hash & mask;
  while (dict.index[at] != 0) at = (at + 1) & mask;
  dict.index[at] = static_cast<std::uint32_t>(i + 1);
}

void grow(Heap& heap, Dict& dict) {
  const std::size_t capacity = dict.capacity == 0 ? 4 : dict.capacity * 2;
  Dict::Entry* const entries = heap.array<Dict::Entry>(capacity);
  std::copy(dict.entries, dict.entries + dict.size, entries);
  dict.entries = entries;
  dict.capacity = capacity;
  if (capacity <= kScanEntries) return;
  dict.index_size = capacity * 2;
  dict.index = heap.array<std::uint32_t>(dict.index_size);
  for (std::size_t i = 0; i < dict.size; ++i) index_entry(dict, i);
}

}  // namespace

const Value* dict_find(Heap& heap, const Dict& dict, const Value& key) {
  const std::uint64_t hash = hash_of(heap, key);
  const std::size_t i = find_entry(heap, dict, key, hash);
  return i == dict.size ? nullptr : &dict.entries[i].value;
}

void dict_set(Heap& heap, Dict& dict, const Value& key, const Value& value) {
  const std::uint64_t hash = hash_of(heap, key);
  const std::size_t i = find_entry(heap, dict, key, hash);
  if (i < dict.size) {
    dict.entries[i].value = value;  // the first key stays, as in Python
    return;
  }
  if (dict.size == dict.capacity) grow(heap, dict);
  dict.entries[dict.size] = {key, value, hash};
  if (dict.index != nullptr) index_entry(dict, dict.size);
  ++dict.size;
}

// ---- what every value can be asked

bool truthy(const Value& value) {
  switch (value.kind) {
    case Kind::Missing:
    case Kind::Undefined:
    case Kind::None: return false;
    case Kind::Bool: return value.b;
    case Kind::Int: return value.i != 0;
    case Kind::Float: return value.f != 0.0;
    case Kind::Str: return value.text->size != 0;
    case Kind::List:
    case Kind::Tuple: return value.seq->size != 0;
    case Kind::Dict: return value.dict->size != 0;
    case Kind::Range: return value.range->size() != 0;
    case Kind::View: return value.view->dict->size != 0;
    case Kind::Loop: return value.loop->size != 0;
    default: return true;
  }
}

const char* type_name(Kind kind) {
  switch (kind) {
    case Kind::Missing: return "missing";
    case Kind::Undefined: return "Undefined";
    case Kind::None: return "NoneType";
    case Kind::Bool: return "bool";
    case Kind::Int: return "int";
    case Kind::Float: return "float";
    case Kind::Str: return "str";
    case Kind::List: return "list";
    case Kind::Tuple: return "tuple";
    case Kind::Dict: return "dict";
    case Kind::Namespace: return "Namespace";
    case Kind::Range: return "range";
    case Kind::View: return "dict view";
    case Kind::Iterator: return "generator";
    case Kind::Function: return "function";
    case Kind::Macro: return "Macro";
    case Kind::Loop: return "LoopContext";
    case Kind::Cycler: return "Cycler";
    case Kind::Joiner: return "Joiner";
  }
  return "?";
}

void use_of_undefined(const Value& undefined) {
  const UndefinedWhy& why = *undefined.why;
  if (why.hint != nullptr) fault(std::string(why.hint->view()));
  Heap heap;  // only for the words of this message
  const std::string name = repr_of(heap, why.name);
  if (why.of == Kind::Missing) fault(name + " is undefined");
  std::string object;
  switch (why.of) {
    case Kind::None: object = "None"; break;
    case Kind::Namespace: object = "jinja2.utils.Namespace object"; break;
    case Kind::Macro: object = "jinja2.runtime.Macro object"; break;
    case Kind::Loop: object = "jinja2.runtime.LoopContext object"; break;
    case Kind::Cycler: object = "jinja2.utils.Cycler object"; break;
    case Kind::Joiner: object = "jinja2.utils.Joiner object"; break;
    default: object = std::string(type_name(why.of)) + " object";
  }
  if (!why.name.is(Kind::Str)) fault(object + " has no element " + name);
  fault(fmt::format("'{}' has no attribute {}", object, name));
}

bool is_iterable(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined:
    case Kind::Str:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::Range:
    case Kind::View:
    case Kind::Iterator:
    case Kind::Loop: return true;
    default: return false;
  }
}

std::int64_t length_of(const Value& value) {
  switch (value.kind) {
    case Kind::Undefined: return 0;
    case Kind::Str: return static_cast<std::int64_t>(value.text->chars);
    case Kind::List:
    case Kind::Tuple: return static_cast<std::int64_t>(value.seq->size);
    case Kind::Dict: return static_cast<std::int64_t>(value.dict->size);
    case Kind::Range: return value.range->size();
    case Kind::View: return static_cast<std::int64_t>(value.view->dict->size);
    case Kind::Loop: return static_cast<std::int64_t>(value.loop->size);
    default: fault(std::string("object of type '") + type_name(value) + "' has no len()");
  }
}

namespace {

std::span<const Value> characters(Heap& heap, const Text& text) {
  Value* const items = heap.array<Value>(text.chars);
  heap.step(text.chars);
  std::size_t at = 0;
  for (std::size_t i = 0; i < text.chars; ++i) {
    const std::size_t next = at + char_bytes(text.data[at]);
    items[i] = Value::str(slice_text(heap, text, at, next));
    at = next;
  }
  return {items, text.chars};
}

std::span<const Value> view_elements(Heap& heap, const View& view) {
  Value* const items = heap.array<Value>(view.dict->size);
  heap.step(view.dict->size);
  for (std::size_t i = 0; i < view.dict->size; ++i) {
    const Dict::Entry& entry = view.dict->entries[i];
    switch (view.of) {
      case View::Of::Keys: items[i] = entry.key; break;
      case View::Of::Values: items[i] = entry.value; break;
      case View::Of::Items: items[i] = tuple_of(heap, std::array{entry.key, entry.value}); break;
    }
  }
  return {items, view.dict->size};
}

}  // namespace

std::span<const Value> elements(Heap& heap, const Value& value) {
  switch (value.kind) {
    case Kind::Undefined: return {};
    case Kind::Str: return characters(heap, *value.text);
    case Kind::List:
    case Kind::Tuple: return value.seq->span();
    case Kind::Dict: return view_elements(heap, {View::Of::Keys, value.dict});
    case Kind::View: return view_elements(heap, *value.view);
    case Kind::Range: {
      const std::int64_t n = value.range->size();
      heap.step(static_cast<std::uint64_t>(n));
      Value* const items = heap.array<Value>(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) items[i] = Value::integer(value.range->at(i));
      return {items, static_cast<std::size_t>(n)};
    }
    case Kind::Iterator: {
      Iterator& it = *value.iterator;
      const std::span<const Value> rest(it.items + it.pos, it.size - it.pos);
      it.pos = it.size;
      return rest;
    }
    case Kind::Loop: fault("iterating over the loop variable is not supported");
    default: fault(std::string("'") + type_name(value) + "' object is not iterable");
  }
}

std::size_t byte_at(Heap& heap, const Text& text, std::size_t index) {
  if (text.is_ascii()) return index;
  if (index == text.chars) return text.size;
  heap.touch(index);
  std::size_t at = 0;
  for (std::size_t i = 0; i < index; ++i) at += char_bytes(text.data[at]);
  return at;
}

}  // namespace rondo::jinja
