// Drawing one token from a row of logits, by what the draw is asked for: microseconds of one thread, the best of
// several.
//
//   draw_time [VOCABULARY [ROUNDS]]      (default 248320, 50)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "ops/sample/draw.h"

namespace rondo {
namespace {

struct Case {
  std::string name;
  DrawSettings settings;
  bool is_masked = false;
};

int run(int vocab, int rounds) {
  const auto n = static_cast<std::size_t>(vocab);
  std::vector<float> logits(n), shaped(n);
  for (std::size_t i = 0; i < n; ++i) {  // the tail of a language model's: a few far above, the rest spread around -5
    const double u = unit_interval(random_bits(1, i));
    logits[i] = static_cast<float>(-5 - 2 * std::log(-std::log(u)));
  }
  std::vector<Candidate> candidates(n);
  std::vector<std::uint32_t> seen((n + 31) / 32), mask((n + 31) / 32);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::uint32_t>(random_bits(2, i));
  std::vector<std::int32_t> generated(1000);
  for (std::size_t i = 0; i < generated.size(); ++i) generated[i] = static_cast<std::int32_t>(random_bits(3, i) % n);
  const Case cases[] = {
      {"temperature 0", {.temperature = 0}},
      {"temperature 0.7", {.temperature = 0.7F}},
      {"0.7, top_k 20, top_p 0.95", {.temperature = 0.7F, .top_k = 20, .top_p = 0.95F}},
      {"0.7, top_p 0.95", {.temperature = 0.7F, .top_p = 0.95F}},
      {"0.7, min_p 0.05", {.temperature = 0.7F, .min_p = 0.05F}},
      {"0.7, penalties, 1,000 tokens", {.temperature = 0.7F, .presence_penalty = 1}},
      {"temperature 0, mask", {.temperature = 0}, true},
      {"0.7, top_k 20, top_p 0.95, mask", {.temperature = 0.7F, .top_k = 20, .top_p = 0.95F}, true},
  };
  fmt::print("{} tokens on {}: microseconds a draw\n", vocab, isa_name(best_isa()));
  for (const Case& each : cases) {
    double best_us = 1e9;
    DrawSettings settings = each.settings;
    for (int round = 0; round < rounds; ++round) {
      settings.seed = static_cast<std::uint64_t>(round);
      const DrawRow row{.settings = &settings,
                        .position = round,
                        .generated = generated,
                        .drafted = {},
                        .mask = each.is_masked ? TokenMask(mask) : TokenMask()};
      const auto begin = std::chrono::steady_clock::now();
      draw(best_isa(), logits, row, {candidates, shaped, seen});
      const auto end = std::chrono::steady_clock::now();
      best_us = std::min(best_us, std::chrono::duration<double, std::micro>(end - begin).count());
    }
    fmt::print("{:<34}{:>10.0f}\n", each.name, best_us);
  }
  return 0;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  const int vocab = argc > 1 ? std::atoi(argv[1]) : 248320, rounds = argc > 2 ? std::atoi(argv[2]) : 50;
  if (vocab < 1000 || rounds < 1) {
    fmt::print(stderr, "usage: draw_time [VOCABULARY [ROUNDS]], VOCABULARY at least 1000\n");
    return 1;
  }
  return rondo::run(vocab, rounds);
}
