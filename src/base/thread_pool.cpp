#include "base/thread_pool.h"

#include <algorithm>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"

namespace rondo {

namespace {

constexpr int kSpins = 20'000;  // some 100 us: longer than any gap between two ops of a forward, short against a person

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  CHECK(num_threads >= 1);
  workers_.reserve(static_cast<std::size_t>(num_threads - 1));
  for (int index = 1; index < num_threads; ++index) {
    workers_.emplace_back([this, index](const std::stop_token& stop) { worker(stop, index); });
  }
}

ThreadPool::~ThreadPool() {
  for (auto& thread : workers_) thread.request_stop();
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

void ThreadPool::worker(const std::stop_token& stop, int index) {
  std::uint64_t seen = 0;
  while (true) {
    int spins = 0;
    while (round_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        pause();
      } else {
        round_.wait(seen, std::memory_order_acquire);
      }
    }
    if (stop.stop_requested()) return;
    ++seen;
    if (index < parts_) (*work_)(index);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(int parts, FunctionRef<void(int)> work) {
  CHECK(parts >= 1 && parts <= num_threads());
  if (parts == 1) return work(0);
  parts_ = parts;
  work_ = &work;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  work(0);
  while (running_.load(std::memory_order_acquire) != 0) pause();
}

void ThreadPool::split(int n, int grain, FunctionRef<void(int, int)> work) {
  if (n <= 0) return;
  const int parts = std::clamp(n / std::max(grain, 1), 1, num_threads());
  run(parts, [&](int part) {
    const auto begin = static_cast<int>(static_cast<std::int64_t>(n) * part / parts);
    const auto end = static_cast<int>(static_cast<std::int64_t>(n) * (part + 1) / parts);
    work(begin, end);
  });
}

int num_physical_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace rondo
