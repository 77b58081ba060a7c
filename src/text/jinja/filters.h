// The filters, by what they work on: text_filters.cpp, sequence_filters.cpp; filters.cpp has the rest and the table.
#pragma once

#include <string_view>
#include <unordered_map>

#include "text/jinja/runtime.h"

namespace rondo::jinja {

using FilterTable = std::unordered_map<std::string_view, FilterFn>;
const FilterTable& text_filters();
const FilterTable& sequence_filters();

}  // namespace rondo::jinja
