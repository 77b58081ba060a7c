#include "cli/read_rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "device/memory.h"

namespace rondo {

namespace {

constexpr int kPasses = 15;

// Eight sums side by side, so that the additions wait for memory and not for each other.
std::uint64_t sum_words(const std::uint64_t* words, std::size_t n) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= n; i += 8) {
    for (std::size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace

Result<double> measure_read_rate(ThreadPool& pool, std::size_t size_bytes) {
  TRY(const Buffer buffer, Buffer::reserve(size_bytes, "measuring the read rate"));
  const auto* words = reinterpret_cast<const std::uint64_t*>(buffer.data());
  const std::size_t num_words = size_bytes / sizeof(std::uint64_t);
  std::atomic<std::uint64_t> total{0};  // used, so that no read can be left out
  std::vector<double> rates;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = std::chrono::steady_clock::now();
    const auto parts = static_cast<std::size_t>(pool.num_threads());
    pool.run(pool.num_threads(), [&](int part) {
      const std::size_t each = num_words / parts;
      total += sum_words(words + each * static_cast<std::size_t>(part), each);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    rates.push_back(static_cast<double>(size_bytes) / seconds.count());
  }
  std::sort(rates.begin(), rates.end());
  return total == 0 ? rates[rates.size() / 2] : 0;  // the buffer is all zeros
}

}  // namespace rondo
