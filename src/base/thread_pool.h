// ThreadPool: one fork-join over a fixed set of threads, the caller being thread 0.
//
// run(parts, work) calls work(0) .. work(parts - 1), each exactly once and on its own thread, and returns when all have
// finished. parts <= num_threads(). Workers spin for a bounded time between calls and then sleep, so an idle server
// burns nothing. run() allocates nothing. One caller at a time; work must not throw and must not call run().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace rondo {

// A borrowed callable: two words, never owns, never allocates.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the requires above keeps it off copies
      FunctionRef(F&& f)  // not explicit: it stands in for the callable
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);  // at least 1
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }
  void run(int parts, FunctionRef<void(int)> work);

  // Cuts [0, n) into equal runs, at most one a thread and none smaller than `grain`, and calls work(begin, end).
  void split(int n, int grain, FunctionRef<void(int, int)> work);

 private:
  void worker(const std::stop_token& stop, int index);

  std::atomic<std::uint64_t> round_{0};  // one up for each run(); workers wait for it to move
  std::atomic<int> running_{0};
  int parts_ = 0;
  const FunctionRef<void(int)>* work_ = nullptr;
  std::vector<std::jthread> workers_;
};

int num_physical_threads();  // what --threads defaults to

}  // namespace rondo
