// jinja2's tests: value is NAME(args).
#include <unordered_map>

#include "text/jinja/runtime.h"

namespace rondo::jinja {

namespace {

template <Op kOp>
bool compares(Interpreter& in, const Value& value, CallArgs& args) {
  return truthy(in.binary(kOp, value, bind("test", args, {{"other"}})[0]));
}

template <bool (*kIs)(const Value&)>
bool holds(Interpreter&, const Value& value, CallArgs& args) {
  bind("test", args, {});
  return kIs(value);
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is(Kind::None); }
bool is_boolean(const Value& v) { return v.is(Kind::Bool); }
bool is_true(const Value& v) { return v.is(Kind::Bool) && v.b; }
bool is_false(const Value& v) { return v.is(Kind::Bool) && !v.b; }
bool is_integer(const Value& v) { return v.is(Kind::Int); }
bool is_float(const Value& v) { return v.is(Kind::Float); }
bool is_number(const Value& v) { return v.is_number(); }
bool is_string(const Value& v) { return v.is(Kind::Str); }
bool is_mapping(const Value& v) { return v.is(Kind::Dict); }
bool is_escaped(const Value& v) { return v.is(Kind::Str) && v.text->markup; }
bool is_callable(const Value& v) {  // jinja2's Undefined defines a call, if only to refuse it
  return v.is(Kind::Function) || v.is(Kind::Macro) || v.is(Kind::Loop) || v.is(Kind::Joiner) || v.is_undefined();
}
bool is_sequence(const Value& v) {  // has a length and subscripts
  switch (v.kind) {
    case Kind::Undefined:
    case Kind::Str:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::Range: return true;
    default: return false;
  }
}

bool remainder_is(Interpreter& in, const Value& value, const Value& divisor, std::int64_t rest) {
  return equal(in.heap(), in.binary(Op::Mod, value, divisor), Value::integer(rest));
}
bool is_odd(Interpreter& in, const Value& value, CallArgs& args) {
  bind("odd", args, {});
  return remainder_is(in, value, Value::integer(2), 1);
}
bool is_even(Interpreter& in, const Value& value, CallArgs& args) {
  bind("even", args, {});
  return remainder_is(in, value, Value::integer(2), 0);
}
bool is_divisible(Interpreter& in, const Value& value, CallArgs& args) {
  return remainder_is(in, value, bind("divisibleby", args, {{"num"}})[0], 0);
}

bool is_lower(Interpreter& in, const Value& value, CallArgs& args) {
  bind("lower", args, {});
  return is_all_lower(as_text(in.heap(), value));
}
bool is_upper(Interpreter& in, const Value& value, CallArgs& args) {
  bind("upper", args, {});
  return is_all_upper(as_text(in.heap(), value));
}

bool is_in(Interpreter& in, const Value& value, CallArgs& args) {
  return in.contains(bind("in", args, {{"seq"}})[0], value);
}

bool is_same(Interpreter&, const Value& value, CallArgs& args) {
  const Value other = bind("sameas", args, {{"other"}})[0];
  if (value.kind != other.kind) return false;
  switch (value.kind) {
    case Kind::None: return true;
    case Kind::Bool: return value.b == other.b;
    case Kind::Int: return value.i == other.i;
    case Kind::Float: return value.f == other.f;
    case Kind::Str: return value.text->view() == other.text->view();
    default: return value.seq == other.seq;
  }
}

bool is_filter(Interpreter&, const Value& value, CallArgs& args) {
  bind("filter", args, {});
  return value.is(Kind::Str) && find_filter(value.text->view()) != nullptr;
}
bool is_test(Interpreter&, const Value& value, CallArgs& args) {
  bind("test", args, {});
  return value.is(Kind::Str) && find_test(value.text->view()) != nullptr;
}

bool is_iterable_value(const Value& v) { return is_iterable(v); }

}  // namespace

TestFn find_test(std::string_view name) {
  static const std::unordered_map<std::string_view, TestFn> kTests = {
      {"defined", holds<is_defined>},
      {"undefined", holds<is_undefined>},
      {"none", holds<is_none>},
      {"boolean", holds<is_boolean>},
      {"true", holds<is_true>},
      {"false", holds<is_false>},
      {"integer", holds<is_integer>},
      {"float", holds<is_float>},
      {"number", holds<is_number>},
      {"string", holds<is_string>},
      {"mapping", holds<is_mapping>},
      {"sequence", holds<is_sequence>},
      {"iterable", holds<is_iterable_value>},
      {"callable", holds<is_callable>},
      {"escaped", holds<is_escaped>},
      {"odd", is_odd},
      {"even", is_even},
      {"divisibleby", is_divisible},
      {"lower", is_lower},
      {"upper", is_upper},
      {"in", is_in},
      {"sameas", is_same},
      {"filter", is_filter},
      {"test", is_test},
      {"==", compares<Op::Eq>},
      {"eq", compares<Op::Eq>},
      {"equalto", compares<Op::Eq>},
      {"!=", compares<Op::Ne>},
      {"ne", compares<Op::Ne>},
      {"<", compares<Op::Lt>},
      {"lt", compares<Op::Lt>},
      {"lessthan", compares<Op::Lt>},
      {"<=", compares<Op::Le>},
      {"le", compares<Op::Le>},
      {">", compares<Op::Gt>},
      {"gt", compares<Op::Gt>},
      {"greaterthan", compares<Op::Gt>},
      {">=", compares<Op::Ge>},
      {"ge", compares<Op::Ge>},
  };
  const auto it = kTests.find(name);
  return it == kTests.end() ? nullptr : it->second;
}

}  // namespace rondo::jinja
