// Launches: every kernel is queued so that it may begin while the one before it ends, and says itself where it needs
// what came before (programmatic dependent launch).
#pragma once

#include "device/cuda/check.h"
#include "device/cuda/queue.h"
#include "device/stream.h"

namespace rondo::cuda {

// At the head of every kernel: nothing queued before it still runs or has writes to come. What does not depend on that
// (a read of weights) may stand before the call. The next kernel is let in as soon as all blocks of this one have
// begun.
__device__ inline void let_next_in() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ inline void wait_for_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ inline void after_all_before() {
  let_next_in();
  wait_for_before();
}

struct LaunchShape {
  dim3 grid;
  int threads;
  int shared_bytes = 0;
  int cluster = 1;  // blocks along x that share a cluster
};

template <class... Parameters, class... Arguments>
void launch(Stream& s, const char* name, LaunchShape shape, void (*kernel)(Parameters...), Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = static_cast<unsigned>(shape.cluster);
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.stream = s.cuda().handle();
  config.attrs = attributes;
  config.numAttrs = 2;
  check_cuda(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), name);
}

}  // namespace rondo::cuda
