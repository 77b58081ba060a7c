// What the two formatting languages share: digits of numbers, without sign or padding.
#pragma once

#include <string>

#include "text/jinja/value.h"

namespace rondo::jinja {

constexpr std::int64_t kMaxWidth = 1'000'000;  // of a padded field
constexpr std::int64_t kMaxPrecision = 400;    // of a float; more digits are all zeros or noise

std::string magnitude(std::int64_t value, int base, bool upper);  // of |value|
// |value| by e, f, g or their capitals; precision -1: the default 6.
std::string float_digits(double value, char type, std::int64_t precision, bool alternate);
// The character of this code point. A number may come from the request: untrusted.
const Text* char_text(Heap& heap, std::int64_t code_point);

}  // namespace rondo::jinja
