// Upload: large host memory (mapped files) to a GPU, through two pinned buffers: one is filled by the pool's threads
// while the other is under way. Reports how far it is.
#pragma once

#include <array>
#include <functional>

#include "base/thread_pool.h"
#include "device/memory.h"
#include "device/stream.h"

namespace rondo {

class Upload {
 public:
  using Report = std::function<void(std::uint64_t done_bytes)>;
  // Io when there is no pinned memory for it. stream and pool outlive it.
  static Result<Upload> make(Stream& stream, ThreadPool& pool, Report report);

  void put(void* to, const void* from, std::size_t bytes);
  void finish();  // everything has arrived
  Stream& stream() { return *stream_; }

 private:
  Upload(Stream& stream, ThreadPool& pool, Report report)
      : stream_(&stream), pool_(&pool), report_(std::move(report)) {}
  Stream* stream_;
  ThreadPool* pool_;
  Report report_;
  std::array<Buffer, 2> pinned_;
  int next_ = 0;
  std::uint64_t done_bytes_ = 0;
};

}  // namespace rondo
