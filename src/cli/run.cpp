// rondo run: one prompt, tokens as they come, or one JSON object.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

#include "api/openai_chat.h"
#include "api/openai_reply.h"
#include "api/reasoning_count.h"
#include "api/template_prompt.h"
#include "api/think_split.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/load.h"
#include "server/event_queue.h"

namespace rondo {

namespace {

struct RunOptions {
  LoadOptions load;
  std::string prompt;
  bool raw = false;
  bool json = false;
  std::optional<int> max_tokens;
  std::optional<float> temperature, top_p, min_p;
  std::optional<int> top_k;
  std::optional<std::int64_t> seed;
};

void add_run_flags(CLI::App& app, RunOptions& options) {
  add_load_flags(app, options.load);
  app.add_option("-p,--prompt", options.prompt, "what to say to the model; - reads it from standard input")->required();
  app.add_flag("--raw", options.raw, "continue the text as it is, without the chat template");
  app.add_option("-n,--max-tokens", options.max_tokens, "tokens of the reply at most (default: the rest of the window)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--temperature", options.temperature, "0 to 2; 0 takes the likeliest (default: the model's)")
      ->check(CLI::Range(0.0, 2.0));
  app.add_option("--top-k", options.top_k, "draw from the k likeliest; 0 = all (default: the model's)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  app.add_option("--top-p", options.top_p, "draw from the likeliest that make up p (default: the model's)")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--min-p", options.min_p, "leave out what is less likely than min-p times the likeliest")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", options.seed, "the same seed draws the same text (default: a fresh one)");
  app.add_flag("--json", options.json,
               "one JSON object at the end: text, token_ids, token_sha, usage, timings_ms, ...");
}

std::string read_standard_input() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

Result<BuiltPrompt> build_prompt(const RunOptions& options, const Loaded& loaded) {
  const std::string text = options.prompt == "-" ? read_standard_input() : options.prompt;
  if (options.raw) return BuiltPrompt{loaded.tokenizer->encode(text), false};
  json::Object message;
  message["role"] = "user";
  message["content"] = text;
  json::Array messages;
  messages.push_back(std::move(message));
  json::Object variables;
  variables["messages"] = std::move(messages);
  variables["add_generation_prompt"] = true;
  return TemplatePrompt(*loaded.chat_template, *loaded.tokenizer).build(variables);
}

ChatRequest to_chat(const RunOptions& options, const GenerationDefaults& defaults) {
  ChatRequest chat;
  chat.max_tokens = options.max_tokens;
  chat.draw.temperature = options.temperature.value_or(defaults.temperature);
  chat.draw.top_k = options.top_k.value_or(defaults.top_k);
  chat.draw.top_p = options.top_p.value_or(defaults.top_p);
  chat.draw.min_p = options.min_p.value_or(defaults.min_p);
  std::random_device device;
  chat.seed =
      options.seed.value_or(static_cast<std::int64_t>((static_cast<std::uint64_t>(device()) << 32 | device()) >> 11));
  chat.draw.seed = static_cast<std::uint64_t>(chat.seed);
  return chat;
}

// What came of the request, as far as it came.
struct RunReply {
  std::string text;
  std::vector<std::int32_t> ids;
  int reasoning_tokens = 0;
  EndEvent end;
};

// The engine's events on the main thread, in order, as they come.
class Replies {
 public:
  Replies() : queue_(std::make_shared<EventQueue>(std::numeric_limits<std::size_t>::max(), [this] { notify(); })) {}
  std::shared_ptr<EventSink> sink() { return queue_; }
  EventQueue::Taken wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return has_news_; });
    has_news_ = false;
    return queue_->take();
  }

 private:
  void notify() {
    const std::lock_guard lock(mutex_);
    has_news_ = true;
    came_.notify_one();
  }
  std::mutex mutex_;
  std::condition_variable came_;
  bool has_news_ = false;  // under mutex_
  std::shared_ptr<EventQueue> queue_;
};

Result<RunReply> follow(Replies& replies, const ServedModel& model, bool starts_thinking, bool prints) {
  RunReply reply;
  ThinkSplit split(starts_thinking);
  ReasoningCount reasoning(model.think_end_id);
  const auto show = [&](const std::string& text) {
    reply.text += text;
    if (!prints) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  while (true) {
    const EventQueue::Taken taken = replies.wait();
    if (taken.text) {
      const bool was_thinking = split.is_thinking();
      split.push(taken.text->text);
      reasoning.add(taken.text->ids, was_thinking || split.is_thinking());
      reply.ids.insert(reply.ids.end(), taken.text->ids.begin(), taken.text->ids.end());
      show(taken.text->text);
    }
    if (taken.failed) return tl::unexpected<Error>(*taken.failed);
    if (!taken.end) continue;
    show(taken.end->text);
    reply.end = *taken.end;
    reply.reasoning_tokens = reasoning.tokens();
    return reply;
  }
}

std::string render_json(const RunReply& reply, const ChatRequest& chat, const Loaded& loaded) {
  json::Object out;
  out["text"] = reply.text;
  out["token_ids"] = json::Array(reply.ids.begin(), reply.ids.end());
  out["token_sha"] = reply.end.token_sha;
  out["finish_reason"] = finish_reason_name(reply.end.reason);
  out["usage"] = render_usage(reply.end.usage, reply.reasoning_tokens);
  out["rondo"] = render_rondo(reply.end, chat.seed, loaded.model->facts().arithmetic);
  json::Object timings;
  timings["load"] = loaded.load_ms;
  timings["queue"] = reply.end.timings.queue_ms;
  timings["prompt"] = reply.end.timings.prompt_ms;
  timings["decode"] = reply.end.timings.decode_ms;
  out["timings_ms"] = std::move(timings);
  return to_json(out) + "\n";
}

Result<void> run_prompt(const RunOptions& options) {
  TRY(const Loaded loaded, load(options.load));
  const ServedModel model = loaded.served();
  TRY(BuiltPrompt prompt, build_prompt(options, loaded));
  const bool starts_thinking = prompt.thinking;
  const ChatRequest chat = to_chat(options, model.defaults);
  const ApiResult<Request> request = to_request(chat, std::move(prompt.ids), model, "--prompt");
  if (!request) return failure(request.error().code, request.error().message);
  Replies replies;
  TRY_VOID(loaded.engine->submit(*request, replies.sink()));
  const std::jthread engine_thread([&](const std::stop_token& stop) { loaded.engine->run(stop); });
  TRY(const RunReply reply, follow(replies, model, starts_thinking, !options.json));
  const std::string last = options.json ? render_json(reply, chat, loaded) : "\n";
  std::fwrite(last.data(), 1, last.size(), stdout);
  return {};
}

}  // namespace

int run_command(int argc, char** argv) {
  CLI::App app("One prompt, tokens as they come.", "rondo run");
  RunOptions options;
  add_run_flags(app, options);
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  options.load.num_streams = 1;
  if (options.raw) options.load.chat_template = LoadOptions::Template::NotNeeded;
  const Result<void> done = run_prompt(options);
  return done ? 0 : fail_with("rondo run", done.error());
}

}  // namespace rondo
