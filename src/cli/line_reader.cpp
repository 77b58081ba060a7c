#include "cli/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <system_error>
#include <utility>

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr int kKeptLines = 1000;
constexpr int kLookForCtrlC = 50;  // ms

}  // namespace

// libedit's callbacks get the EditLine; what they must know of us hangs on it as client data.
struct LineReader::Terminal {
  EditLine* edit = nullptr;
  History* history = nullptr;
  std::string history_file;
  const char* prompt = "";
  int keys = STDIN_FILENO;
  bool (*is_dropped)() = nullptr;
  bool dropped = false;

  static Terminal& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<Terminal*>(self);
  }
  static const char* show_prompt(EditLine* edit) { return of(edit).prompt; }
  static int read_key(EditLine* edit, wchar_t* key);
  void remember(const std::string& line);
};

// One character. Ctrl-C is looked for between the waits, so that one that comes while a key is worked on is not lost.
int LineReader::Terminal::read_key(EditLine* edit, wchar_t* key) {
  Terminal& t = of(edit);
  std::mbstate_t state{};
  while (true) {
    t.dropped = t.is_dropped();
    if (t.dropped) return -1;
    pollfd waiting{t.keys, POLLIN, 0};
    if (poll(&waiting, 1, kLookForCtrlC) <= 0) continue;
    char byte = 0;
    const ssize_t size = ::read(t.keys, &byte, 1);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return static_cast<int>(size);
    const std::size_t used = std::mbrtowc(key, &byte, 1, &state);
    if (used == static_cast<std::size_t>(-1)) {
      state = {};  // no character: passed over
    } else if (used != static_cast<std::size_t>(-2)) {
      return 1;
    }
  }
}

void LineReader::Terminal::remember(const std::string& line) {
  HistEvent event;
  ::history(history, &event, H_ENTER, line.c_str());
  if (!history_file.empty()) ::history(history, &event, H_SAVE, history_file.c_str());
}

bool LineReader::on_terminal() { return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1; }

LineReader::LineReader(const std::string& history_file, bool (*is_dropped)()) : is_terminal_(on_terminal()) {
  if (!is_terminal_) return;
  terminal_ = std::make_unique<Terminal>();
  Terminal& t = *terminal_;
  t.history_file = history_file;
  t.is_dropped = is_dropped;
  // An opening of our own, as a read must not wait: Ctrl-C throws away what is typed, also between poll and read, and
  // O_NONBLOCK on standard input would be the shell's too. No /dev/tty: then there is no Ctrl-C either.
  const int keys = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (keys >= 0) t.keys = keys;
  if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");  // to type in
  t.edit = el_init("rondo", stdin, stdout, stderr);
  t.history = history_init();
  HistEvent event;
  history(t.history, &event, H_SETSIZE, kKeptLines);
  history(t.history, &event, H_SETUNIQUE, 1);
  if (!history_file.empty()) history(t.history, &event, H_LOAD, history_file.c_str());
  el_set(t.edit, EL_CLIENTDATA, &t);
  el_set(t.edit, EL_GETCFN, &Terminal::read_key);
  el_set(t.edit, EL_PROMPT, &Terminal::show_prompt);
  el_set(t.edit, EL_EDITOR, "emacs");
  el_set(t.edit, EL_HIST, history, t.history);
  el_set(t.edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineReader::~LineReader() {
  if (!terminal_) return;
  el_end(terminal_->edit);
  history_end(terminal_->history);
  if (terminal_->keys != STDIN_FILENO) close(terminal_->keys);
}

LineReader::Line LineReader::read(const char* prompt) {
  Line line;
  if (!is_terminal_) {
    char* text = nullptr;
    std::size_t capacity = 0;
    const ssize_t size = getline(&text, &capacity, stdin);
    if (size < 0) line.end = End::Input;
    if (size > 0) line.text.assign(text, static_cast<std::size_t>(size));
    std::free(text);
  } else {
    terminal_->prompt = prompt;
    // libedit shows the prompt first and takes the terminal over after it: a Ctrl-D in between would be the terminal's.
    el_set(terminal_->edit, EL_PREP_TERM, 1);
    int size = 0;
    const char* text = el_gets(terminal_->edit, &size);
    if (std::exchange(terminal_->dropped, false)) {
      fmt::print("\n");
      return Line{"", End::Dropped};
    }
    if (text == nullptr || size <= 0) line.end = End::Input;
    if (text != nullptr && size > 0) line.text.assign(text, static_cast<std::size_t>(size));
  }
  while (line.text.ends_with('\n') || line.text.ends_with('\r')) line.text.pop_back();
  if (is_terminal_ && !line.text.empty()) terminal_->remember(line.text);
  return line;
}

std::optional<std::string> history_path(std::string& why) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (state != nullptr && *state == '/') {
    folder = fs::path(state);
  } else if (home != nullptr && *home != '\0') {
    folder = fs::path(home) / ".local" / "state";
  } else {
    why = "neither XDG_STATE_HOME nor HOME names a folder";
    return std::nullopt;
  }
  folder /= "rondo";
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string file = (folder / "chat_history").string();
  const int opened = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (opened < 0) {
    why = fmt::format("{}: {}", file, std::generic_category().message(errno));
    return std::nullopt;
  }
  close(opened);
  return file;
}

}  // namespace rondo
