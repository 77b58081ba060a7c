// ThreadPool: one fork-join over a fixed set of threads, the caller being one of them.
//
// run(parts, work) calls work(0) .. work(parts - 1), each exactly once, and returns when all have finished. parts <=
// num_threads(). A part goes to whichever thread claims it first, so a thread the system has put aside delays nobody
// but the part it has begun. Workers spin for a bounded time between calls and then sleep, so an idle server burns
// nothing. run() allocates nothing. One caller at a time; work must not call run(). When
// parts throw, the others still run, and run() throws what the first of them did.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
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

  std::size_t stack_bytes() const;  // of address space, of all its threads but the caller
  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }
  void run(int parts, FunctionRef<void(int)> work);

  // Cuts [0, n) into equal runs, at most one a thread and none smaller than `grain`, and calls work(begin, end).
  void split(int n, int grain, FunctionRef<void(int, int)> work);

 private:
  void worker(const std::stop_token& stop);
  void stop_workers();
  void claim_parts(std::uint32_t round);

  // round << 32 | parts << 16 | next part to claim: one word, so that a late worker can never claim a part of another
  // round.
  std::atomic<std::uint64_t> board_{0};
  std::atomic<int> finished_{0};  // parts of this round
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;                    // of who set failed_
  const FunctionRef<void(int)>* work_ = nullptr;  // read only by who has claimed a part of the round it belongs to
  std::vector<std::jthread> workers_;
};

int num_physical_threads();  // what --threads defaults to

}  // namespace rondo
