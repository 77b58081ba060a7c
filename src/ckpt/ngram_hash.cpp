#include "ckpt/ngram_hash.h"

#include <limits>

#include "base/check.h"

namespace rondo {

namespace {

constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15u;
constexpr std::uint64_t kLayerStride = 10007;

std::uint64_t splitmix64(std::uint64_t state) {
  std::uint64_t z = state + kGamma;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

bool is_prime(std::int64_t n) {
  if (n < 4) return n >= 2;
  if (n % 2 == 0 || n % 3 == 0) return false;
  for (std::int64_t d = 5; d * d <= n; d += 6) {
    if (n % d == 0 || n % (d + 2) == 0) return false;
  }
  return true;
}

}  // namespace

NgramHash ngram_hash(const ModelConfig& config, int ple_ordinal) {
  const NgramConfig& ngram = config.ngram;
  CHECK(ple_ordinal >= 0 && ple_ordinal < static_cast<int>(ngram.layers.size()));
  NgramHash hash;
  const auto half = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / config.vocab_size / 2);
  const std::uint64_t layer_seed = ngram.seed + kLayerStride * static_cast<std::uint64_t>(ple_ordinal);
  for (int i = 0; i < ngram.ngram_size; ++i) {
    const std::uint64_t drawn = splitmix64(layer_seed + kGamma * static_cast<std::uint64_t>(i + 1)) % half;
    hash.multipliers.push_back(static_cast<std::int64_t>(2 * drawn + 1));
  }
  std::int64_t candidate = ngram.vocab_base;
  const auto next_prime = [&candidate] {
    while (!is_prime(candidate)) ++candidate;
    return candidate++;
  };
  for (int skipped = 0; skipped < ple_ordinal * ngram.num_heads(); ++skipped) next_prime();
  std::int64_t total = 0;
  for (int head = 0; head < ngram.num_heads(); ++head) {
    hash.head_offsets.push_back(total);
    hash.head_sizes.push_back(next_prime());
    total += hash.head_sizes.back();
  }
  hash.padded_rows = (total + ngram.vocab_multiple - 1) / ngram.vocab_multiple * ngram.vocab_multiple;
  return hash;
}

}  // namespace rondo
