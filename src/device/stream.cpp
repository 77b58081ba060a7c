#include "device/stream.h"

#if defined(__x86_64__)
#include <cpuid.h>
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
  }
  return false;
}

Isa best_isa() {
  for (const Isa isa : {Isa::Avx512, Isa::Avx2}) {
    if (has_isa(isa)) return isa;
  }
  return Isa::Baseline;
}

}  // namespace rondo
