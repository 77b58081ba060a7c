#include "text/jinja/methods.h"

#include <algorithm>
#include <array>

namespace rondo::jinja {

namespace {

Value unsafe(Heap& heap, const Value& object, std::string_view name) {
  return undefined_hint(
      heap, "access to attribute '" + std::string(name) + "' of '" + type_name(object) + "' object is unsafe.");
}

Value method(Heap& heap, Builtin call, const Value& self, std::string_view name) {
  Value v = Value::of(Kind::Function);
  v.function = heap.make<Function>(call, self, name);
  return v;
}

Value from_table(Heap& heap, const MethodTable& table, const Value& self, std::string_view name) {
  const auto it = table.find(name);
  if (it == table.end()) return {};
  if (it->second == nullptr) fault(std::string(type_name(self)) + "." + std::string(name) + " is not supported");
  return method(heap, it->second, self, it->first);
}

// ---- dict

Value view_of(Heap& heap, const Value& self, View::Of of) {
  Value v = Value::of(Kind::View);
  v.view = heap.make<View>(of, self.dict);
  return v;
}
Value items_method(Interpreter& in, const Value& self, CallArgs& args) {
  bind("items", args, {});
  return view_of(in.heap(), self, View::Of::Items);
}
Value keys_method(Interpreter& in, const Value& self, CallArgs& args) {
  bind("keys", args, {});
  return view_of(in.heap(), self, View::Of::Keys);
}
Value values_method(Interpreter& in, const Value& self, CallArgs& args) {
  bind("values", args, {});
  return view_of(in.heap(), self, View::Of::Values);
}
Value get_method(Interpreter& in, const Value& self, CallArgs& args) {
  const std::vector<Value> bound = bind("get", args, {{"/key"}, {"/default", Value::none()}});
  const Value* const found = dict_find(in.heap(), *self.dict, bound[0]);
  return found != nullptr ? *found : bound[1];
}
Value copy_method(Interpreter&, const Value& self, CallArgs& args) {
  bind("copy", args, {});
  return self;  // values never change, so the copy may be the same
}

const MethodTable& dict_methods() {
  static const MethodTable kTable = {{"items", items_method}, {"keys", keys_method}, {"values", values_method},
                                     {"get", get_method},     {"copy", copy_method}, {"fromkeys", nullptr}};
  return kTable;
}

// ---- list, tuple, range

Value count_method(Interpreter& in, const Value& self, CallArgs& args) {
  const Value wanted = bind("count", args, {{"/value"}})[0];
  std::int64_t n = 0;
  for (const Value& item : elements(in.heap(), self)) n += equal(in.heap(), item, wanted) ? 1 : 0;
  return Value::integer(n);
}

Value index_method(Interpreter& in, const Value& self, CallArgs& args) {
  const std::vector<Value> bound =
      bind("index", args, {{"/value"}, {"/start", Value::integer(0)}, {"/stop", Value::integer(INT64_MAX)}});
  const std::span<const Value> items = elements(in.heap(), self);
  const auto n = static_cast<std::int64_t>(items.size());
  const auto clamp = [n](std::int64_t i) { return std::min(n, i < 0 ? (i < -n ? 0 : i + n) : i); };
  for (std::int64_t i = clamp(to_index(bound[1])); i < clamp(to_index(bound[2])); ++i) {
    if (equal(in.heap(), items[static_cast<std::size_t>(i)], bound[0])) return Value::integer(i);
  }
  fault(repr_of(in.heap(), bound[0]) + " is not in " + type_name(self));
}

const MethodTable& sequence_methods() {
  static const MethodTable kTable = {{"count", count_method}, {"index", index_method}};
  return kTable;
}

// ---- loop

LoopObject& loop_of(const Value& self) { return *self.loop; }

Value cycle_method(Interpreter&, const Value& self, CallArgs& args) {
  if (args.positional.empty()) fault("no items for cycling given");
  if (!args.keywords.empty()) fault("cycle() takes no keyword arguments");
  return args.positional[loop_of(self).index0 % args.positional.size()];
}

Value changed_method(Interpreter& in, const Value& self, CallArgs& args) {
  LoopObject& loop = loop_of(self);
  const Value now = tuple_of(in.heap(), args.positional);
  if (!loop.changed.is_missing() && equal(in.heap(), loop.changed, now)) return Value::boolean(false);
  loop.changed = now;
  return Value::boolean(true);
}

Value loop_attribute(Heap& heap, const Value& self, std::string_view name) {
  const LoopObject& loop = loop_of(self);
  const auto number = [](std::size_t n) { return Value::integer(static_cast<std::int64_t>(n)); };
  if (name == "index") return number(loop.index0 + 1);
  if (name == "index0") return number(loop.index0);
  if (name == "revindex") return number(loop.size - loop.index0);
  if (name == "revindex0") return number(loop.size - loop.index0 - 1);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(loop.index0 + 1 == loop.size);
  if (name == "length") return number(loop.size);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "previtem") {
    return loop.index0 == 0 ? undefined_hint(heap, "there is no previous item") : loop.items[loop.index0 - 1];
  }
  if (name == "nextitem") {
    return loop.index0 + 1 == loop.size ? undefined_hint(heap, "there is no next item") : loop.items[loop.index0 + 1];
  }
  static const MethodTable kTable = {{"cycle", cycle_method}, {"changed", changed_method}};
  return from_table(heap, kTable, self, name);
}

// ---- cycler

Value next_method(Interpreter&, const Value& self, CallArgs& args) {
  bind("next", args, {});
  CyclerObject& cycler = *self.cycler;
  const Value item = cycler.items[cycler.pos];
  cycler.pos = (cycler.pos + 1) % cycler.size;
  return item;
}
Value reset_method(Interpreter&, const Value& self, CallArgs& args) {
  bind("reset", args, {});
  self.cycler->pos = 0;
  return Value::none();
}

Value cycler_attribute(Heap& heap, const Value& self, std::string_view name) {
  if (name == "current") return self.cycler->items[self.cycler->pos];
  static const MethodTable kTable = {{"next", next_method}, {"reset", reset_method}};
  return from_table(heap, kTable, self, name);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value sequence_attribute(Heap& heap, const Value& self, std::string_view name) {
  if (self.is(Kind::List)) {
    if (is_one_of(name, {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"})) {
      return unsafe(heap, self, name);
    }
    if (name == "copy") return method(heap, copy_method, self, "copy");
  }
  if (self.is(Kind::Tuple) && self.seq->is_group) {
    if (name == "grouper") return self.seq->items[0];
    if (name == "list") return self.seq->items[1];
  }
  if (self.is(Kind::Range)) {
    if (name == "start") return Value::integer(self.range->start);
    if (name == "stop") return Value::integer(self.range->stop);
    if (name == "step") return Value::integer(self.range->step);
  }
  return from_table(heap, sequence_methods(), self, name);
}

}  // namespace

Value find_attribute(Interpreter& in, const Value& object, std::string_view name) {
  Heap& heap = in.heap();
  if (object.is(Kind::Namespace)) {
    if (const Value* const value = dict_find(heap, *object.dict, str(heap, name))) return *value;
  }
  // Every Python object has attributes of this spelling, and the sandbox keeps a template from all of them.
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) return unsafe(heap, object, name);
  switch (object.kind) {
    case Kind::Str:
      if (object.text->markup && str_methods().contains(name))
        fault("text from 'safe' or 'escape' has no methods here");
      return from_table(heap, str_methods(), object, name);
    case Kind::Dict:
      if (is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"})) return unsafe(heap, object, name);
      return from_table(heap, dict_methods(), object, name);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range: return sequence_attribute(heap, object, name);
    case Kind::Loop: return loop_attribute(heap, object, name);
    case Kind::Cycler: return cycler_attribute(heap, object, name);
    case Kind::Macro:
      if (name == "name")
        return object.macro->def->name == nullptr ? Value::none() : Value::str(object.macro->def->name);
      return {};
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float:
      if (is_one_of(name, {"real", "imag", "numerator", "denominator", "conjugate", "bit_length", "bit_count",
                           "to_bytes", "from_bytes", "as_integer_ratio", "is_integer", "hex", "fromhex"})) {
        fault(std::string(type_name(object)) + "." + std::string(name) + " is not supported");
      }
      return {};
    default: return {};
  }
}

}  // namespace rondo::jinja
