#include "cli/chat_session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "api/openai_chat.h"
#include "api/template_prompt.h"

namespace rondo {

namespace {

constexpr std::chrono::milliseconds kLookForCtrlC{50};

constexpr const char* kHelp =
    "/system TEXT      what the model is told before the conversation; alone it shows it, /system \"\" takes it away\n"
    "/set NAME VALUE   temperature, top_p, top_k, min_p, max_tokens, seed, thinking, drafts; 'default' undoes it;\n"
    "                  /set alone shows them all\n"
    "/save FILE        the conversation, as text, to a file that is not there yet\n"
    "/new              an empty conversation\n"
    "/quit             leaves, as Ctrl-D does\n"
    "A backslash at the end of a line, or \"\"\" before and after, makes a message of several lines.\n"
    "Ctrl-C stops a reply, or drops the line that is being typed.";

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// One number of /set: false, and nothing changed, when the words are none within the limits.
template <class T>
bool read_number(std::string_view words, T least, T most, std::optional<T>& into) {
  if (words == "default") {
    into.reset();
    return true;
  }
  T value{};
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), value);
  if (error != std::errc{} || end != words.data() + words.size() || !(value >= least && value <= most)) return false;
  into = value;
  return true;
}

template <class T>
std::string in_words(const std::optional<T>& value, std::string_view otherwise) {
  return value ? fmt::format("{}", *value) : std::string(otherwise);
}

}  // namespace

ChatSession::ChatSession(const Loaded& loaded, ChatSettings settings, bool on_terminal, bool (*is_stopped)())
    : loaded_(loaded),
      model_(loaded.served()),
      settings_(std::move(settings)),
      on_terminal_(on_terminal),
      is_stopped_(is_stopped) {}

void ChatSession::note(const std::string& words) const {
  if (on_terminal_) {
    print("\033[2m" + words + "\033[0m\n");
  } else {
    fmt::print(stderr, "{}\n", words);
  }
}

ApiResult<Request> ChatSession::build_request(bool& starts_thinking) const {
  json::Array messages;
  const auto add = [&](const std::string& role, const std::string& content) {
    json::Object message;
    message["role"] = role;
    message["content"] = content;
    messages.push_back(std::move(message));
  };
  if (!settings_.system.empty()) add("system", settings_.system);
  for (const Turn& turn : turns_) add(turn.role, turn.content);
  json::Object variables;
  variables["messages"] = std::move(messages);
  variables["add_generation_prompt"] = true;
  if (settings_.thinking) variables["enable_thinking"] = *settings_.thinking;
  Result<BuiltPrompt> prompt = TemplatePrompt(*loaded_.chat_template, *loaded_.tokenizer).build(variables, {});
  if (!prompt) return refusal(to_api_error(prompt.error()));
  starts_thinking = prompt->thinking;
  ReplySettings settings = to_settings(settings_.draw, model_.defaults);
  if (!settings_.drafts) settings.max_draft_depth = 0;
  return to_request(settings, std::move(prompt->ids), model_, "the conversation");
}

void ChatSession::answer(const std::string& text) {
  turns_.push_back({"user", text});
  bool starts_thinking = false;
  ApiResult<Request> request = build_request(starts_thinking);
  Replies replies;
  const Result<RequestId> id = request ? loaded_.engine->submit(*std::move(request), replies.sink())
                                       : failure(request.error().code, request.error().message);
  Shown shown;
  if (!id) {
    note(id.error().message + (id.error().code == ErrorCode::TooLong ? "; /new begins an empty conversation" : ""));
  } else if (follow(replies, *id, starts_thinking, shown)) {
    turns_.push_back({"assistant", shown.content});
    return;
  }
  // Unanswered: an answer cut before its first word leaves nothing to go on from.
  if (shown.content.empty()) {
    turns_.pop_back();
  } else {
    turns_.push_back({"assistant", shown.content});
  }
}

// Whether the reply came to its end.
bool ChatSession::follow(Replies& replies, RequestId id, bool starts_thinking, Shown& shown) {
  ThinkSplit split(starts_thinking);
  bool stopping = false;
  while (true) {
    if (!stopping && is_stopped_()) {
      stopping = true;
      loaded_.engine->cancel(id);
    }
    const std::optional<EventQueue::Taken> taken = replies.wait_for(kLookForCtrlC);
    if (!taken) continue;
    if (taken->text) show(split.push(taken->text->text), shown);
    if (!taken->is_last()) continue;
    if (taken->end) show(split.push(taken->end->text), shown);
    show(split.finish(), shown);
    if (shown.in_thought) print(on_terminal_ ? "\033[0m" : "\n</think>\n");
    print("\n");
    if (taken->end) {
      note_end(*taken->end);
      return true;
    }
    note(stopping ? "stopped" : taken->failed ? taken->failed->message : "the reply was cut off");
    return false;
  }
}

