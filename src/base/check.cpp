#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace rondo {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "rondo: broken promise at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace rondo
