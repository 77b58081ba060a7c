// What fits: how many streams of which context a machine's memory holds, by the plan that would be reserved for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "ckpt/checkpoint.h"
#include "model/model.h"

namespace rondo {

inline constexpr int kMostStreams = 256;  // --parallel takes no more

struct Fitting {
  int context_tokens = 0;
  int streams = 0;  // of that context; kMostStreams = that many or more, 0 = not even one
};

std::uint64_t available_bytes();                     // of this machine's memory: free, or given up when asked for
std::uint64_t needed_bytes(const MemoryPlan& plan);  // mapped weights included: read from a disk, they would be slow

// In room_bytes, with the prefix cache and all else as `shape` has it: for its own context, for the model's longest,
// and for the usual ones up to that, ascending.
std::vector<Fitting> what_fits(const WeightSource& source, ThreadPool& pool, const ModelOptions& shape,
                               std::uint64_t room_bytes);
std::string streams_in_words(const Fitting& fitting);  // "none", "12", "256 or more"

}  // namespace rondo
