// rondo chat: a conversation in the terminal, or line by line from a pipe.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

#include "cli/chat_session.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/line_reader.h"
#include "cli/load.h"
#include "cli/reply_flags.h"

namespace rondo {

namespace {

struct ChatOptions {
  LoadOptions load;
  ChatSettings settings;
};

// A signal handler reaches nothing that is not global.
std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

bool take_interrupt() { return g_interrupted.exchange(false); }

// No SA_RESTART: from a pipe, Ctrl-C between replies ends the reading, and so the program.
void catch_ctrl_c() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = true; };
  sigaction(SIGINT, &action, nullptr);
}

// A message: one line, lines joined by backslashes, or what stands between two """.
LineReader::Line read_message(LineReader& reader) {
  constexpr std::string_view kQuotes = R"(""")";
  LineReader::Line message = reader.read("> ");
  const auto go_on = [&] {
    LineReader::Line next = reader.read(". ");
    message.text += next.text;
    message.end = next.end;
    return next.end == LineReader::End::None;
  };
  if (message.text.starts_with(kQuotes)) {
    message.text.erase(0, kQuotes.size());
    while (message.end == LineReader::End::None && !message.text.ends_with(kQuotes)) {
      if (!message.text.empty()) message.text += '\n';
      if (!go_on()) break;
    }
    if (message.text.ends_with(kQuotes)) message.text.resize(message.text.size() - kQuotes.size());
    if (message.text.ends_with('\n')) message.text.pop_back();
    return message;
  }
  while (message.end == LineReader::End::None && message.text.ends_with('\\')) {
    message.text.back() = '\n';
    if (!go_on()) break;
  }
  return message;
}

void converse(LineReader& reader, ChatSession& session) {
  while (true) {
    const LineReader::Line message = read_message(reader);
    if (message.end == LineReader::End::Dropped) continue;
    const bool is_blank = message.text.find_first_not_of(" \t\n") == std::string::npos;
    const bool is_command = message.text.starts_with('/') && message.text.find('\n') == std::string::npos;
    take_interrupt();
    if (is_command && !session.run_command(message.text)) return;
    if (!is_command && !is_blank) session.answer(message.text);
    if (message.end == LineReader::End::Input) return;
  }
}

Result<void> chat(ChatOptions options) {
  TRY(const Loaded loaded, load(options.load));
  std::string why;
  const std::optional<std::string> history = LineReader::on_terminal() ? history_path(why) : std::nullopt;
  LineReader reader(history.value_or(""), &take_interrupt);
  catch_ctrl_c();
  std::jthread engine_thread([&](const std::stop_token& stop) { loaded.engine->run(stop); });
  ChatSession session(loaded, std::move(options.settings), reader.is_terminal(), &take_interrupt);
  if (reader.is_terminal()) {
    const ServedModel model = loaded.served();
    session.note(fmt::format("{} ({}), context {} tokens. /help lists the commands; Ctrl-D leaves.", model.name,
                             model.arithmetic, model.context_tokens));
    if (!history) session.note("What you type is not kept for the next time: " + why);
  }
  converse(reader, session);
  if (reader.is_terminal()) fmt::print("\n");
  return {};
}

}  // namespace

int chat_command(int argc, char** argv) {
  CLI::App app("A conversation in the terminal, or line by line from a pipe.", "rondo chat");
  ChatOptions options;
  add_load_flags(app, options.load);
  add_reply_flags(app, options.settings.draw);
  app.add_option("--system", options.settings.system, "what the model is told before the conversation");
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  options.load.num_streams = 1;
  const Result<void> done = chat(std::move(options));
  return done ? 0 : fail_with("rondo chat", done.error());
}

}  // namespace rondo
