// CHECK: a promise between programmers, always on; breaking it ends the process with the place and the condition.
// DCHECK: the same in debug builds only, for invariants that cost too much to look at on every call.
#pragma once

namespace rondo {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) ::rondo::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
#define DCHECK(condition) \
  do {                    \
  } while (false)
#else
#define DCHECK(condition) CHECK(condition)
#endif
