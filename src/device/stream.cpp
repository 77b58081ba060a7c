#include "device/stream.h"

namespace rondo {

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
    case Isa::Avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
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
