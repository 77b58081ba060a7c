// Stream: an ordered queue of device work. On a CPU the work runs at once, on the caller's threads; on a GPU
// (Isa::Sm90) it is queued, and only wait() knows that it is done.
//
// An op looks at isa() to pick its code. A dry stream runs nothing: a dry forward takes its scratch and so tells the
// memory plan exactly what a real one of that size needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/thread_pool.h"
#include "device/memory.h"

namespace rondo {

class CudaQueue;

// Which code an op runs. Reference is the plain float32 oracle; Baseline to Avx512 are one source compiled for that
// instruction set; Sm90 is the CUDA code for a Hopper GPU.
enum class Isa { Reference, Baseline, Avx2, Avx512, Sm90 };
std::string_view isa_name(Isa isa);  // "avx512"
bool has_isa(Isa isa);               // can this machine run it, and was it compiled in
Isa best_isa();                      // of the CPU's
bool built_with_cuda();

class Stream {
 public:
  Stream(ThreadPool& pool, Isa isa) : pool_(&pool), isa_(isa) {}
  Stream(ThreadPool& pool, CudaQueue& queue) : pool_(&pool), isa_(Isa::Sm90), queue_(&queue) {}
  static Stream dry(ThreadPool& pool, Isa isa = Isa::Reference) {
    Stream stream(pool, isa);
    stream.dry_ = true;
    return stream;
  }

  ThreadPool& pool() const { return *pool_; }
  Isa isa() const { return isa_; }
  bool is_dry() const { return dry_; }
  bool on_cuda() const { return isa_ == Isa::Sm90; }
  CudaQueue& cuda() const { return *queue_; }

  // Between the host's memory and the device's, in order with the ops. On a CPU they are one: a plain copy, or nothing
  // where both addresses are the same. On a GPU the host's side is pinned, and must not be touched before wait().
  void upload(void* to, const void* from_host, std::size_t bytes);
  void download(void* to_host, const void* from, std::size_t bytes);
  void copy(void* to, const void* from, std::size_t bytes);  // both the device's
  // What `work` queues goes to a GPU as one piece (device/cuda/graphs.h); it queues ops alone, no copies. shape: work
  // of one shape queues nearly the same; 0: of none.
  template <class Work>
  void as_one(std::uint64_t shape, Work work) {
    begin_run(shape);
    work();
    end_run();
  }
  void seal();               // what as_one() needs on a GPU is made up to here, and never later
  void wait();               // until everything so far is done
  double waited_ms() const;  // in wait(), so far; 0 on a CPU
  void mark();               // remembers this point
  void wait_for_mark();      // until the device has passed it: what was uploaded before may be written anew

 private:
  void begin_run(std::uint64_t shape);
  void end_run();

  ThreadPool* pool_;
  Isa isa_;
  CudaQueue* queue_ = nullptr;
  bool dry_ = false;
};

// The GPU's queue that Isa::Sm90 runs on, null for the CPU's. NotFound, in words, where there is none.
Result<std::shared_ptr<CudaQueue>> open_queue(Isa isa);
inline Stream stream_on(ThreadPool& pool, Isa isa, const std::shared_ptr<CudaQueue>& queue) {
  return queue != nullptr ? Stream(pool, *queue) : Stream(pool, isa);
}

// Memory that ops of that kind read and write; and the host's side of what is uploaded or downloaded.
Result<Buffer> reserve_for(Isa isa, std::size_t size_bytes, const std::string& what);
Result<Buffer> reserve_host_for(Isa isa, std::size_t size_bytes, const std::string& what);

}  // namespace rondo
