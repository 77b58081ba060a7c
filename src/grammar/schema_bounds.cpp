#include "grammar/schema_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "grammar/schema_doc.h"

namespace rondo::grammar {

namespace {

constexpr int kMostCount = 1'000'000;
constexpr double kMostBound = 1e12;  // of a number that may have a fraction: json_text.h has few digits for both

// nullptr: none is given.
Result<const json::Value*> find_number(const json::Object& schema, std::string_view keyword, const std::string& path) {
  const json::Value* value = schema.if_contains(keyword);
  if (value != nullptr && !value->is_number()) {
    return refuse_schema(ErrorCode::InvalidArgument, child_path(path, keyword), fmt::format("{} is a number", keyword));
  }
  return value;
}

struct Given {
  const json::Value *low, *high, *above, *below;  // nullptr: none
};

Result<Given> find_bounds(const json::Object& schema, const std::string& path) {
  Given given{};
  for (const auto& [keyword, place] :
       {std::pair{"minimum", &given.low}, std::pair{"maximum", &given.high},
        std::pair{"exclusiveMinimum", &given.above}, std::pair{"exclusiveMaximum", &given.below}}) {
    TRY(*place, find_number(schema, keyword, path));
  }
  return given;
}

// The whole number next to it, within what integers of our texts stay below. Not by way of a double where the schema
// has an integer: from 2^53 on two of them would be one.
enum class Side { Below, Above };
std::int64_t whole_number(const json::Value& number, Side side) {
  constexpr std::int64_t kMost = 1'000'000'000'000'000'000;
  if (number.is_int64()) return std::clamp(number.get_int64(), -kMost, kMost);
  const double value = number.to_number<double>();
  constexpr auto kMostDouble = static_cast<double>(kMost);
  return static_cast<std::int64_t>(
      std::clamp(side == Side::Above ? std::ceil(value) : std::floor(value), -kMostDouble, kMostDouble));
}

// The stricter of a bound that belongs to the range and one that does not.
Result<std::optional<JsonText::Bound>> number_bound(const json::Value* included, const json::Value* excluded,
                                                    Side range, const std::string& path) {
  if (included == nullptr && excluded == nullptr) return std::nullopt;
  const bool is_low = range == Side::Above;
  bool belongs = excluded == nullptr;
  if (included != nullptr && excluded != nullptr) {
    const auto at = included->to_number<double>(), beyond = excluded->to_number<double>();
    belongs = is_low ? at > beyond : at < beyond;
  }
  const auto value = (belongs ? included : excluded)->to_number<double>();
  if (value != std::floor(value) || std::abs(value) > kMostBound) {
    const std::string_view keyword =
        belongs ? (is_low ? "minimum" : "maximum") : (is_low ? "exclusiveMinimum" : "exclusiveMaximum");
    return refuse_schema(ErrorCode::Unsupported, child_path(path, keyword),
                         "bounds of numbers must be whole and at most 1e12; integers may have others");
  }
  return JsonText::Bound{static_cast<std::int64_t>(value), belongs};
}

}  // namespace

Result<IntegerBounds> read_integer_bounds(const json::Object& schema, const std::string& path) {
  TRY(const Given given, find_bounds(schema, path));
  IntegerBounds bounds;
  if (given.low != nullptr) bounds.low = whole_number(*given.low, Side::Above);
  if (given.above != nullptr) {
    const std::int64_t least = whole_number(*given.above, Side::Below) + 1;
    bounds.low = std::max(bounds.low.value_or(least), least);
  }
  if (given.high != nullptr) bounds.high = whole_number(*given.high, Side::Below);
  if (given.below != nullptr) {
    const std::int64_t most = whole_number(*given.below, Side::Above) - 1;
    bounds.high = std::min(bounds.high.value_or(most), most);
  }
  return bounds;
}

Result<NumberBounds> read_number_bounds(const json::Object& schema, const std::string& path) {
  TRY(const Given given, find_bounds(schema, path));
  TRY(const auto low, number_bound(given.low, given.above, Side::Above, path));
  TRY(const auto high, number_bound(given.high, given.below, Side::Below, path));
  return NumberBounds{low, high};
}

Result<CountBounds> read_count_bounds(const json::Object& schema, std::string_view least, std::string_view most,
                                      const std::string& path) {
  CountBounds bounds;
  for (const auto& [keyword, place] : {std::pair{least, &bounds.least}, std::pair{most, &bounds.most}}) {
    TRY(const json::Value* given, find_number(schema, keyword, path));
    if (given == nullptr) continue;
    const auto value = given->to_number<double>();
    if (value < 0 || value != std::floor(value)) {
      return refuse_schema(ErrorCode::InvalidArgument, child_path(path, keyword),
                           fmt::format("{} is a whole number from 0", keyword));
    }
    if (value > kMostCount) {
      return refuse_schema(ErrorCode::Unsupported, child_path(path, keyword),
                           fmt::format("{} above {} is not supported", keyword, kMostCount));
    }
    *place = static_cast<int>(value);
  }
  return bounds;
}

}  // namespace rondo::grammar
