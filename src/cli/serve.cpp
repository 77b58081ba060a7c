// rondo serve: the server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <stop_token>
#include <thread>
#include <vector>

#include "api/template_prompt.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/load.h"
#include "server/server.h"

namespace rondo {

namespace {

constexpr int kDefaultMaxTokens = 4096;

struct ServeOptions {
  LoadOptions load;
  ServerOptions server;
  int max_tokens = kDefaultMaxTokens;
  std::vector<std::string> aliases;
  std::string log_format = "text";
};

std::string check_log_format(const std::string& format) {
  return format == "text" || format == "json" ? "" : fmt::format("'{}' is no log format; known: text, json", format);
}

void add_serve_flags(CLI::App& app, ServeOptions& options) {
  add_load_flags(app, options.load);
  app.add_option("--host", options.server.host, "address to listen on")->capture_default_str();
  app.add_option("--port", options.server.port, "port to listen on; 0 = any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "tokens of a reply whose request does not say")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--parallel", options.load.num_streams, "requests answered at the same time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--queue", options.load.max_queued, "requests that may wait; one more is refused with 503")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--alias", options.aliases, "another model name to answer to; '*' = any; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--log-format", options.log_format, "text or json")->check(check_log_format)->capture_default_str();
  app.set_config("--config", "", "TOML file with these flags as keys, without the dashes in front");
  app.allow_config_extras(CLI::config_extras_mode::error);
}

// What a person looks for on the terminal; in JSON logs it is an event like the others.
void say(LogFormat format, const std::string& line) {
  if (format == LogFormat::Json) return log_info("{}", line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Result<void> serve(ServeOptions options) {
  TRY(const Loaded loaded, load(options.load));
  ServedModel model = loaded.served();
  model.aliases = options.aliases;
  model.max_tokens = std::min(options.max_tokens, model.context_tokens);
  const TemplatePrompt prompts(*loaded.chat_template, *loaded.tokenizer);
  const LogFormat format = options.log_format == "json" ? LogFormat::Json : LogFormat::Text;
  set_log(format, LogLevel::Info);
  TRY(const std::unique_ptr<Server> server, Server::listen(options.server, model, *loaded.engine, prompts));
  std::string plan = loaded.model->plan().to_string();
  while (plan.ends_with('\n')) plan.pop_back();
  say(format, plan);
  if (!loaded.checkpoint->has_mtp()) say(format, "No draft head in this checkpoint: served undrafted.");
  std::jthread engine_thread([&](const std::stop_token& stop) { loaded.engine->run(stop); });
  server->stop_on_signals();
  say(format, fmt::format("Serving {} at {} ({}, {} threads, context {} tokens)", model.name, server->url(),
                          model.arithmetic, loaded.pool->num_threads(), model.context_tokens));
  say(format, fmt::format("Ready after {:.1f} s; of that, costs timed in {:.1f} s.",
                          (loaded.load_ms + loaded.timing_ms) / 1000, loaded.timing_ms / 1000));
  if (loaded.model->facts().has_head && !loaded.costs.priced())
    say(format, "Drafts are unpriced: " + (loaded.costs.why.empty() ? "--unpriced" : loaded.costs.why));
  server->run([&] { engine_thread.request_stop(); });
  engine_thread.request_stop();
  engine_thread.join();
  say(format, "Stopped.");
  return {};
}

}  // namespace

int serve_command(int argc, char** argv) {
  CLI::App app("Serves a model behind an OpenAI-compatible address.", "rondo serve");
  ServeOptions options;
  add_serve_flags(app, options);
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  const Result<void> done = serve(std::move(options));
  return done ? 0 : fail_with("rondo serve", done.error());
}

}  // namespace rondo
