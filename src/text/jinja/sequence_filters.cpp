// Filters over sequences. What jinja2 makes lazily is made at once here and read once, as an iterator is.
#include <algorithm>

#include "text/jinja/filters.h"

namespace rondo::jinja {

namespace {

const Value kNone = Value::none();
const Value kFalse = Value::boolean(false);

// item.a.b.0 by an attribute's name: "a.b.0", or a number.
class Getter {
 public:
  Getter(Interpreter& in, const Value& attribute, bool lower_case, const Value& fallback = kNone)
      : in_(in), lower_case_(lower_case), fallback_(fallback) {
    if (attribute.is(Kind::None)) return;
    if (!attribute.is(Kind::Str)) {
      parts_.push_back(attribute);
      return;
    }
    add_path(*attribute.text);
  }
  Value operator()(Value item) const {
    in_.heap().step();
    for (const Value& part : parts_) {
      item = in_.item(item, part);
      if (item.is_undefined() && !fallback_.is(Kind::None)) item = fallback_;
    }
    return lower_case_ && item.is(Kind::Str) ? map_case(in_.heap(), *item.text, "lower") : item;
  }

 private:
  void add_path(const Text& path) {
    for (std::size_t begin = 0; begin <= path.size;) {
      const std::size_t end = std::min(path.view().find('.', begin), path.size);
      const Text* const part = slice_text(in_.heap(), path, begin, end);
      const bool is_number = part->size > 0 && std::all_of(part->data, part->data + part->size,
                                                           [](char c) { return c >= '0' && c <= '9'; });
      parts_.push_back(is_number ? Value::integer(*parse_int(part->view(), 10)) : Value::str(part));
      begin = end + 1;
    }
  }
  Interpreter& in_;
  bool lower_case_;
  Value fallback_;
  std::vector<Value> parts_;
};

Value length_filter(Interpreter&, const Value& value, CallArgs& args) {
  bind("length", args, {});
  return Value::integer(length_of(value));
}

Value list_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("list", args, {});
  return list_of(in.heap(), elements(in.heap(), value));
}

Value first_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("first", args, {});
  Heap& heap = in.heap();
  if (value.is(Kind::Iterator)) {  // takes one, leaves the rest
    Iterator& it = *value.iterator;
    return it.pos < it.size ? it.items[it.pos++] : undefined_hint(heap, "No first item, sequence was empty.");
  }
  if (value.is(Kind::Str) && value.text->size > 0) return in.item(value, Value::integer(0));
  const std::span<const Value> items = elements(heap, value);
  return items.empty() ? undefined_hint(heap, "No first item, sequence was empty.") : items.front();
}

Value last_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("last", args, {});
  if (value.is(Kind::Iterator)) fault("'generator' object is not reversible");
  if (value.is(Kind::Str) && value.text->size > 0) return in.item(value, Value::integer(-1));
  const std::span<const Value> items = elements(in.heap(), value);
  return items.empty() ? undefined_hint(in.heap(), "No last item, sequence was empty.") : items.back();
}

Value reverse_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("reverse", args, {});
  Heap& heap = in.heap();
  if (value.is(Kind::Str)) return slice(heap, value, kNone, kNone, Value::integer(-1));
  if (!is_iterable(value)) fault("argument must be iterable");
  const std::span<const Value> items = elements(heap, value);
  const std::vector<Value> reversed(items.rbegin(), items.rend());
  return value.is(Kind::Iterator) ? list_of(heap, reversed) : iterator_of(heap, reversed);
}

Value items_filter(Interpreter& in, const Value& value, CallArgs& args) {
  bind("items", args, {});
  if (value.is_undefined()) return iterator_of(in.heap(), {});
  if (!value.is(Kind::Dict)) fault("Can only get item pairs from a mapping.");
  Value view = Value::of(Kind::View);
  view.view = in.heap().make<View>(View::Of::Items, value.dict);
  return iterator_of(in.heap(), elements(in.heap(), view));
}

// ---- ordering

struct Keyed {
  Value key;
  Value item;
};

std::vector<Value> sorted(Heap& heap, std::vector<Keyed> keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&heap, reverse](const Keyed& a, const Keyed& b) {
    return reverse ? less(heap, b.key, a.key) : less(heap, a.key, b.key);
  });
  std::vector<Value> items;
  for (const Keyed& each : keyed) items.push_back(each.item);
  return items;
}

