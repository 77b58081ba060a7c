// rondo serve: the server.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "api/template_prompt.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/flags.h"
#include "cli/load.h"
#include "cli/what_fits.h"
#include "grammar/grammar.h"
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
  std::string api_key_file;
};

std::string check_log_format(const std::string& format) {
  return format == "text" || format == "json" ? "" : fmt::format("'{}' is no log format; known: text, json", format);
}

void add_serve_flags(CLI::App& app, ServeOptions& options) {
  add_load_flags(app, options.load);
  add_capacity_flags(app, options.load);
  app.add_option("--host", options.server.host, "address to listen on")->capture_default_str();
  app.add_option("--port", options.server.port, "port to listen on; 0 = any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "tokens of a reply whose request does not say")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--queue", options.load.max_queued, "requests that may wait; one more is refused with 429")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--stall-ms", options.load.stall_ms,
                 "milliseconds by which a prompt being read may hold up replies under way, between two rounds")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--alias", options.aliases, "another model name to answer to; '*' = any; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--log-format", options.log_format, "text or json")->check(check_log_format)->capture_default_str();
  app.add_flag("--log-text", options.server.logs_text, "log what requests ask and replies say; otherwise never logged");
  app.add_option("--api-key-file", options.api_key_file,
                 "keys that may ask, one a line, plain or as sha256:HEX; without it everybody may");
  app.add_option("--allow-origin", options.server.allowed_origins,
                 "web origin whose pages may ask, beside this machine's own; '*' = any; may be repeated")
      ->expected(1)
      ->take_all();
  add_config_flag(app);
}

// What a person looks for on the terminal; in JSON logs it is an event like the others.
void say(LogFormat format, const std::string& line) {
  if (format == LogFormat::Json) return log_info("{}", line);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

// Each connection is an open file, and many systems start a program with room for 1024.
void take_all_the_files_there_are() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);  // where this fails, fewer clients are accepted at a time, and that is logged
}

// What replies in a given form take, in words.
std::string add_structured_output(const Loaded& loaded, ServedModel& model) {
  auto vocabulary = grammar::Vocabulary::create(*loaded.tokenizer, model.vocab_size);
  if (!vocabulary) {
    model.why_no_grammars = vocabulary.error().message;
    return "No structured output: " + model.why_no_grammars;
  }
  constexpr std::size_t kCacheBytes = 64 << 20;
  constexpr double kMiB = 1 << 20;
  model.grammars = std::make_shared<grammar::GrammarCache>(*vocabulary, kCacheBytes);
  return fmt::format("Structured output: the vocabulary sorted in {:.1f} MiB, grammars kept in up to {:.0f} MiB.",
                     static_cast<double>((*vocabulary)->num_bytes()) / kMiB, static_cast<double>(kCacheBytes) / kMiB);
}

// What was reserved holds, and what more of this machine's memory would. A GPU's own memory is not asked.
std::string what_fits_in_words(const Loaded& loaded) {
  const ModelOptions& shape = loaded.shape;
  std::string line = fmt::format("Fits: {} stream{} of {} tokens at once", shape.max_streams,
                                 shape.max_streams == 1 ? "" : "s", shape.context_tokens);
  if (shape.isa == Isa::Sm90) return line + ".";
  const std::uint64_t room_bytes = available_bytes() + loaded.model->plan().reserved_bytes();
  std::string more;
  for (const Fitting& fitting : what_fits(*loaded.checkpoint, *loaded.pool, shape, room_bytes)) {
    if (fitting.context_tokens < shape.context_tokens) continue;
    more += fitting.context_tokens == shape.context_tokens
                ? "; this machine's memory would hold " + streams_in_words(fitting)
                : fmt::format(", or {} of {}", streams_in_words(fitting), fitting.context_tokens);
  }
  return line + more + ".";
}

void say_ready(LogFormat format, const Loaded& loaded, const ServedModel& model, const std::string& forms,
               const std::string& url) {
  std::string plan = loaded.model->plan().to_string();
  while (plan.ends_with('\n')) plan.pop_back();
  say(format, plan);
  say(format, what_fits_in_words(loaded));
  say(format, forms);
  if (!loaded.checkpoint->has_mtp()) say(format, "No draft head in this checkpoint: served undrafted.");
  say(format, fmt::format("Serving {} at {} ({}, {} threads, context {} tokens)", model.name, url, model.arithmetic,
                          loaded.pool->num_threads(), model.context_tokens));
  say(format, fmt::format("Ready after {:.1f} s; of that, costs timed in {:.1f} s.",
                          (loaded.load_ms + loaded.timing_ms) / 1000, loaded.timing_ms / 1000));
  if (loaded.model->facts().has_head && !loaded.costs.priced())
    say(format, "Drafts are unpriced: " + (loaded.costs.why.empty() ? "--unpriced" : loaded.costs.why));
}

// However serve() is left, also by an exception, its threads hear of it: joining them would wait for ever otherwise.
class StopsBoth {
 public:
  StopsBoth(Server& server, std::stop_source& engine) : server_(server), engine_(engine) {}
  StopsBoth(const StopsBoth&) = delete;
  ~StopsBoth() {
    server_.stop();
    engine_.request_stop();
  }

 private:
  Server& server_;
  std::stop_source& engine_;
};

// Listens first: a taken port is known at once, and whoever asks during the load hears that it is loading.
Result<void> serve(ServeOptions options) {
  const LogFormat format = options.log_format == "json" ? LogFormat::Json : LogFormat::Text;
  set_log(format, LogLevel::Info);
  options.server.version = RONDO_VERSION;
  take_all_the_files_there_are();
  if (!options.api_key_file.empty()) {
    TRY(options.server.keys, ApiKeys::read(options.api_key_file));
  }
  std::optional<Loaded> loaded;  // outlives the server, which answers from it
  std::optional<TemplatePrompt> prompts;
  TRY(const std::unique_ptr<Server> server, Server::listen(options.server));
  server->stop_on_signals();
  write_log(LogLevel::Info, fmt::format("listening at {}; the model is loading", server->url()),
            {{"url", server->url()}});
  std::stop_source stop_engine;
  std::jthread engine_thread;
  std::jthread io_thread([&] { server->run([&] { stop_engine.request_stop(); }); });
  const StopsBoth stops_both(*server, stop_engine);
  TRY(loaded, load(options.load));
  prompts.emplace(*loaded->chat_template, *loaded->tokenizer);
  ServedModel model = loaded->served();
  model.aliases = options.aliases;
  model.max_tokens = std::min(options.max_tokens, model.context_tokens);
  const std::string forms = add_structured_output(*loaded, model);
  engine_thread = std::jthread([&] { loaded->engine->run(stop_engine.get_token()); });
  server->open(model, *loaded->engine, *prompts);
  say_ready(format, *loaded, model, forms, server->url());
  io_thread.join();
  stop_engine.request_stop();
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
