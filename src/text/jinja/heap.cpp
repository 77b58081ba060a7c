#include "text/jinja/heap.h"

namespace rondo::jinja {

namespace {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RONDO_JINJA_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define RONDO_JINJA_ASAN
#endif

#ifdef RONDO_JINJA_ASAN
constexpr std::size_t kChunkBytes = 1;  // every object its own block, so that ASan sees its edges
#else
constexpr std::size_t kChunkBytes = std::size_t{32} << 10;
#endif
constexpr std::size_t kAlign = 16;
}  // namespace

void fault(std::string message) { throw Fault{std::move(message)}; }
void fault_at(int line, std::string message) { throw Fault{std::move(message), false, line}; }

void* Heap::take(std::size_t n) {
  if (n > kMaxHeapBytes) out_of_memory();
  n = (n + kAlign - 1) / kAlign * kAlign;
  used_bytes_ += n;
  if (used_bytes_ > kMaxHeapBytes) out_of_memory();
  if (n > free_bytes_) {
    if (n >= kChunkBytes / 4) {  // its own block; the current chunk goes on being filled
      chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(n));
      return chunks_.back().get();
    }
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kChunkBytes));
    free_ = chunks_.back().get();
    free_bytes_ = kChunkBytes;
  }
  std::byte* const at = free_;
  free_ += n;
  free_bytes_ -= n;
  return at;
}

void Heap::out_of_memory() {
  fault("the template's values need more than " + std::to_string(kMaxHeapBytes >> 20) + " MiB");
}
void Heap::out_of_steps() { fault("the template does too much work; it was stopped"); }

}  // namespace rondo::jinja
