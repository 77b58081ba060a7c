// Calls of the CUDA runtime, checked: the first that fails is thrown with its name. For .cu files and device/cuda.
#pragma once

#include <cuda_runtime_api.h>

namespace rondo {

void check_cuda(cudaError_t status, const char* call);  // throws DeviceError
// After a kernel's launch: what the launch itself said.
inline void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

}  // namespace rondo

#define RONDO_CUDA_CALL(call) ::rondo::check_cuda(call, #call)
