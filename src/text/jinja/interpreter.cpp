// Names, values, calls and expressions; statements are in statements.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/entered.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo::jinja {

Interpreter::Interpreter(const Program& program, const json::Object& variables, std::time_t now)
    : program_(program), now_(now), globals_(program.names.size()), output_(heap_) {
  for (std::size_t i = 0; i < program.names.size(); ++i) {
    const std::string_view name = program.names[i]->view();
    const json::Value* const variable = variables.if_contains(name);
    globals_[i] = variable != nullptr ? import(*variable) : find_global(heap_, name);
    if (name == "loop") loop_name_ = static_cast<NameId>(i);
    if (name == "caller") caller_name_ = static_cast<NameId>(i);
    if (name == "varargs") varargs_name_ = static_cast<NameId>(i);
    if (name == "kwargs") kwargs_name_ = static_cast<NameId>(i);
  }
}

MarkedText Interpreter::run() {
  run_body(program_.body, *new_scope(nullptr));
  return output_.take();
}

// The request's values; every string in them is untrusted, keys too.
Value Interpreter::import(const json::Value& value) {
  const Nested nested(heap_);
  heap_.step();
  const auto text = [this](std::string_view bytes) {
    if (is_valid_utf8(bytes)) return Value::str(borrow_text(heap_, bytes, true));
    return Value::str(make_text(heap_, replace_invalid_utf8(bytes), true));
  };
  switch (value.kind()) {
    case boost::json::kind::null: return Value::none();
    case boost::json::kind::bool_: return Value::boolean(value.get_bool());
    case boost::json::kind::int64: return Value::integer(value.get_int64());
    case boost::json::kind::uint64:
      if (value.get_uint64() > static_cast<std::uint64_t>(INT64_MAX)) {
        fault("the integer " + std::to_string(value.get_uint64()) + " does not fit in 64 bits with sign");
      }
      return Value::integer(static_cast<std::int64_t>(value.get_uint64()));
    case boost::json::kind::double_: return Value::real(value.get_double());
    case boost::json::kind::string: return text(value.get_string());
    case boost::json::kind::array: {
      const json::Array& array = value.get_array();
      Value* const items = heap_.array<Value>(array.size());
      for (std::size_t i = 0; i < array.size(); ++i) items[i] = import(array[i]);
      return Value::list(heap_.make<Sequence>(items, array.size()));
    }
    case boost::json::kind::object: {
      Dict* const dict = heap_.make<Dict>();
      for (const auto& member : value.get_object()) dict_set(heap_, *dict, text(member.key()), import(member.value()));
      return Value::of_dict(dict);
    }
  }
  return Value::none();
}

// ---- names

Value Interpreter::lookup(NameId name, const Scope& scope) {
  for (const Scope* s = &scope; s != nullptr; s = s->parent) {
    for (std::size_t i = 0; i < s->size; ++i) {
      if (s->bindings[i].name == name) return s->bindings[i].value;
    }
  }
  const Value& global = globals_[static_cast<std::size_t>(name)];
  return global.is_missing() ? undefined_name(heap_, program_.names[static_cast<std::size_t>(name)]) : global;
}

void Interpreter::bind_name(Scope& scope, NameId name, const Value& value) {
  for (std::size_t i = 0; i < scope.size; ++i) {
    if (scope.bindings[i].name == name) {
      scope.bindings[i].value = value;
      return;
    }
  }
  if (scope.size == scope.capacity) {
    const std::size_t capacity = std::max<std::size_t>(4, scope.capacity * 2);
    Scope::Binding* const bindings = heap_.array<Scope::Binding>(capacity);
    std::copy(scope.bindings, scope.bindings + scope.size, bindings);
    scope.bindings = bindings;
    scope.capacity = capacity;
  }
  scope.bindings[scope.size++] = {name, value};
}

void Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  if (target.kind == Target::Kind::Name) return bind_name(scope, target.name, value);
  if (target.kind == Target::Kind::Attribute) {
    const Value space = lookup(target.name, scope);
    if (!space.is(Kind::Namespace)) fault("cannot assign attribute on non-namespace object");
    return dict_set(heap_, *space.dict, target.attribute, value);
  }
  if (!is_iterable(value)) fault(std::string("cannot unpack non-iterable ") + type_name(value) + " object");
  const std::span<const Value> parts = elements(heap_, value);
  const std::string expected = "(expected " + std::to_string(target.parts.size());
  if (parts.size() > target.parts.size()) fault("too many values to unpack " + expected + ")");
  if (parts.size() < target.parts.size()) {
    fault("not enough values to unpack " + expected + ", got " + std::to_string(parts.size()) + ")");
  }
  for (std::size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], parts[i], scope);
}

// ---- attributes and items

Value Interpreter::attribute(const Value& object, const Text& name) {
  if (object.is_undefined()) use_of_undefined(object);
  const Value found = find_attribute(*this, object, name.view());
  if (!found.is_missing()) return found;
  if (object.is(Kind::Dict)) {
    if (const Value* const value = dict_find(heap_, *object.dict, Value::str(&name))) return *value;
  }
  Value undefined = Value::of(Kind::Undefined);
  undefined.why = heap_.make<UndefinedWhy>(nullptr, object.kind, Value::str(&name));
  return undefined;
}

namespace {

bool is_hashable(const Value& value) { return !value.is(Kind::List) && !value.is(Kind::Dict) && !value.is(Kind::View); }

// object[key] of a sequence; Missing when the index is out of range.
Value at_index(Heap& heap, const Value& object, std::int64_t index) {
  const std::int64_t n = length_of(object);
  if (index < 0) index += n;
  if (index < 0 || index >= n) return {};
  const auto i = static_cast<std::size_t>(index);
  if (object.is(Kind::Range)) return Value::integer(object.range->at(index));
  if (!object.is(Kind::Str)) return object.seq->items[i];
  const std::size_t at = byte_at(heap, *object.text, i);
  return Value::str(slice_text(heap, *object.text, at, at + char_bytes(object.text->data[at])));
}

}  // namespace

Value Interpreter::item(const Value& object, const Value& key) {
  if (object.is_undefined()) use_of_undefined(object);
  switch (object.kind) {
    case Kind::Dict:
      if (!is_hashable(key)) break;
      if (const Value* const value = dict_find(heap_, *object.dict, key)) return *value;
      break;
    case Kind::Str:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
      if (!key.is_integral()) break;
      if (const Value value = at_index(heap_, object, key.as_int()); !value.is_missing()) return value;
      break;
    default: break;
  }
  if (key.is(Kind::Str)) {
    const Value found = find_attribute(*this, object, key.text->view());
    if (!found.is_missing()) return found;
  }
  Value undefined = Value::of(Kind::Undefined);
  undefined.why = heap_.make<UndefinedWhy>(nullptr, object.kind, key);
  return undefined;
}

// ---- calls

std::vector<Value> bind(std::string_view function, const CallArgs& args, std::initializer_list<Param> params) {
  std::vector<Value> bound(params.size());
  const std::string name = std::string(function) + "()";
  if (args.positional.size() > params.size()) {
    fault(name + " takes at most " + std::to_string(params.size()) + " arguments (" +
          std::to_string(args.positional.size()) + " given)");
  }
  std::copy(args.positional.begin(), args.positional.end(), bound.begin());
  for (const auto& [key, value] : args.keywords) {
    const auto param = std::find_if(params.begin(), params.end(), [&key = key](const Param& p) {
      return p.name == key.text->view() && !p.name.starts_with('/');
    });
    if (param == params.end()) {
      fault(name + " got an unexpected keyword argument '" + std::string(key.text->view()) + "'");
    }
    Value& slot = bound[static_cast<std::size_t>(param - params.begin())];
    if (!slot.is_missing()) fault(name + " got multiple values for argument '" + std::string(key.text->view()) + "'");
    slot = value;
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const Param& param = params.begin()[i];
    if (!bound[i].is_missing()) continue;
    if (!param.fallback) fault(name + " missing required argument: '" + std::string(param.name) + "'");
    bound[i] = *param.fallback;
  }
  return bound;
}

