// How fast this machine reads memory, with the threads a model would use: what no forward can beat.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "base/thread_pool.h"

namespace rondo {

// Bytes a second over `size_bytes` of touched memory, the median of several passes.
Result<double> measure_read_rate(ThreadPool& pool, std::size_t size_bytes);

}  // namespace rondo