Value sort_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound =
      bind("sort", args, {{"reverse", kFalse}, {"case_sensitive", kFalse}, {"attribute", kNone}});
  Heap& heap = in.heap();
  const bool lower_case = !truthy(bound[1]);
  std::vector<Getter> getters;
  if (bound[2].is(Kind::Str)) {
    const Text& paths = *bound[2].text;
    for (std::size_t begin = 0; begin <= paths.size;) {
      const std::size_t end = std::min(paths.view().find(',', begin), paths.size);
      getters.emplace_back(in, Value::str(slice_text(heap, paths, begin, end)), lower_case);
      begin = end + 1;
    }
  } else {
    getters.emplace_back(in, bound[2], lower_case);
  }
  std::vector<Keyed> keyed;
  for (const Value& item : elements(heap, value)) {
    std::vector<Value> keys;
    for (const Getter& get : getters) keys.push_back(get(item));
    keyed.push_back({list_of(heap, keys), item});
  }
  return list_of(heap, sorted(heap, std::move(keyed), truthy(bound[0])));
}

Value dictsort_filter(Interpreter& in, const Value& value, CallArgs& args) {
  Heap& heap = in.heap();
  const std::vector<Value> bound =
      bind("dictsort", args, {{"case_sensitive", kFalse}, {"by", str(heap, "key")}, {"reverse", kFalse}});
  const std::string_view by = bound[1].is(Kind::Str) ? bound[1].text->view() : "";
  if (by != "key" && by != "value") fault("You can only sort by either \"key\" or \"value\"");
  if (value.is_undefined()) use_of_undefined(value);
  if (!value.is(Kind::Dict)) fault(std::string("'") + type_name(value) + "' object has no attribute 'items'");
  std::vector<Keyed> keyed;
  for (const Dict::Entry& entry : value.dict->span()) {
    const Value pair = tuple_of(heap, std::vector{entry.key, entry.value});
    const Getter fold(in, kNone, !truthy(bound[0]));
    keyed.push_back({fold(by == "key" ? entry.key : entry.value), pair});
  }
  return list_of(heap, sorted(heap, std::move(keyed), truthy(bound[2])));
}

template <bool kMax>
Value extreme_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("min or max", args, {{"case_sensitive", kFalse}, {"attribute", kNone}});
  const Getter get(in, bound[1], !truthy(bound[0]));
  const std::span<const Value> items = elements(in.heap(), value);
  if (items.empty()) return undefined_hint(in.heap(), "No aggregated item, sequence was empty.");
  Keyed best{get(items[0]), items[0]};
  for (const Value& item : items.subspan(1)) {
    const Value key = get(item);
    const bool is_better = kMax ? less(in.heap(), best.key, key, ">") : less(in.heap(), key, best.key);
    if (is_better) best = {key, item};
  }
  return best.item;
}

Value unique_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("unique", args, {{"case_sensitive", kFalse}, {"attribute", kNone}});
  const Getter get(in, bound[1], !truthy(bound[0]));
  Heap& heap = in.heap();
  Dict seen;
  std::vector<Value> kept;
  for (const Value& item : elements(heap, value)) {
    const Value key = get(item);
    if (dict_find(heap, seen, key) != nullptr) continue;
    dict_set(heap, seen, key, kNone);
    kept.push_back(item);
  }
  return iterator_of(heap, kept);
}

Value groupby_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound =
      bind("groupby", args, {{"attribute"}, {"default", kNone}, {"case_sensitive", kFalse}});
  Heap& heap = in.heap();
  const bool lower_case = !truthy(bound[2]);
  const Getter get(in, bound[0], lower_case, bound[1]);
  const Getter get_as_is(in, bound[0], false, bound[1]);
  std::vector<Keyed> keyed;
  for (const Value& item : elements(heap, value)) keyed.push_back({get(item), item});
  std::vector<Value> groups;
  std::vector<Value> members;
  Value group_key;
  const auto close = [&] {
    if (members.empty()) return;
    const Value key = lower_case ? get_as_is(members[0]) : group_key;
    const Value pair = tuple_of(heap, std::vector{key, list_of(heap, members)});
    Sequence* const group = heap.make<Sequence>(*pair.seq);
    group->is_group = true;
    groups.push_back(Value::tuple(group));
    members.clear();
  };
  for (const Value& item : sorted(heap, std::move(keyed), false)) {
    const Value key = get(item);
    if (members.empty() || !equal(heap, key, group_key)) {
      close();
      group_key = key;
    }
    members.push_back(item);
  }
  close();
  return list_of(heap, groups);
}

// ---- choosing

