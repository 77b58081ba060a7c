#include "tensor/small_floats.h"

#include <array>
#include <cmath>

namespace rondo {

namespace {

template <int MantissaBits, int Bias>
float magnitude(int code) {
  const int exponent = code >> MantissaBits, mantissa = code & ((1 << MantissaBits) - 1);
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), 1 - Bias - MantissaBits);
  return std::ldexp(static_cast<float>(mantissa + (1 << MantissaBits)), exponent - Bias - MantissaBits);
}

// The nearest of magnitudes that ascend with their codes. Midpoints are exact: both neighbours have few bits.
template <std::size_t N>
std::uint8_t nearest(const std::array<float, N>& magnitudes, float value) {
  const float size = std::abs(value);
  std::size_t below = 0;
  while (below + 1 < N && magnitudes[below + 1] <= size) ++below;
  if (below + 1 == N) return static_cast<std::uint8_t>(below);
  const float middle = 0.5F * (magnitudes[below] + magnitudes[below + 1]);
  const bool rounds_up = size > middle || (size == middle && below % 2 == 1);
  return static_cast<std::uint8_t>(below + (rounds_up ? 1 : 0));
}

template <std::size_t N, int MantissaBits, int Bias>
std::array<float, N> all_magnitudes() {
  std::array<float, N> out{};
  for (std::size_t code = 0; code < N; ++code) out[code] = magnitude<MantissaBits, Bias>(static_cast<int>(code));
  return out;
}

}  // namespace

float e4m3_to_float(std::uint8_t code) {
  const int size = code & 0x7F;
  const float value = size == 0x7F ? NAN : magnitude<3, 7>(size);
  return (code & 0x80) != 0 ? -value : value;
}

std::uint8_t to_e4m3(float value) {
  static const auto kMagnitudes = all_magnitudes<127, 3, 7>();
  if (std::isnan(value)) return 0x7F;
  return static_cast<std::uint8_t>(nearest(kMagnitudes, value) | (std::signbit(value) ? 0x80 : 0));
}

float e2m1_to_float(std::uint8_t code) {
  const float value = magnitude<1, 1>(code & 7);
  return (code & 8) != 0 ? -value : value;
}

std::uint8_t to_e2m1(float value) {
  static const auto kMagnitudes = all_magnitudes<8, 1, 1>();
  if (std::isnan(value)) return 7;
  return static_cast<std::uint8_t>(nearest(kMagnitudes, value) | (std::signbit(value) ? 8 : 0));
}

}  // namespace rondo
