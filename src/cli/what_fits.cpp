#include "cli/what_fits.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace rondo {

namespace {

int most_streams(const WeightSource& source, ThreadPool& pool, ModelOptions shape, std::uint64_t room_bytes) {
  const int rows = shape.max_rows;
  int fits = 0, too_many = kMostStreams + 1;
  while (too_many - fits > 1) {
    const int middle = (fits + too_many) / 2;
    shape.max_streams = middle;
    shape.max_rows = std::max(rows, middle);
    (needed_bytes(plan_memory(source, pool, shape)) <= room_bytes ? fits : too_many) = middle;
  }
  return fits;
}

}  // namespace

// MemAvailable of /proc/meminfo, else all there is.
std::uint64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kib = 0;
  while (file >> name >> kib && std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t needed_bytes(const MemoryPlan& plan) {
  std::uint64_t bytes = 0;
  for (const MemoryPlan::Item& line : plan.lines) {
    if (line.held != MemoryPlan::Held::AsUsed) bytes += line.bytes;
  }
  return bytes;
}

std::vector<Fitting> what_fits(const WeightSource& source, ThreadPool& pool, const ModelOptions& shape,
                               std::uint64_t room_bytes) {
  const int most_context = source.config().context_tokens;
  std::vector<int> contexts{4096, 16384, 65536, 262144, shape.context_tokens, most_context};
  std::erase_if(contexts, [&](int tokens) { return tokens > most_context; });
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  std::vector<Fitting> out;
  for (const int tokens : contexts) {
    ModelOptions longer = shape;
    longer.context_tokens = tokens;
    out.push_back({tokens, most_streams(source, pool, longer, room_bytes)});
  }
  return out;
}

std::string streams_in_words(const Fitting& fitting) {
  if (fitting.streams == 0) return "none";
  return std::to_string(fitting.streams) + (fitting.streams == kMostStreams ? " or more" : "");
}

}  // namespace rondo
