// quantise FOLDER OUT FORMAT [BLOCK]: a checkpoint in another format; FORMAT is fp8, nvfp4, affine4, affine6, affine8
// or f32 (what it holds, decoded), BLOCK the rows and columns of an FP8 block (128).
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "tools/quantise/requantise.h"

int main(int argc, char** argv) {
  using Scheme = rondo::QuantiseSpec::Scheme;
  const std::map<std::string, rondo::QuantiseSpec> formats = {{"fp8", {.scheme = Scheme::Fp8}},
                                                              {"nvfp4", {.scheme = Scheme::Nvfp4}},
                                                              {"affine4", {.scheme = Scheme::Affine, .bits = 4}},
                                                              {"affine6", {.scheme = Scheme::Affine, .bits = 6}},
                                                              {"affine8", {.scheme = Scheme::Affine, .bits = 8}},
                                                              {"f32", {.scheme = Scheme::Decoded}}};
  const auto format = argc == 4 || argc == 5 ? formats.find(argv[3]) : formats.end();
  if (format == formats.end()) {
    fmt::print(stderr, "usage: quantise FOLDER OUT fp8|nvfp4|affine4|affine6|affine8|f32 [BLOCK]\n");
    return 2;
  }
  rondo::QuantiseSpec spec = format->second;
  if (argc == 5) spec.block = std::atoi(argv[4]);
  if (spec.block < 1) {
    fmt::print(stderr, "quantise: BLOCK must be a whole number from 1 on\n");
    return 2;
  }
  const auto done = rondo::requantise(argv[1], argv[2], spec);
  if (!done) fmt::print(stderr, "quantise: {}\n", done.error().message);
  return done ? 0 : 1;
}
