// CudaQueue: one GPU and one ordered queue of work on it. No CUDA header: a CPU build includes this file too.
//
// upload and download are asynchronous and in order with the kernels; host memory they name must be pinned (or stay
// untouched until wait()). Every failure is a DeviceError that names the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "device/memory.h"

struct CUstream_st;  // CUDA's own names of a stream and an event
struct CUevent_st;

namespace rondo {

class Graphs;

struct GpuFacts {
  std::string name;
  int num_sms = 0;
  std::uint64_t total_bytes = 0, free_bytes = 0;  // free: when the queue was opened
};

class CudaQueue {
 public:
  // NotFound, in words, where there is no GPU this build has code for.
  static Result<std::unique_ptr<CudaQueue>> open();
  ~CudaQueue();
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  const GpuFacts& facts() const { return facts_; }
  CUstream_st* handle() const { return stream_; }
  Graphs& graphs() const { return *graphs_; }  // every kernel is launched through them

  void upload(void* to, const void* from_host, std::size_t bytes);
  void download(void* to_host, const void* from, std::size_t bytes);
  void copy(void* to, const void* from, std::size_t bytes);
  // A few MiB on the GPU that whoever queues work may use until the next one does.
  std::span<std::byte> room() const { return {room_.data(), room_.size_bytes()}; }
  static constexpr std::size_t kRoomBytes = std::size_t{16} << 20;
  void wait();                                     // until all work is done
  double waited_ms() const { return waited_ms_; }  // in wait(), so far
  void mark();                                     // remembers this point of the queue
  void wait_for_mark();                            // until the queue has passed it; at once when nothing was marked

 private:
  CudaQueue();
  GpuFacts facts_;
  Buffer room_;
  CUstream_st* stream_ = nullptr;
  CUevent_st* mark_ = nullptr;
  double waited_ms_ = 0;
  std::unique_ptr<Graphs> graphs_;
};

// Memory of the GPU, zeroed; and memory of the host that the GPU reads and writes at its own address. Io, naming
// `what`.
Result<Buffer> reserve_on_gpu(std::size_t size_bytes, const std::string& what);
Result<Buffer> reserve_pinned(std::size_t size_bytes, const std::string& what);

}  // namespace rondo
