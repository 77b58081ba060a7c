// The formats of JSON Schema strings that a grammar can keep to, as regular expressions of the whole string.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rondo::grammar {

std::optional<std::string_view> pattern_of_format(std::string_view format);
std::string known_formats();  // in words

}  // namespace rondo::grammar
