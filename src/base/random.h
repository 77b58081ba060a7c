// Counter-based random numbers: a pure function of its keys. Nothing that decides a token is ever drawn from a
// generator that advances, so neither neighbours, drafts nor restarts can move it.
#pragma once

#include <cstdint>

namespace rondo {

// The splitmix64 finaliser (Steele, Lea and Flood, 2014): a bijection of 64 bits in which every input bit moves every
// output bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// 64 bits at (a, b, c).
constexpr std::uint64_t random_bits(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  return mix64(mix64(mix64(a) + b) + c);
}

// A double strictly between 0 and 1, from the upper 52 bits.
constexpr double unit_interval(std::uint64_t bits) { return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52; }

}  // namespace rondo
