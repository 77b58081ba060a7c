// Preloaded into a program: from main on it counts what the program asks of the system, by kind (0 memory from malloc
// and its kin, 1 mappings, 2 threads), and refuses number RONDO_REFUSE_AT of kind RONDO_REFUSE_KIND. At the end it
// writes to the file RONDO_REFUSE_LOG how many there were of each kind, and how many were refused.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace {

enum Kind { kMemory, kMapping, kThread, kKinds };

std::atomic<long> asked[kKinds];
std::atomic<long> refused;
std::atomic<bool> counting;
int refuse_kind = -1;
long refuse_at = -1;

bool is_refused(Kind kind) {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const long number = asked[kind].fetch_add(1, std::memory_order_relaxed) + 1;
  if (kind != refuse_kind || number != refuse_at) return false;
  ++refused;
  errno = ENOMEM;
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void write_counts() {
  counting = false;
  const char* path = std::getenv("RONDO_REFUSE_LOG");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld %ld %ld %ld\n", asked[kMemory].load(), asked[kMapping].load(), asked[kThread].load(),
               refused.load());
  std::fclose(file);
}

using Main = int (*)(int, char**, char**);
using Hook = void (*)();
Main program;

int counted(int argc, char** argv, char** environment) {
  const char* kind = std::getenv("RONDO_REFUSE_KIND");
  const char* at = std::getenv("RONDO_REFUSE_AT");
  if (kind != nullptr) refuse_kind = std::atoi(kind);
  if (at != nullptr) refuse_at = std::atol(at);
  std::atexit(write_counts);
  counting = true;
  return program(argc, argv, environment);
}

}  // namespace

extern "C" {

// The C library's own, under the names that nobody can put another in front of.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) noexcept { return is_refused(kMemory) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) noexcept {
  return is_refused(kMemory) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) noexcept { return is_refused(kMemory) ? nullptr : __libc_realloc(old, bytes); }
void* memalign(size_t alignment, size_t bytes) noexcept {
  return is_refused(kMemory) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  if (is_refused(kMemory)) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}

void* mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static const auto real = next<decltype(&mmap)>("mmap");
  return is_refused(kMapping) ? MAP_FAILED : real(at, bytes, protection, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*), void* with) noexcept {
  static const auto real = next<decltype(&pthread_create)>("pthread_create");
  return is_refused(kThread) ? EAGAIN : real(thread, attributes, begin, with);
}

int __libc_start_main(Main begin, int argc, char** argv, Hook init, Hook fini, Hook loader_fini, void* stack_end) {
  program = begin;
  const auto real = next<decltype(&__libc_start_main)>("__libc_start_main");
  return real(counted, argc, argv, init, fini, loader_fini, stack_end);
}

}  // extern "C"
