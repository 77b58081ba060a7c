#include "tests/ops/compare.h"

#include <bit>
#include <cmath>

namespace rondo {

namespace {
std::span<const float> elements(Tensor x) { return {x.f32(), static_cast<std::size_t>(x.shape.num_elements())}; }
}  // namespace

testing::AssertionResult close(std::span<const float> got, std::span<const float> want, double tolerance) {
  if (got.size() != want.size())
    return testing::AssertionFailure() << got.size() << " and " << want.size() << " values";
  double squares = 0;
  for (const float w : want) squares += static_cast<double>(w) * w;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(want.size(), 1)));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double apart = std::abs(static_cast<double>(got[i]) - want[i]);
    if (apart <= tolerance * (std::abs(static_cast<double>(want[i])) + rms)) continue;
    return testing::AssertionFailure() << "element " << i << " is " << got[i] << ", should be " << want[i]
                                       << " (row's rms " << rms << ")";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult close(Tensor got, Tensor want, double tolerance) {
  if (!(got.shape == want.shape)) {
    return testing::AssertionFailure() << "shape " << got.shape.to_string() << ", should be " << want.shape.to_string();
  }
  for (int r = 0; r < want.rows(); ++r) {
    auto row = close(elements(got.slice(r, 1)), elements(want.slice(r, 1)), tolerance);
    if (!row) return row << " in row " << r;
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult same_bits(std::span<const float> got, std::span<const float> want) {
  if (got.size() != want.size())
    return testing::AssertionFailure() << got.size() << " and " << want.size() << " values";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) return testing::AssertionFailure() << "element " << i << " should be NaN: never written?";
    if (std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(want[i])) continue;
    return testing::AssertionFailure() << "element " << i << " is " << got[i] << ", should be " << want[i]
                                       << " to the bit";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult same_bits(Tensor got, Tensor want) {
  if (!(got.shape == want.shape)) {
    return testing::AssertionFailure() << "shape " << got.shape.to_string() << ", should be " << want.shape.to_string();
  }
  return same_bits(elements(got), elements(want));
}

}  // namespace rondo
