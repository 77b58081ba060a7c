#include "device/cuda/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "device/cuda/check.h"
#include "device/cuda/graphs.h"
#include "device/device_error.h"

namespace rondo {

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw DeviceError(fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

Result<std::unique_ptr<CudaQueue>> CudaQueue::open() {
  // Kernels are loaded with the queue, not when a request first needs one: then nothing grows under it.
  static_cast<void>(::setenv("CUDA_MODULE_LOADING", "EAGER", 0));
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess || count == 0) {
    return failure(ErrorCode::NotFound,
                   fmt::format("no CUDA GPU to be seen: {}",
                               status == cudaSuccess ? "the driver lists none" : cudaGetErrorString(status)));
  }
  cudaDeviceProp properties{};
  RONDO_CUDA_CALL(cudaGetDeviceProperties(&properties, 0));
  if (properties.major != 9 || properties.minor != 0) {
    return failure(ErrorCode::NotFound,
                   fmt::format("{} has compute capability {}.{}; this build has code for 9.0 alone", properties.name,
                               properties.major, properties.minor));
  }
  std::unique_ptr<CudaQueue> made(new CudaQueue());
  RONDO_CUDA_CALL(cudaSetDevice(0));
  std::size_t free_bytes = 0, total_bytes = 0;
  RONDO_CUDA_CALL(cudaMemGetInfo(&free_bytes, &total_bytes));
  made->facts_ = {properties.name, properties.multiProcessorCount, total_bytes, free_bytes};
  TRY(made->room_, reserve_on_gpu(kRoomBytes, "what kernels hand to each other"));
  RONDO_CUDA_CALL(cudaStreamCreateWithFlags(&made->stream_, cudaStreamNonBlocking));
  RONDO_CUDA_CALL(cudaEventCreateWithFlags(&made->mark_, cudaEventDisableTiming));
  made->graphs_ = std::make_unique<Graphs>(made->stream_);
  return made;
}

CudaQueue::CudaQueue() = default;

CudaQueue::~CudaQueue() {
  graphs_.reset();
  if (mark_ != nullptr) cudaEventDestroy(mark_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void CudaQueue::upload(void* to, const void* from_host, std::size_t bytes) {
  RONDO_CUDA_CALL(cudaMemcpyAsync(to, from_host, bytes, cudaMemcpyHostToDevice, stream_));
}

void CudaQueue::download(void* to_host, const void* from, std::size_t bytes) {
  RONDO_CUDA_CALL(cudaMemcpyAsync(to_host, from, bytes, cudaMemcpyDeviceToHost, stream_));
}

void CudaQueue::copy(void* to, const void* from, std::size_t bytes) {
  RONDO_CUDA_CALL(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
}

void CudaQueue::wait() {
  const auto begin = std::chrono::steady_clock::now();
  RONDO_CUDA_CALL(cudaStreamSynchronize(stream_));
  waited_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}
void CudaQueue::mark() { RONDO_CUDA_CALL(cudaEventRecord(mark_, stream_)); }
void CudaQueue::wait_for_mark() { RONDO_CUDA_CALL(cudaEventSynchronize(mark_)); }

namespace {

Result<Buffer> reserve(cudaError_t status, void* data, std::size_t size_bytes, const std::string& what,
                       const char* where, Buffer::Release release) {
  if (status != cudaSuccess) {
    cudaGetLastError();  // the refusal is told here; the next launch must not find it
    return failure(ErrorCode::Io,
                   fmt::format("cannot reserve {:.1f} MiB {} for {}: {}", static_cast<double>(size_bytes) / 1048576.0,
                               where, what, cudaGetErrorString(status)));
  }
  return Buffer(static_cast<std::byte*>(data), size_bytes, release);
}

}  // namespace

Result<Buffer> reserve_on_gpu(std::size_t size_bytes, const std::string& what) {
  if (size_bytes == 0) return Buffer();
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, size_bytes);
  if (status == cudaSuccess) {
    RONDO_CUDA_CALL(cudaMemset(data, 0, size_bytes));
    RONDO_CUDA_CALL(cudaStreamSynchronize(nullptr));  // a queue's own stream does not wait for this one
  }
  return reserve(status, data, size_bytes, what, "on the GPU",
                 [](std::byte* at, std::size_t) { static_cast<void>(cudaFree(at)); });
}

Result<Buffer> reserve_pinned(std::size_t size_bytes, const std::string& what) {
  if (size_bytes == 0) return Buffer();
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, size_bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (status == cudaSuccess) std::fill_n(static_cast<std::byte*>(data), size_bytes, std::byte{0});
  return reserve(status, data, size_bytes, what, "of pinned host memory",
                 [](std::byte* at, std::size_t) { static_cast<void>(cudaFreeHost(at)); });
}

}  // namespace rondo
