// Stream: an ordered queue of device work. On a CPU the work runs at once, on the caller's threads.
//
// An op looks at isa() to pick its code. A dry stream runs nothing: a dry forward takes its scratch and so tells the
// memory plan exactly what a real one of that size needs.
#pragma once

#include <optional>
#include <string_view>

#include "base/thread_pool.h"

namespace rondo {

// Which code an op runs. Reference is the plain float32 oracle; the others are one source compiled for that instruction
// set.
enum class Isa { Reference, Baseline, Avx2, Avx512 };
std::string_view isa_name(Isa isa);  // "avx512"
bool has_isa(Isa isa);               // can this machine run it, and was it compiled in
Isa best_isa();

class Stream {
 public:
  Stream(ThreadPool& pool, Isa isa) : pool_(&pool), isa_(isa) {}
  static Stream dry(ThreadPool& pool) {
    Stream stream(pool, Isa::Reference);
    stream.dry_ = true;
    return stream;
  }

  ThreadPool& pool() const { return *pool_; }
  Isa isa() const { return isa_; }
  bool is_dry() const { return dry_; }

 private:
  ThreadPool* pool_;
  Isa isa_;
  bool dry_ = false;
};

}  // namespace rondo
