// The tables behind find_attribute: what Python's own objects answer to.
#pragma once

#include <string_view>
#include <unordered_map>

#include "text/jinja/runtime.h"

namespace rondo::jinja {

using MethodTable = std::unordered_map<std::string_view, Builtin>;  // null: Python has it, this interpreter does not
const MethodTable& str_methods();

// text padded with `fill` to `width` code points; where: 'l', 'c' or 'r'.
Value justify(Heap& heap, const Text& text, std::int64_t width, const Text& fill, char where);

}  // namespace rondo::jinja
