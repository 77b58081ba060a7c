#include "cli/flags.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/thread_pool.h"
#include "device/stream.h"

namespace rondo {

namespace {

std::string check_device(const std::string& device) {
  if (device == "cuda" && !built_with_cuda()) return "this build has no CUDA code: cuda takes cmake --preset cuda";
  if (device == "auto" || device == "cpu" || device == "cuda") return "";
  return fmt::format("'{}' is no device; known: auto, cpu, cuda", device);
}

}  // namespace

std::optional<int> parse_flags(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked_for_text) {  // --help, --version
    return app.exit(asked_for_text);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {} ({} --help lists the flags)\n", app.get_name(), error.what(), app.get_name());
    return 2;
  }
}

void add_device_flag(CLI::App& app, LoadOptions& options) {
  app.add_option("--device", options.device, "auto (a GPU where there is one), cpu or cuda")
      ->check(check_device)
      ->capture_default_str();
}

void add_load_flags(CLI::App& app, LoadOptions& options) {
  app.add_option("MODEL", options.model_folder, "checkpoint folder; without one, the bundled model");
  add_device_flag(app, options);
  app.add_option("--threads", options.num_threads, "threads that compute (default: one a core)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--context", options.context_tokens,
                 fmt::format("tokens of one request, prompt and reply (default: the model's own, at most {})",
                             kDefaultContextTokens))
      ->check(CLI::Range(2, 1 << 30));
  app.add_flag("!--no-drafts", options.drafts, "never draft: the MTP head is left out");
  app.add_option("--max-depth", options.max_depth, "drafts of one window at most")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_flag("!--unpriced", options.priced, "do not time forwards at load; draft by the unpriced rule");
}

void add_capacity_flags(CLI::App& app, LoadOptions& options) {
  app.add_option("--parallel", options.num_streams, "requests answered at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--prompt-cache-mib", options.prompt_cache_mib,
                 fmt::format("MiB for states of prompts and the KV blocks with them; 0 = none (default: {} states a "
                             "stream, at most an eighth of the machine's memory)",
                             kCacheStatesPerStream))
      ->check(CLI::Range(0, 1 << 30));
}

int fail_with(const std::string& command, const Error& error) {
  fmt::print(stderr, "{}: {}\n", command, error.message);
  return 1;
}

}  // namespace rondo
