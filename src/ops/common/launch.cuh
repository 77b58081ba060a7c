// Launches: every kernel is queued so that it may begin while the one before it ends, and says itself where it needs
// what came before (programmatic dependent launch).
#pragma once

#include <array>
#include <tuple>

#include "device/cuda/check.h"
#include "device/cuda/graphs.h"
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
  const std::tuple<Parameters...> values{Parameters(arguments)...};
  const auto all = std::apply(
      [](const auto&... each) {
        return std::array<KernelArgument, sizeof...(Parameters)>{KernelArgument{&each, sizeof(each)}...};
      },
      values);
  s.cuda().graphs().launch({.name = name,
                            .kernel = reinterpret_cast<const void*>(kernel),
                            .grid = shape.grid,
                            .threads = shape.threads,
                            .shared_bytes = shape.shared_bytes,
                            .cluster = shape.cluster},
                           all);
}

}  // namespace rondo::cuda