Value Interpreter::call(const Value& callee, CallArgs& args) {
  switch (callee.kind) {
    case Kind::Function: return callee.function->call(*this, callee.function->self, args);
    case Kind::Macro: return call_macro(*callee.macro, args);
    case Kind::Loop: {
      const std::vector<Value> bound = bind("loop", args, {{"iterable"}});
      if (callee.loop->recursive == nullptr) {
        fault("The loop must have the 'recursive' marker to be called recursively.");
      }
      return recurse(*callee.loop, bound[0]);
    }
    case Kind::Joiner:
      bind("joiner", args, {});
      if (std::exchange(callee.joiner->used, true)) return callee.joiner->separator;
      return str(heap_, "");
    case Kind::Undefined: use_of_undefined(callee);
    default: fault(std::string("'") + type_name(callee) + "' object is not callable");
  }
}

Value Interpreter::make_macro(const MacroDef& def, Scope& scope) {
  for (Scope* s = &scope; s != nullptr && !s->is_captured; s = s->parent) s->is_captured = true;
  Value macro = Value::of(Kind::Macro);
  macro.macro = heap_.make<MacroObject>(&def, &scope);
  return macro;
}

namespace {

// The keyword argument of this name, taken out of args; Missing when there is none.
Value take_keyword(CallArgs& args, std::string_view name) {
  const auto it = std::find_if(args.keywords.begin(), args.keywords.end(),
                               [name](const auto& keyword) { return keyword.first.text->view() == name; });
  if (it == args.keywords.end()) return {};
  const Value value = it->second;
  args.keywords.erase(it);
  return value;
}

}  // namespace

Value Interpreter::call_macro(const MacroObject& macro, CallArgs& args) {
  const Entered entered(*this);
  const MacroDef& def = *macro.def;
  Scope& scope = *new_scope(macro.closure);
  const std::string name = def.name != nullptr ? fmt::format("'{}'", def.name->view()) : "None";
  const auto has_param = [&def](NameId id) {
    return std::find(def.params.begin(), def.params.end(), id) != def.params.end();
  };
  std::vector<std::size_t> absent;
  for (std::size_t i = 0; i < def.params.size(); ++i) {
    const std::string_view param = program_.names[static_cast<std::size_t>(def.params[i])]->view();
    Value value = i < args.positional.size() ? args.positional[i] : take_keyword(args, param);
    if (value.is_missing()) {
      absent.push_back(i);
      value = undefined_hint(heap_, "parameter '" + std::string(param) + "' was not provided");
    }
    bind_name(scope, def.params[i], value);
  }
  if (def.takes_caller && !has_param(caller_name_)) {
    const Value caller = take_keyword(args, "caller");
    bind_name(scope, caller_name_, caller.is_missing() ? undefined_hint(heap_, "No caller defined") : caller);
  }
  if (def.takes_kwargs && !has_param(kwargs_name_)) {
    Dict* const rest = heap_.make<Dict>();
    for (const auto& [key, value] : args.keywords) dict_set(heap_, *rest, key, value);
    bind_name(scope, kwargs_name_, Value::of_dict(rest));
  } else if (!args.keywords.empty()) {
    fault("macro " + name + " takes no keyword argument '" + std::string(args.keywords[0].first.text->view()) + "'");
  }
  const std::span<const Value> given(args.positional);
  const std::size_t taken = std::min(def.params.size(), given.size());
  if (def.takes_varargs && !has_param(varargs_name_)) {
    bind_name(scope, varargs_name_, tuple_of(heap_, given.subspan(taken)));
  } else if (given.size() > taken) {
    fault("macro " + name + " takes not more than " + std::to_string(def.params.size()) + " argument(s)");
  }
  for (const std::size_t i : absent) {
    const std::size_t first_default = def.params.size() - def.defaults.size();
    if (i >= first_default) bind_name(scope, def.params[i], eval(*def.defaults[i - first_default], scope));
  }
  TextBuilder text(heap_);
  run_captured(def.body, scope, text);
  return text.value();
}

