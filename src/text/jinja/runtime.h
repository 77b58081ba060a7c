// The interpreter: walks a Program once, for one render, and owns that render's heap, scopes and output.
//
// Scoping is jinja2's: for, macro, call, filter, with and set blocks open a scope, if does not; `set` writes the
// innermost scope and is gone when it ends, so only a namespace carries a value out of a loop.
#pragma once

#include <ctime>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/jinja/ast.h"
#include "text/jinja/text_builder.h"
#include "text/jinja/value.h"

namespace rondo::jinja {

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<Value, Value>> keywords;  // name (a string), value
};

// Binds a call to named parameters as Python does; a parameter without default is required. A name that starts with
// '/' can only be given by position.
struct Param {
  std::string_view name;
  std::optional<Value> fallback = std::nullopt;
};
std::vector<Value> bind(std::string_view function, const CallArgs& args, std::initializer_list<Param> params);

using Builtin = Value (*)(Interpreter&, const Value& self, CallArgs&);
struct Function {
  Builtin call;
  Value self;             // of a method
  std::string_view name;  // static
};

// Scopes are reused from one turn of a loop to the next, unless a macro has taken hold of them.
struct Scope {
  struct Binding {
    NameId name;
    Value value;
  };
  Scope* parent;
  Binding* bindings = nullptr;
  std::size_t size = 0;
  std::size_t capacity = 0;
  bool is_captured = false;
};

struct MacroObject {
  const MacroDef* def;
  Scope* closure;
};

struct LoopObject {
  const Value* items;
  std::size_t size;
  std::size_t index0;
  std::int64_t depth0;
  const Stmt* recursive;  // the loop to render again, or null
  Scope* outer;
  Value changed;  // what changed() saw last
};

class Interpreter {
 public:
  Interpreter(const Program& program, const json::Object& variables, std::time_t now);
  MarkedText run();
  int line() const { return line_; }  // where it stands

  Heap& heap() { return heap_; }
  std::time_t now() const { return now_; }
  Value call(const Value& callee, CallArgs& args);
  Value attribute(const Value& object, const Text& name);  // object.name, else object[name]
  Value item(const Value& object, const Value& key);       // object[key], else object.key
  Value binary(Op op, const Value& a, const Value& b);
  bool contains(const Value& container, const Value& element);
  Value filter_named(const Value& name, const Value& input, CallArgs& args);
  bool test_named(const Value& name, const Value& input, CallArgs& args);
  Value recurse(const LoopObject& loop, const Value& items);

 private:
  enum class Flow { Normal, Break, Continue };
  class Entered;

  Value import(const json::Value& value);
  void import_variables(const json::Object& variables);
  void add_globals();

  Flow run_body(const Body& body, Scope& scope);
  Flow run_stmt(const Stmt& stmt, Scope& scope);
  Flow run_if(const Stmt& stmt, Scope& scope);
  void run_for(const Stmt& stmt, Scope& scope, const Value& iterable, std::int64_t depth0);
  std::span<const Value> loop_items(const Stmt& stmt, Scope& scope, const Value& iterable);
  Flow run_captured(const Body& body, Scope& scope, TextBuilder& into);
  Flow run_set_block(const Stmt& stmt, Scope& scope);
  Flow run_filter_block(const Stmt& stmt, Scope& scope);
  Flow run_with(const Stmt& stmt, Scope& scope);
  void run_call_block(const Stmt& stmt, Scope& scope);
  void write(const Value& value);

  void assign(const Target& target, const Value& value, Scope& scope);
  void bind_name(Scope& scope, NameId name, const Value& value);
  Scope* new_scope(Scope* parent) { return heap_.make<Scope>(parent); }
  Value lookup(NameId name, const Scope& scope);
  Value make_macro(const MacroDef& def, Scope& scope);
  Value call_macro(const MacroObject& macro, CallArgs& args);

  Value eval(const Expr& expr, Scope& scope);
  Value eval_dict(const Expr& expr, Scope& scope);
  Value eval_items(const Expr& expr, Scope& scope);
  Value eval_slice(const Value& object, const Expr& expr, Scope& scope);
  Value eval_call(const Expr& expr, Scope& scope, const Value* caller);
  Value eval_filter(const Expr& expr, Scope& scope, const Value* captured);
  Value eval_test(const Expr& expr, Scope& scope);
  Value eval_compare(const Expr& expr, Scope& scope);
  Value eval_concat(const Expr& expr, Scope& scope);
  Value eval_if(const Expr& expr, Scope& scope);
  Value eval_item(const Expr& expr, Scope& scope);
  CallArgs eval_args(const ArgList& list, Scope& scope);

  const Program& program_;
  Heap heap_;
  std::time_t now_;
  std::vector<Value> globals_;  // by NameId; Missing where there is none
  TextBuilder output_;
  TextBuilder* out_ = &output_;  // where writing goes now
  int line_ = 1;
  int depth_ = 0;
  std::uint64_t loop_turns_ = 0;
  NameId loop_name_ = -1;  // -1: the template never mentions it
  NameId caller_name_ = -1;
  NameId varargs_name_ = -1;
  NameId kwargs_name_ = -1;
};

// operators.cpp
Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step);
Value negate(const Value& value);
std::int64_t to_index(const Value& value);  // of an integral; Fault otherwise

// functions.cpp
Value find_global(Heap& heap, std::string_view name);  // Missing when jinja2 has none of that name

// methods.cpp: attributes Python objects have by themselves. Missing when there is none.
Value find_attribute(Interpreter& in, const Value& object, std::string_view name);
Value strip(Heap& heap, const Text& text, const Value& chars, bool left, bool right);
Value replace(Heap& heap, const Text& text, const Text& from, const Text& to, std::int64_t count);
Value map_case(Heap& heap, const Text& text, std::string_view name);  // upper, lower, title, capitalize, swapcase
std::vector<Value> split_lines(Heap& heap, const Text& text, bool keep_ends);
const Text* escape_html(Heap& heap, const Text& text);  // itself when it is markup; the result is markup
bool is_all_lower(const Text& text);
bool is_all_upper(const Text& text);

// filters.cpp, tests.cpp
FilterFn find_filter(std::string_view name);
std::string unknown_filter(std::string_view name);  // the words for one that is unknown or refused
TestFn find_test(std::string_view name);

// format.cpp: str(), repr() and json.dumps of any value, and the two formatting languages.
const Text& as_text(Heap& heap, const Value& value);  // str(value)
void append_str(TextBuilder& out, Heap& heap, const Value& value);
void append_repr(TextBuilder& out, Heap& heap, const Value& value);
std::string repr_of(Heap& heap, const Value& value);
std::string float_repr(double value);
struct JsonStyle {
  std::optional<const Text*> indent;  // one level of it
  const Text* item_separator;
  const Text* key_separator;
  bool ensure_ascii = false;
  bool sort_keys = false;
};
void append_json(TextBuilder& out, Heap& heap, const Value& value, const JsonStyle& style, int level = 0);

// percent_format.cpp, str_format.cpp
Value percent_format(Interpreter& in, const Text& format, const Value& args);
Value str_format(Interpreter& in, const Text& format, const CallArgs& args);

// numbers.cpp: Python's int(text, base), float(text), round.
std::optional<std::int64_t> parse_int(std::string_view text, std::int64_t base);
std::optional<double> parse_float(std::string_view text);
Value to_int(double value);  // int(value)
Value round_to(const Value& value, std::int64_t digits);

}  // namespace rondo::jinja
