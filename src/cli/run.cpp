// rondo run: one prompt, tokens as they come, or one JSON object.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <thread>

#include "api/openai_chat.h"
#include "api/openai_reply.h"
#include "api/reasoning_count.h"
#include "api/template_prompt.h"
#include "api/think_split.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/load.h"
#include "cli/reply_flags.h"

namespace rondo {

namespace {

struct RunOptions {
  LoadOptions load;
  std::string prompt;
  bool raw = false;
  bool json = false;
  ReplyFlags reply;
};

void add_run_flags(CLI::App& app, RunOptions& options) {
  add_load_flags(app, options.load);
  app.add_option("-p,--prompt", options.prompt, "what to say to the model; - reads it from standard input")->required();
  app.add_flag("--raw", options.raw, "continue the text as it is, without the chat template");
  add_reply_flags(app, options.reply);
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
  return TemplatePrompt(*loaded.chat_template, *loaded.tokenizer).build(variables, {});
}

// What came of the request, as far as it came.
struct RunReply {
  std::string text;
  std::vector<std::int32_t> ids;
  int reasoning_tokens = 0;
  EndEvent end;
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

std::string render_json(const RunReply& reply, const ReplySettings& settings, const Loaded& loaded) {
  json::Object out;
  out["text"] = reply.text;
  out["token_ids"] = json::Array(reply.ids.begin(), reply.ids.end());
  out["token_sha"] = reply.end.token_sha;
  out["finish_reason"] = finish_reason_name(reply.end.reason);
  out["usage"] = render_usage(reply.end.usage, reply.reasoning_tokens);
  out["rondo"] = render_rondo(reply.end, settings.seed, loaded.model->facts().arithmetic);
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
  const ReplySettings settings = to_settings(options.reply, model.defaults);
  const ApiResult<Request> request = to_request(settings, std::move(prompt.ids), model, "--prompt");
  if (!request) return failure(request.error().code, request.error().message);
  Replies replies;
  TRY_VOID(loaded.engine->submit(*request, replies.sink()));
  const std::jthread engine_thread([&](const std::stop_token& stop) { loaded.engine->run(stop); });
  TRY(const RunReply reply, follow(replies, model, starts_thinking, !options.json));
  const std::string last = options.json ? render_json(reply, settings, loaded) : "\n";
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
  options.load.prompt_cache_mib = 0;  // one prompt has nobody to share with
  if (options.raw) options.load.chat_template = LoadOptions::Template::NotNeeded;
  const Result<void> done = run_prompt(options);
  return done ? 0 : fail_with("rondo run", done.error());
}

}  // namespace rondo