Value map_filter(Interpreter& in, const Value& value, CallArgs& args) {
  Heap& heap = in.heap();
  std::vector<Value> mapped;
  if (!truthy(value)) return iterator_of(heap, {});
  if (args.positional.empty()) {
    const std::vector<Value> bound = bind("map", args, {{"attribute", Value()}, {"default", kNone}});
    if (bound[0].is_missing()) fault("map requires a filter argument");
    const Getter get(in, bound[0], false, bound[1]);
    for (const Value& item : elements(heap, value)) mapped.push_back(get(item));
    return iterator_of(heap, mapped);
  }
  const CallArgs rest{{args.positional.begin() + 1, args.positional.end()}, args.keywords};
  for (const Value& item : elements(heap, value)) {
    CallArgs each = rest;
    mapped.push_back(in.filter_named(args.positional[0], item, each));
  }
  return iterator_of(heap, mapped);
}

template <bool kByAttribute, bool kKeep>
Value choose_filter(Interpreter& in, const Value& value, CallArgs& args) {
  Heap& heap = in.heap();
  if (!truthy(value)) return iterator_of(heap, {});
  if (kByAttribute && args.positional.empty()) fault("Missing parameter for attribute name");
  const Getter get(in, kByAttribute ? args.positional[0] : kNone, false);
  constexpr std::size_t kName = kByAttribute ? 1 : 0;
  const bool has_test = args.positional.size() > kName;
  CallArgs rest{{}, args.keywords};
  if (has_test) rest.positional.assign(args.positional.begin() + kName + 1, args.positional.end());
  std::vector<Value> kept;
  for (const Value& item : elements(heap, value)) {
    const Value seen = get(item);
    CallArgs each = rest;
    const bool passes = has_test ? in.test_named(args.positional[kName], seen, each) : truthy(seen);
    if (passes == kKeep) kept.push_back(item);
  }
  return iterator_of(heap, kept);
}

// ---- cutting and summing

Value batch_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("batch", args, {{"linecount"}, {"fill_with", kNone}});
  Heap& heap = in.heap();
  const Value& count = bound[0];
  std::vector<Value> batches;
  std::vector<Value> batch;
  for (const Value& item : elements(heap, value)) {
    if (equal(heap, Value::integer(static_cast<std::int64_t>(batch.size())), count)) {
      batches.push_back(list_of(heap, batch));
      batch.clear();
    }
    heap.step();
    batch.push_back(item);
  }
  if (!batch.empty()) {
    if (!bound[1].is(Kind::None)) {
      const std::int64_t size = to_index(count);
      if (size > kMaxRange) fault("batch: more than 100000 items a batch are not supported");
      while (static_cast<std::int64_t>(batch.size()) < size) batch.push_back(bound[1]);
    }
    batches.push_back(list_of(heap, batch));
  }
  return iterator_of(heap, batches);
}

Value slice_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("slice", args, {{"slices"}, {"fill_with", kNone}});
  Heap& heap = in.heap();
  const std::span<const Value> items = elements(heap, value);
  const std::int64_t slices = to_index(bound[0]);
  if (slices == 0) fault("integer division or modulo by zero");
  if (slices > kMaxRange) fault("slice: more than 100000 slices are not supported");
  std::vector<Value> out;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    const auto n = static_cast<std::int64_t>(items.size());
    const bool has_extra = i < n % slices;
    const auto size = static_cast<std::size_t>(n / slices + (has_extra ? 1 : 0));
    std::vector<Value> part(items.begin() + static_cast<std::ptrdiff_t>(at),
                            items.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
    if (!bound[1].is(Kind::None) && !has_extra) part.push_back(bound[1]);
    heap.step(1 + size);
    out.push_back(list_of(heap, part));
  }
  return iterator_of(heap, out);
}

Value sum_filter(Interpreter& in, const Value& value, CallArgs& args) {
  const std::vector<Value> bound = bind("sum", args, {{"attribute", kNone}, {"start", Value::integer(0)}});
  if (bound[1].is(Kind::Str)) fault("sum() can't sum strings [use ''.join(seq) instead]");
  const Getter get(in, bound[0], false);
  Value total = bound[1];
  for (const Value& item : elements(in.heap(), value)) total = in.binary(Op::Add, total, get(item));
  return total;
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable kTable = {
      {"length", length_filter},
      {"count", length_filter},
      {"list", list_filter},
      {"first", first_filter},
      {"last", last_filter},
      {"reverse", reverse_filter},
      {"items", items_filter},
      {"sort", sort_filter},
      {"dictsort", dictsort_filter},
      {"min", extreme_filter<false>},
      {"max", extreme_filter<true>},
      {"unique", unique_filter},
      {"groupby", groupby_filter},
      {"map", map_filter},
      {"select", choose_filter<false, true>},
      {"reject", choose_filter<false, false>},
      {"selectattr", choose_filter<true, true>},
      {"rejectattr", choose_filter<true, false>},
      {"batch", batch_filter},
      {"slice", slice_filter},
      {"sum", sum_filter},
  };
  return kTable;
}

}  // namespace rondo::jinja