// ---- expressions

Value Interpreter::eval(const Expr& expr, Scope& scope) {
  const Entered entered(*this);
  heap_.step();
  line_ = expr.line;
  switch (expr.kind) {
    case ExprKind::Literal: return expr.literal;
    case ExprKind::Name: return lookup(expr.name, scope);
    case ExprKind::Tuple:
    case ExprKind::List: return eval_items(expr, scope);
    case ExprKind::Dict: return eval_dict(expr, scope);
    case ExprKind::Attribute: return attribute(eval(*expr.kids[0], scope), *expr.literal.text);
    case ExprKind::Item: return eval_item(expr, scope);
    case ExprKind::Slice: fault("a slice is only possible inside [ ]");
    case ExprKind::Call: return eval_call(expr, scope, nullptr);
    case ExprKind::Filter: return eval_filter(expr, scope, nullptr);
    case ExprKind::Test: return eval_test(expr, scope);
    case ExprKind::Negate: return negate(eval(*expr.kids[0], scope));
    case ExprKind::Plus: {
      const Value value = eval(*expr.kids[0], scope);
      if (!value.is_number()) return negate(value);  // it refuses, in Python's words
      return value.is(Kind::Float) ? value : Value::integer(value.as_int());
    }
    case ExprKind::Not: return Value::boolean(!truthy(eval(*expr.kids[0], scope)));
    case ExprKind::And: {
      const Value left = eval(*expr.kids[0], scope);
      return truthy(left) ? eval(*expr.kids[1], scope) : left;
    }
    case ExprKind::Or: {
      const Value left = eval(*expr.kids[0], scope);
      return truthy(left) ? left : eval(*expr.kids[1], scope);
    }
    case ExprKind::Binary: {
      const Value left = eval(*expr.kids[0], scope);
      return binary(expr.op, left, eval(*expr.kids[1], scope));
    }
    case ExprKind::Concat: return eval_concat(expr, scope);
    case ExprKind::Compare: return eval_compare(expr, scope);
    case ExprKind::If: return eval_if(expr, scope);
  }
  return {};
}

Value Interpreter::eval_items(const Expr& expr, Scope& scope) {
  Value* const items = heap_.array<Value>(expr.kids.size());
  for (std::size_t i = 0; i < expr.kids.size(); ++i) items[i] = eval(*expr.kids[i], scope);
  const Sequence* const seq = heap_.make<Sequence>(items, expr.kids.size());
  return expr.kind == ExprKind::List ? Value::list(seq) : Value::tuple(seq);
}

Value Interpreter::eval_dict(const Expr& expr, Scope& scope) {
  Dict* const dict = heap_.make<Dict>();
  for (std::size_t i = 0; i < expr.kids.size(); i += 2) {
    const Value key = eval(*expr.kids[i], scope);
    dict_set(heap_, *dict, key, eval(*expr.kids[i + 1], scope));
  }
  return Value::of_dict(dict);
}

Value Interpreter::eval_item(const Expr& expr, Scope& scope) {
  const Value object = eval(*expr.kids[0], scope);
  if (expr.kids[1]->kind == ExprKind::Slice) return eval_slice(object, *expr.kids[1], scope);
  return item(object, eval(*expr.kids[1], scope));
}

Value Interpreter::eval_slice(const Value& object, const Expr& expr, Scope& scope) {
  std::array<Value, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) parts[i] = expr.kids[i] ? eval(*expr.kids[i], scope) : Value::none();
  return slice(heap_, object, parts[0], parts[1], parts[2]);
}

Value Interpreter::eval_concat(const Expr& expr, Scope& scope) {
  TextBuilder text(heap_);
  for (const ExprPtr& kid : expr.kids) append_str(text, heap_, eval(*kid, scope));
  return text.value();
}

