// The two small float formats of quantised checkpoints, one code at a time: what every kernel is held to.
//
//   E4M3 (OCP FP8)   s eeee mmm   bias 7; e = 0 is subnormal, m * 2^-9; no infinity; 0x7F and 0xFF are NaN; largest 448
//   E2M1 (OCP FP4)   s ee m       bias 1; e = 0 is subnormal; 0 0.5 1 1.5 2 3 4 6 and their negatives; no NaN
//
// Encoding goes to the nearest value, ties to the even code; what lies beyond the largest becomes the largest.
#pragma once

#include <cstdint>

namespace rondo {

float e4m3_to_float(std::uint8_t code);
std::uint8_t to_e4m3(float value);       // NaN becomes 0x7F
float e2m1_to_float(std::uint8_t code);  // of its low four bits
std::uint8_t to_e2m1(float value);       // in the low four bits; NaN becomes the largest, there is nothing better

}  // namespace rondo
