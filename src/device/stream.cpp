#include "device/stream.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#ifdef RONDO_CUDA
#include "device/cuda/graphs.h"
#include "device/cuda/queue.h"
#endif

namespace rondo {

namespace {

#if defined(__x86_64__)
// Asked of the processor itself: clang 14's __builtin_cpu_supports has no name for it.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::Reference: return "reference";
    case Isa::Baseline: return "baseline";
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Sm90: return "sm_90";
  }
  return "unknown";
}

bool has_isa(Isa isa) {
  switch (isa) {
    case Isa::Reference: return true;
    case Isa::Baseline: return true;
#if defined(__x86_64__)
    case Isa::Avx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case Isa::Avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    case Isa::Avx2: return false;
    case Isa::Avx512: return false;
#endif
#ifdef RONDO_CUDA
    case Isa::Sm90: return CudaQueue::open().has_value();
#else
    case Isa::Sm90: return false;
#endif
  }
  return false;
}

Isa best_isa() {
  for (const Isa isa : {Isa::Avx512, Isa::Avx2}) {
    if (has_isa(isa)) return isa;
  }
  return Isa::Baseline;
}

#ifdef RONDO_CUDA
bool built_with_cuda() { return true; }
void Stream::upload(void* to, const void* from_host, std::size_t bytes) {
  if (bytes == 0) return;
  if (on_cuda()) return queue_->upload(to, from_host, bytes);
  if (to != from_host) std::memcpy(to, from_host, bytes);
}
void Stream::download(void* to_host, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (on_cuda()) return queue_->download(to_host, from, bytes);
  if (to_host != from) std::memcpy(to_host, from, bytes);
}
void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (on_cuda()) return queue_->copy(to, from, bytes);
  std::memcpy(to, from, bytes);
}
void Stream::begin_run(std::uint64_t shape) {
  if (on_cuda()) queue_->graphs().begin(shape);
}
void Stream::end_run() {
  if (on_cuda()) queue_->graphs().end();
}
void Stream::seal() {
  if (on_cuda()) queue_->graphs().seal();
}
void Stream::wait() {
  if (on_cuda()) queue_->wait();
}
double Stream::waited_ms() const { return on_cuda() ? queue_->waited_ms() : 0; }
void Stream::mark() {
  if (on_cuda()) queue_->mark();
}
void Stream::wait_for_mark() {
  if (on_cuda()) queue_->wait_for_mark();
}
Result<std::shared_ptr<CudaQueue>> open_queue(Isa isa) {
  if (isa != Isa::Sm90) return std::shared_ptr<CudaQueue>();
  TRY(std::unique_ptr<CudaQueue> queue, CudaQueue::open());
  return std::shared_ptr<CudaQueue>(std::move(queue));
}
Result<Buffer> reserve_for(Isa isa, std::size_t size_bytes, const std::string& what) {
  return isa == Isa::Sm90 ? reserve_on_gpu(size_bytes, what) : Buffer::reserve(size_bytes, what);
}
Result<Buffer> reserve_host_for(Isa isa, std::size_t size_bytes, const std::string& what) {
  return isa == Isa::Sm90 ? reserve_pinned(size_bytes, what) : Buffer::reserve(size_bytes, what);
}
#else
bool built_with_cuda() { return false; }
void Stream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}
Result<std::shared_ptr<CudaQueue>> open_queue(Isa isa) {
  if (isa != Isa::Sm90) return std::shared_ptr<CudaQueue>();
  return failure(ErrorCode::NotFound, "this build has no CUDA code: cmake --preset cuda makes one that has");
}
Result<Buffer> reserve_for(Isa, std::size_t size_bytes, const std::string& what) {
  return Buffer::reserve(size_bytes, what);
}
Result<Buffer> reserve_host_for(Isa, std::size_t size_bytes, const std::string& what) {
  return Buffer::reserve(size_bytes, what);
}
void Stream::upload(void* to, const void* from_host, std::size_t bytes) {
  if (to != from_host && bytes > 0) std::memcpy(to, from_host, bytes);
}
void Stream::download(void* to_host, const void* from, std::size_t bytes) { upload(to_host, from, bytes); }
void Stream::begin_run(std::uint64_t) {}
void Stream::end_run() {}
void Stream::seal() {}
void Stream::wait() {}
double Stream::waited_ms() const { return 0; }
void Stream::mark() {}
void Stream::wait_for_mark() {}
#endif

}  // namespace rondo