Value Interpreter::eval_if(const Expr& expr, Scope& scope) {
  if (truthy(eval(*expr.kids[1], scope))) return eval(*expr.kids[0], scope);
  if (expr.kids[2]) return eval(*expr.kids[2], scope);
  return undefined_hint(heap_, fmt::format("the inline if-expression on line {} evaluated to false and no else section "
                                           "was defined.",
                                           expr.line));
}

Value Interpreter::eval_compare(const Expr& expr, Scope& scope) {
  Value left = eval(*expr.kids[0], scope);
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    const Value right = eval(*expr.kids[i + 1], scope);
    if (!truthy(binary(expr.ops[i], left, right))) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

CallArgs Interpreter::eval_args(const ArgList& list, Scope& scope) {
  CallArgs args;
  for (const ExprPtr& arg : list.positional) args.positional.push_back(eval(*arg, scope));
  for (const auto& [name, arg] : list.keywords) args.keywords.emplace_back(name, eval(*arg, scope));
  if (list.star) {
    const std::span<const Value> more = elements(heap_, eval(*list.star, scope));
    heap_.step(more.size());
    args.positional.insert(args.positional.end(), more.begin(), more.end());
  }
  if (!list.star_star) return args;
  const Value more = eval(*list.star_star, scope);
  if (!more.is(Kind::Dict)) fault("argument after ** must be a mapping, not " + std::string(type_name(more)));
  for (const Dict::Entry& entry : more.dict->span()) {
    if (!entry.key.is(Kind::Str)) fault("keywords must be strings");
    for (const auto& [name, value] : args.keywords) {
      heap_.step();
      if (name.text->view() == entry.key.text->view()) {
        fault("got multiple values for keyword argument '" + std::string(name.text->view()) + "'");
      }
    }
    args.keywords.emplace_back(entry.key, entry.value);
  }
  return args;
}

Value Interpreter::eval_call(const Expr& expr, Scope& scope, const Value* caller) {
  const Value callee = eval(*expr.kids[0], scope);
  CallArgs args = eval_args(*expr.args, scope);
  if (caller != nullptr) {
    if (!take_keyword(args, "caller").is_missing()) fault("got multiple values for keyword argument 'caller'");
    args.keywords.emplace_back(str(heap_, "caller"), *caller);
  }
  line_ = expr.line;
  return call(callee, args);
}

Value Interpreter::eval_filter(const Expr& expr, Scope& scope, const Value* captured) {
  const Value input = expr.kids[0]
                          ? (expr.kids[0]->kind == ExprKind::Filter ? eval_filter(*expr.kids[0], scope, captured)
                                                                    : eval(*expr.kids[0], scope))
                      : captured != nullptr ? *captured
                                            : Value();
  CallArgs args = eval_args(*expr.args, scope);
  line_ = expr.line;
  heap_.step();
  if (expr.filter == nullptr) fault(unknown_filter(expr.literal.text->view()));
  return expr.filter(*this, input, args);
}

Value Interpreter::eval_test(const Expr& expr, Scope& scope) {
  const Value input = eval(*expr.kids[0], scope);
  CallArgs args = eval_args(*expr.args, scope);
  line_ = expr.line;
  if (expr.test == nullptr) fault("No test named '" + std::string(expr.literal.text->view()) + "' found.");
  return Value::boolean(expr.test(*this, input, args));
}

Value Interpreter::filter_named(const Value& name, const Value& input, CallArgs& args) {
  heap_.step();
  const FilterFn filter = name.is(Kind::Str) ? find_filter(name.text->view()) : nullptr;
  if (filter == nullptr) fault(unknown_filter(as_text(heap_, name).view()));
  const Entered entered(*this);
  return filter(*this, input, args);
}

bool Interpreter::test_named(const Value& name, const Value& input, CallArgs& args) {
  heap_.step();
  const TestFn test = name.is(Kind::Str) ? find_test(name.text->view()) : nullptr;
  if (test == nullptr) fault("No test named '" + std::string(as_text(heap_, name).view()) + "'.");
  return test(*this, input, args);
}

}  // namespace rondo::jinja