// Thoughts are dim on a terminal; elsewhere they stand between the tags the model put around them.
void ChatSession::show(const ThinkSplit::Pieces& pieces, Shown& shown) const {
  if (!pieces.reasoning.empty()) {
    if (!shown.in_thought) print(on_terminal_ ? "\033[2m" : "<think>\n");
    shown.in_thought = true;
    print(pieces.reasoning);
  }
  if (!pieces.content.empty()) {
    if (shown.in_thought) print(on_terminal_ ? "\033[0m\n\n" : "\n</think>\n\n");
    shown.in_thought = false;
    shown.content += pieces.content;
    print(pieces.content);
  }
}

void ChatSession::note_end(const EndEvent& end) const {
  const int tokens = end.usage.completion_tokens;
  std::string words = fmt::format("{} token{}", tokens, tokens == 1 ? "" : "s");
  if (tokens > 1 && end.timings.decode_ms > 0)
    words += fmt::format(", {:.0f} a second", 1000 * (tokens - 1) / end.timings.decode_ms);
  if (end.usage.drafted > 0) words += fmt::format(", {} of {} drafts kept", end.usage.accepted, end.usage.drafted);
  if (end.reason == FinishReason::Length) words += ", cut at the token limit";
  note(words);
}

bool ChatSession::run_command(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? "" : trimmed(line.substr(space));
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    note(kHelp);
  } else if (name == "/new") {
    turns_.clear();
    note("An empty conversation.");
  } else if (name == "/system") {
    if (!rest.empty()) settings_.system = rest == "\"\"" ? "" : rest;
    note(settings_.system.empty() ? "No system prompt." : "System prompt: " + settings_.system);
  } else if (name == "/set") {
    set(rest);
  } else if (name == "/save") {
    save(std::string(rest));
  } else {
    note(fmt::format("There is no command {}; /help lists them.", name));
  }
  return true;
}

std::string ChatSession::settings_in_words() const {
  const ReplyFlags& draw = settings_.draw;
  const auto on_off = [](bool on) { return on ? "on" : "off"; };
  return fmt::format("temperature {}, top_p {}, top_k {}, min_p {}, max_tokens {}, seed {}, thinking {}, drafts {}",
                     draw.temperature.value_or(model_.defaults.temperature), draw.top_p.value_or(model_.defaults.top_p),
                     draw.top_k.value_or(model_.defaults.top_k), draw.min_p.value_or(model_.defaults.min_p),
                     in_words(draw.max_tokens, "as the window allows"), in_words(draw.seed, "fresh for each reply"),
                     settings_.thinking ? on_off(*settings_.thinking) : "as the model has it",
                     on_off(settings_.drafts));
}

void ChatSession::set(std::string_view words) {
  const std::size_t space = words.find(' ');
  const std::string_view name = words.substr(0, space);
  const std::string_view value = space == std::string_view::npos ? "" : trimmed(words.substr(space));
  ReplyFlags& draw = settings_.draw;
  constexpr int kMost = std::numeric_limits<int>::max();
  bool known = true, good = true;
  const bool is_switch = value == "on" || value == "off" || value == "default";
  if (name == "temperature") {
    good = read_number(value, 0.0F, 2.0F, draw.temperature);
  } else if (name == "top_p") {
    good = read_number(value, 0.0F, 1.0F, draw.top_p);
  } else if (name == "min_p") {
    good = read_number(value, 0.0F, 1.0F, draw.min_p);
  } else if (name == "top_k") {
    good = read_number(value, 0, kMost, draw.top_k);
  } else if (name == "max_tokens") {
    good = read_number(value, 1, kMost, draw.max_tokens);
  } else if (name == "seed") {
    good = read_number(value, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                       draw.seed);
  } else if (name == "thinking") {
    good = is_switch;
    if (good) settings_.thinking = value == "default" ? std::nullopt : std::optional(value == "on");
  } else if (name == "drafts") {
    good = is_switch;
    if (good) settings_.drafts = value != "off";
  } else {
    known = name.empty();
  }
  if (!known) return note(fmt::format("There is nothing called '{}' to set; /help lists what there is.", name));
  if (!good) return note(fmt::format("'{}' is no value for {}.", value, name));
  note(settings_in_words());
}

void ChatSession::save(const std::string& file) const {
  if (file.empty()) return note("Name a file: /save FILE");
  std::string text;
  if (!settings_.system.empty()) text += "## system\n\n" + settings_.system + "\n\n";
  for (const Turn& turn : turns_) text += fmt::format("## {}\n\n{}\n\n", turn.role, turn.content);
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (opened < 0) {
    return note(errno == EEXIST ? fmt::format("{} is there already; nothing was written.", file)
                                : fmt::format("{}: {}", file, std::generic_category().message(errno)));
  }
  std::FILE* out = fdopen(opened, "w");
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (std::fclose(out) != 0 || !written) return note(fmt::format("{}: the disk did not take all of it.", file));
  note(fmt::format("{} turn{} in {}", turns_.size(), turns_.size() == 1 ? "" : "s", file));
}

}  // namespace rondo
