// fork_rows: rows over the threads, when there is enough to do that a fork pays. Where the cut falls never changes a
// row's bits; it is a matter of time alone.
#pragma once

#include <algorithm>

#include "device/stream.h"

namespace rondo {

constexpr std::int64_t kForkWork = 8 * 1024;  // elements a thread under which a fork costs more than it saves

// work(begin, end) over [0, n), at least kForkWork elements a thread.
inline void fork_rows(Stream& s, int n, std::int64_t elements_each, FunctionRef<void(int, int)> work) {
  const std::int64_t each = std::max<std::int64_t>(elements_each, 1);
  s.pool().split(n, static_cast<int>(std::max<std::int64_t>((kForkWork + each - 1) / each, 1)), work);
}

// The same where each thread needs scratch of its own: work(part, begin, end), part < num_threads.
inline void fork_parts(Stream& s, int n, std::int64_t elements_each, FunctionRef<void(int, int, int)> work) {
  if (n <= 0) return;
  const std::int64_t total = std::max<std::int64_t>(elements_each, 1) * n;
  const std::int64_t most = std::min<std::int64_t>(n, s.pool().num_threads());
  const int parts = static_cast<int>(std::clamp<std::int64_t>(total / kForkWork, 1, most));
  s.pool().run(parts, [&](int part) {
    work(part, static_cast<int>(static_cast<std::int64_t>(n) * part / parts),
         static_cast<int>(static_cast<std::int64_t>(n) * (part + 1) / parts));
  });
}

}  // namespace rondo
