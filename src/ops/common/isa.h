// One source a kernel, compiled once for each instruction set, picked once a call.
//
// A kernel is a plain function over a range of its work. `x_ref.cpp` has it in namespace reference (the float32 oracle:
// loops as in the formula), `x_cpu.cpp` in namespace RONDO_ISA, which the build sets to baseline, avx2 and avx512 in
// turn. The files compiled for an instruction set include nothing but kernel headers and simd.h: an inline function of
// the standard library compiled for AVX-512 must never be the copy the linker keeps for everyone.
#pragma once

#include "base/check.h"
#include "device/stream.h"

#if defined(__x86_64__)
#define RONDO_DECLARE_KERNEL(name, ...) \
  namespace reference {                 \
  void name(__VA_ARGS__);               \
  }                                     \
  namespace baseline {                  \
  void name(__VA_ARGS__);               \
  }                                     \
  namespace avx2 {                      \
  void name(__VA_ARGS__);               \
  }                                     \
  namespace avx512 {                    \
  void name(__VA_ARGS__);               \
  }
#define RONDO_PICK(isa, name) ::rondo::pick_kernel(isa, reference::name, baseline::name, avx2::name, avx512::name)
#else
#define RONDO_DECLARE_KERNEL(name, ...) \
  namespace reference {                 \
  void name(__VA_ARGS__);               \
  }                                     \
  namespace baseline {                  \
  void name(__VA_ARGS__);               \
  }
#define RONDO_PICK(isa, name) ::rondo::pick_kernel(isa, reference::name, baseline::name, baseline::name, baseline::name)
#endif

// At the head of an op, after its checks and its scratch: on a GPU the call is the CUDA code's. In a build without CUDA
// there are no such streams.
#ifdef RONDO_CUDA
#define RONDO_ON_CUDA(s, call) \
  if ((s).on_cuda()) return cuda::call
#else
#define RONDO_ON_CUDA(s, call) CHECK(!(s).on_cuda())
#endif

namespace rondo {

template <class Kernel>
Kernel* pick_kernel(Isa isa, Kernel* reference, Kernel* baseline, Kernel* avx2, Kernel* avx512) {
  switch (isa) {
    case Isa::Reference: return reference;
    case Isa::Baseline: return baseline;
    case Isa::Avx2: return avx2;
    case Isa::Avx512: return avx512;
    case Isa::Sm90: break;  // ops hand such a stream on before they pick: RONDO_ON_CUDA
  }
  return baseline;
}

}  // namespace rondo
