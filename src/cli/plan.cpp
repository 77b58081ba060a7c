// rondo plan: the memory plan and what fits, without loading.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/load.h"

namespace rondo {

namespace {

constexpr double kMib = 1048576.0;
constexpr int kMostStreams = 256;  // --parallel takes no more

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
  for (const MemoryPlan::Item& line : plan.lines) bytes += line.bytes;
  return bytes;
}

// The most streams of this context that fit, with the prefix cache as planned; 0 = not even one.
int most_streams(const WeightSource& source, ThreadPool& pool, ModelOptions shape, int context_tokens,
                 std::uint64_t room_bytes) {
  shape.context_tokens = context_tokens;
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

Result<void> print_plan(const LoadOptions& options) {
  TRY(const std::string folder, model_folder(options));
  TRY(const Checkpoint checkpoint, Checkpoint::open(folder));
  std::optional<Tokenizer> tokenizer;
  if (checkpoint.has_tokenizer()) {
    TRY(Tokenizer opened, Tokenizer::open(folder));
    tokenizer.emplace(std::move(opened));
  }
  ThreadPool pool(options.num_threads.value_or(num_physical_threads()));
  ModelOptions shape = model_options(options, checkpoint, tokenizer ? &*tokenizer : nullptr);
  const int most_context = checkpoint.config().context_tokens;
  if (shape.context_tokens > most_context) {
    return failure(ErrorCode::InvalidArgument, fmt::format("a context of {} tokens: this model has at most {}",
                                                           shape.context_tokens, most_context));
  }
  TRY_VOID(fit_prompt_cache(options, checkpoint, pool, shape));
  const MemoryPlan plan = plan_memory(checkpoint, pool, shape);
  const std::uint64_t room_bytes = available_bytes();
  fmt::print("{}: {} streams of {} tokens, {} states in the prefix cache\n{}", folder, shape.max_streams,
             shape.context_tokens, shape.cache_states, plan.to_string());
  fmt::print("  {:<44} {:>8.1f} MiB\n\n", "available on this machine", static_cast<double>(room_bytes) / kMib);
  fmt::print("What fits there, mapped weights included:\n  {:>9}  {:>7}\n", "context", "streams");
  std::vector<int> contexts{4096, 16384, 65536, 262144, shape.context_tokens, most_context};
  std::erase_if(contexts, [&](int tokens) { return tokens > most_context; });
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  for (const int tokens : contexts) {
    const int streams = most_streams(checkpoint, pool, shape, tokens, room_bytes);
    fmt::print("  {:>9}  {:>7}\n", tokens,
               streams == 0              ? std::string("none")
               : streams == kMostStreams ? fmt::format("{} or more", streams)
                                         : fmt::format("{}", streams));
  }
  if (needed_bytes(plan) > room_bytes) {
    return failure(ErrorCode::Io,
                   fmt::format("the plan needs {:.1f} MiB, of which {:.1f} are available: a smaller "
                               "--context, --parallel or --prompt-cache-mib",
                               static_cast<double>(needed_bytes(plan)) / kMib, static_cast<double>(room_bytes) / kMib));
  }
  return {};
}

}  // namespace

int plan_command(int argc, char** argv) {
  CLI::App app("The memory plan and what fits, without loading. Exit 1 when the plan does not fit this machine.",
               "rondo plan");
  LoadOptions options;
  add_load_flags(app, options);
  add_capacity_flags(app, options);
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  const Result<void> done = print_plan(options);
  return done ? 0 : fail_with("rondo plan", done.error());
}

}  // namespace rondo
