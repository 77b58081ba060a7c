// rondo plan: the memory plan and what fits, without loading.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/load.h"
#include "cli/what_fits.h"

namespace rondo {

namespace {

constexpr double kMib = 1048576.0;

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
  for (const Fitting& fitting : what_fits(checkpoint, pool, shape, room_bytes))
    fmt::print("  {:>9}  {:>7}\n", fitting.context_tokens, streams_in_words(fitting));
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
