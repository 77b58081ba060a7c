// What the keywords of a schema that bound say: from where to where a number may go, and how many there may be of
// something.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "grammar/json_text.h"

namespace rondo::grammar {

// minimum, maximum, exclusiveMinimum and exclusiveMaximum, of integers (both ends belong to it) and of any numbers.
// none = no bound.
struct IntegerBounds {
  std::optional<std::int64_t> low, high;
};
struct NumberBounds {
  std::optional<JsonText::Bound> low, high;
};
Result<IntegerBounds> read_integer_bounds(const json::Object& schema, const std::string& path);
// Unsupported: a bound that is not whole, or above 1e12.
Result<NumberBounds> read_number_bounds(const json::Object& schema, const std::string& path);

struct CountBounds {
  int least = 0, most = kNoLimit;
  bool any() const { return least == 0 && most == kNoLimit; }
};
// At the keywords `least` and `most`: minLength and maxLength, minItems and maxItems.
Result<CountBounds> read_count_bounds(const json::Object& schema, std::string_view least, std::string_view most,
                                      const std::string& path);

}  // namespace rondo::grammar
