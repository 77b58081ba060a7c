// The functions a template may call by name.
#include <ctime>
#include <unordered_map>

#include "text/jinja/methods.h"

namespace rondo::jinja {

namespace {

Value raise_exception(Interpreter& in, const Value&, CallArgs& args) {
  const std::vector<Value> bound = bind("raise_exception", args, {{"message"}});
  throw Fault{std::string(as_text(in.heap(), bound[0]).view()), true};
}

// Python gives %f, and nothing for the zone of a time without one; the rest is the C library's.
Value strftime_now(Interpreter& in, const Value&, CallArgs& args) {
  const std::vector<Value> bound = bind("strftime_now", args, {{"format"}});
  if (!bound[0].is(Kind::Str)) fault(std::string("strftime() argument 1 must be str, not ") + type_name(bound[0]));
  const Text& text = *bound[0].text;
  constexpr std::size_t kMaxFormat = 1024;
  if (text.size > kMaxFormat) fault("the format of strftime_now is longer than 1024 bytes");
  std::string format;
  for (std::size_t i = 0; i < text.size; ++i) {
    const char next = i + 1 < text.size ? text.data[i + 1] : '\0';
    if (text.data[i] != '%') {
      if (text.data[i] == '\0') fault("embedded null character");
      format.push_back(text.data[i]);
      continue;
    }
    ++i;
    if (next == 'f') {
      format += "000000";
    } else if (next != 'z' && next != 'Z') {
      format += '%';
      if (next != '\0') format += next;
    }
  }
  std::tm time{};
  const std::time_t now = in.now();
  if (localtime_r(&now, &time) == nullptr) fault("the time of day is out of range");
  format += '.';  // so that an empty result is not a failure
  char out[8 * kMaxFormat];
  const std::size_t n = std::strftime(out, sizeof(out), format.c_str(), &time);
  if (n == 0) fault("the result of strftime_now is too long");
  return str(in.heap(), {out, n - 1}, !text.is_trusted());
}

Value range(Interpreter& in, const Value&, CallArgs& args) {
  const std::vector<Value> bound = bind("range", args, {{"/start"}, {"/stop", Value()}, {"/step", Value::integer(1)}});
  const bool has_start = !bound[1].is_missing();
  constexpr std::int64_t kFar = std::int64_t{1} << 61;
  for (const Value& value : bound) {
    if (value.is_missing()) continue;
    const std::int64_t i = to_index(value);
    if (i > kFar || i < -kFar) fault("the bounds of a range are too far out");
  }
  const Range made{has_start ? bound[0].as_int() : 0, has_start ? bound[1].as_int() : bound[0].as_int(),
                   bound[2].as_int()};
  if (made.step == 0) fault("range() arg 3 must not be zero");
  if (made.size() > kMaxRange) {
    fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" + std::to_string(kMaxRange) + ").");
  }
  Value v = Value::of(Kind::Range);
  v.range = in.heap().make<Range>(made);
  return v;
}

// dict(mapping or pairs, name=value, ...), and a namespace's beginnings.
Dict* dict_from(Interpreter& in, CallArgs& args, const char* name) {
  Heap& heap = in.heap();
  if (args.positional.size() > 1) fault(std::string(name) + " expected at most 1 argument");
  Dict* const dict = heap.make<Dict>();
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is(Kind::Dict)) {
      for (const Dict::Entry& entry : from.dict->span()) dict_set(heap, *dict, entry.key, entry.value);
    } else {
      for (const Value& pair : elements(heap, from)) {
        const std::span<const Value> parts = elements(heap, pair);
        if (parts.size() != 2)
          fault("dictionary update sequence element has length " + std::to_string(parts.size()) + "; 2 is required");
        dict_set(heap, *dict, parts[0], parts[1]);
      }
    }
  }
  for (const auto& [key, value] : args.keywords) dict_set(heap, *dict, key, value);
  return dict;
}

Value make_dict(Interpreter& in, const Value&, CallArgs& args) { return Value::of_dict(dict_from(in, args, "dict")); }
Value make_namespace(Interpreter& in, const Value&, CallArgs& args) {
  return Value::of_dict(dict_from(in, args, "namespace"), Kind::Namespace);
}

Value make_cycler(Interpreter& in, const Value&, CallArgs& args) {
  if (args.positional.empty()) fault("at least one item has to be provided");
  if (!args.keywords.empty()) fault("cycler() takes no keyword arguments");
  const Value items = tuple_of(in.heap(), args.positional);
  Value v = Value::of(Kind::Cycler);
  v.cycler = in.heap().make<CyclerObject>(items.seq->items, items.seq->size, std::size_t{0});
  return v;
}

Value make_joiner(Interpreter& in, const Value&, CallArgs& args) {
  const std::vector<Value> bound = bind("joiner", args, {{"sep", str(in.heap(), ", ")}});
  Value v = Value::of(Kind::Joiner);
  v.joiner = in.heap().make<JoinerObject>(bound[0], false);
  return v;
}

Value lipsum(Interpreter&, const Value&, CallArgs&) { fault("the function 'lipsum' is not supported"); }

}  // namespace

Value find_global(Heap& heap, std::string_view name) {
  static const MethodTable kTable = {{"raise_exception", raise_exception},
                                     {"strftime_now", strftime_now},
                                     {"range", range},
                                     {"dict", make_dict},
                                     {"namespace", make_namespace},
                                     {"cycler", make_cycler},
                                     {"joiner", make_joiner},
                                     {"lipsum", lipsum}};
  const auto it = kTable.find(name);
  if (it == kTable.end()) return {};
  Value v = Value::of(Kind::Function);
  v.function = heap.make<Function>(it->second, Value(), it->first);
  return v;
}

}  // namespace rondo::jinja
