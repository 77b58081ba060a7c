#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <utility>
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

constexpr int kSpinsBeforeYield = 2'000;  // some 10 us: then whoever holds the part we wait for may need our processor

std::uint32_t round_of(std::uint64_t board) { return static_cast<std::uint32_t>(board >> 32); }
int parts_of(std::uint64_t board) { return static_cast<int>(board >> 16 & 0xFFFF); }
int next_of(std::uint64_t board) { return static_cast<int>(board & 0xFFFF); }

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  CHECK(num_threads >= 1 && num_threads < 0xFFFF);
  workers_.reserve(static_cast<std::size_t>(num_threads - 1));
  try {
    for (int index = 1; index < num_threads; ++index) {
      workers_.emplace_back([this](const std::stop_token& stop) { worker(stop); });
    }
  } catch (...) {  // no thread to be had: those there are must not be waited for in vain
    stop_workers();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop_workers(); }

void ThreadPool::stop_workers() {
  for (auto& thread : workers_) thread.request_stop();
  board_.fetch_add(std::uint64_t{1} << 32, std::memory_order_release);
  board_.notify_all();
}

void ThreadPool::worker(const std::stop_token& stop) {
  std::uint32_t seen = 0;
  while (true) {
    std::uint64_t board = board_.load(std::memory_order_acquire);
    for (int spins = 0; round_of(board) == seen; board = board_.load(std::memory_order_acquire)) {
      if (++spins < kSpins) {
        pause();
      } else {
        board_.wait(board, std::memory_order_acquire);
      }
    }
    if (stop.stop_requested()) return;
    seen = round_of(board);
    claim_parts(seen);
  }
}

void ThreadPool::claim_parts(std::uint32_t round) {
  std::uint64_t board = board_.load(std::memory_order_acquire);
  while (round_of(board) == round && next_of(board) < parts_of(board)) {
    if (!board_.compare_exchange_weak(board, board + 1, std::memory_order_acq_rel)) continue;
    try {
      (*work_)(next_of(board));
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
    }
    finished_.fetch_add(1, std::memory_order_release);
    board = board_.load(std::memory_order_acquire);
  }
}

void ThreadPool::run(int parts, FunctionRef<void(int)> work) {
  CHECK(parts >= 1 && parts <= num_threads());
  if (parts == 1) return work(0);
  work_ = &work;
  finished_.store(0, std::memory_order_relaxed);
  const std::uint32_t round = round_of(board_.load(std::memory_order_relaxed)) + 1;
  board_.store(std::uint64_t{round} << 32 | static_cast<std::uint64_t>(parts) << 16, std::memory_order_release);
  board_.notify_all();
  claim_parts(round);
  for (int spins = 0; finished_.load(std::memory_order_acquire) != parts; ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  if (failed_.exchange(false, std::memory_order_relaxed)) std::rethrow_exception(std::exchange(failure_, nullptr));
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

std::size_t ThreadPool::stack_bytes() const {
  pthread_attr_t attributes;
  std::size_t each = 0;
  if (::pthread_attr_init(&attributes) != 0) return 0;
  ::pthread_attr_getstacksize(&attributes, &each);
  ::pthread_attr_destroy(&attributes);
  return each * workers_.size();
}

int num_physical_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace rondo
