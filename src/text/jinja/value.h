// Value: what a template's expressions are made of, with Python's semantics and the marks of untrusted bytes.
//
// A Value is two words and points into a Heap. All values are immutable, except for namespaces, which templates may
// assign to, and iterators, which are used up. Text keeps, beside its bytes, which of them came from the request.
// Integers are 64 bits wide, not unbounded as Python's: an overflow is a Fault, never a wrong number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/jinja/heap.h"
#include "text/marked_text.h"

namespace rondo::jinja {

enum class Kind : std::uint8_t {
  Missing,  // no value at all: an argument not given, a name not bound; templates never see it
  Undefined,
  None,
  Bool,
  Int,
  Float,
  Str,
  List,
  Tuple,
  Dict,
  Namespace,
  Range,
  View,
  Iterator,
  Function,
  Macro,
  Loop,
  Cycler,
  Joiner,
};

struct Text {
  const char* data = "";
  std::size_t size = 0;              // bytes, always valid UTF-8
  std::size_t chars = 0;             // code points
  const ByteRange* marks = nullptr;  // untrusted bytes: ascending, disjoint, never adjacent, never empty
  std::size_t num_marks = 0;
  bool markup = false;  // came from `safe` or `escape`: may be printed and joined, not computed with
  std::string_view view() const { return {data, size}; }
  bool is_ascii() const { return chars == size; }
  bool is_trusted() const { return num_marks == 0; }
};

struct Sequence;
struct Dict;
struct Range;
struct View;
struct Iterator;
struct Function;
struct MacroObject;
struct LoopObject;
struct CyclerObject;
struct JoinerObject;
struct UndefinedWhy;

struct Value {
  Kind kind = Kind::Missing;
  union {
    std::int64_t i = 0;
    bool b;
    double f;
    const Text* text;
    const Sequence* seq;  // List, Tuple
    Dict* dict;           // Dict, Namespace
    const Range* range;   // Range
    const View* view;     // View
    Iterator* iterator;   // Iterator
    const Function* function;
    const MacroObject* macro;
    LoopObject* loop;
    CyclerObject* cycler;
    JoinerObject* joiner;
    const UndefinedWhy* why;  // Undefined
  };

  static Value none() { return of(Kind::None); }
  static Value boolean(bool b) {
    Value v = of(Kind::Bool);
    v.b = b;
    return v;
  }
  static Value integer(std::int64_t i) {
    Value v = of(Kind::Int);
    v.i = i;
    return v;
  }
  static Value real(double f) {
    Value v = of(Kind::Float);
    v.f = f;
    return v;
  }
  static Value str(const Text* text) {
    Value v = of(Kind::Str);
    v.text = text;
    return v;
  }
  static Value list(const Sequence* seq) {
    Value v = of(Kind::List);
    v.seq = seq;
    return v;
  }
  static Value tuple(const Sequence* seq) {
    Value v = of(Kind::Tuple);
    v.seq = seq;
    return v;
  }
  static Value of_dict(Dict* dict, Kind kind = Kind::Dict) {
    Value v = of(kind);
    v.dict = dict;
    return v;
  }
  static Value of(Kind kind) {
    Value v;
    v.kind = kind;
    return v;
  }

  bool is(Kind k) const { return kind == k; }
  bool is_missing() const { return kind == Kind::Missing; }
  bool is_undefined() const { return kind == Kind::Undefined; }
  bool is_integral() const { return kind == Kind::Int || kind == Kind::Bool; }
  bool is_number() const { return is_integral() || kind == Kind::Float; }
  std::int64_t as_int() const { return kind == Kind::Bool ? std::int64_t{b} : i; }              // of an integral
  double as_double() const { return kind == Kind::Float ? f : static_cast<double>(as_int()); }  // of a number
};

struct Sequence {
  const Value* items = nullptr;
  std::size_t size = 0;
  bool is_group = false;  // a tuple of groupby: its parts are also called grouper and list
  std::span<const Value> span() const { return {items, size}; }
};

struct Range {
  std::int64_t start, stop, step;
  std::int64_t size() const;
  std::int64_t at(std::int64_t i) const { return start + i * step; }
};

struct View {
  enum class Of { Keys, Values, Items } of;
  const Dict* dict;
};

// A Python generator or iterator whose elements are already known: read once, from `pos`.
struct Iterator {
  const Value* items;
  std::size_t size;
  std::size_t pos;
};

struct CyclerObject {
  const Value* items;
  std::size_t size;
  std::size_t pos;
};

struct JoinerObject {
  Value separator;
  bool used;
};

// Why a value is undefined, to be told when it is used.
struct UndefinedWhy {
  const Text* hint = nullptr;  // the whole message, when there is one
  Kind of = Kind::Missing;     // the kind of the object that lacks `name`; Missing: `name` is a variable
  Value name;
};

// Insertion order, as Python's: a list of entries, and past a few an open-addressed index over them.
struct Dict {
  struct Entry {
    Value key;
    Value value;
    std::uint64_t hash;
  };
  Entry* entries = nullptr;
  std::size_t size = 0;
  std::size_t capacity = 0;
  std::uint32_t* index = nullptr;  // [index_size]: entry number + 1, or 0; a power of two, at most half full
  std::size_t index_size = 0;
  std::span<const Entry> span() const { return {entries, size}; }
};

// Building. make_text copies `bytes`; `untrusted` marks all of them.
const Text* make_text(Heap& heap, std::string_view bytes, bool untrusted = false);
const Text* borrow_text(Heap& heap, std::string_view bytes, bool untrusted);  // bytes outlive the heap's values
const Text* slice_text(Heap& heap, const Text& text, std::size_t begin, std::size_t end);  // bytes; shares them
Value str(Heap& heap, std::string_view bytes, bool untrusted = false);
Value list_of(Heap& heap, std::span<const Value> items);
Value tuple_of(Heap& heap, std::span<const Value> items);
Value iterator_of(Heap& heap, std::span<const Value> items);
Value undefined_name(Heap& heap, const Text* name);
Value undefined_hint(Heap& heap, std::string_view hint);

const Value* dict_find(Heap& heap, const Dict& dict, const Value& key);  // Fault when key cannot be hashed
void dict_set(Heap& heap, Dict& dict, const Value& key, const Value& value);

// Python's ==, <, hash, bool() and type(x).__name__.
bool equal(Heap& heap, const Value& a, const Value& b);
bool less(Heap& heap, const Value& a, const Value& b, const char* op = "<");  // Fault between unlike types
std::uint64_t hash_of(Heap& heap, const Value& value);
bool truthy(const Value& value);
const char* type_name(Kind kind);
inline const char* type_name(const Value& v) { return type_name(v.kind); }

[[noreturn]] void use_of_undefined(const Value& undefined);  // Fault in jinja2's words

bool is_iterable(const Value& value);
std::int64_t length_of(const Value& value);  // Python's len; Fault for what has none

// The elements of an iterable as Python's iter would give them; an iterator is used up. Fault for what is not iterable.
std::span<const Value> elements(Heap& heap, const Value& value);

// The byte position of code point `index` (0 .. chars).
std::size_t byte_at(Heap& heap, const Text& text, std::size_t index);

}  // namespace rondo::jinja
