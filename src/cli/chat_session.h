// ChatSession: one conversation with a loaded model: what was said, how replies are drawn, and the commands that change
// it. Text of the reply goes to stdout; what is said about it goes beside it, dim, on a terminal, else to stderr.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/think_split.h"
#include "cli/load.h"
#include "cli/reply_flags.h"

namespace rondo {

struct ChatSettings {
  ReplyFlags draw;
  std::string system;            // empty: none
  std::optional<bool> thinking;  // nullopt: as the model's template has it
  bool drafts = true;
};

class ChatSession {
 public:
  // is_stopped: whether Ctrl-C was pressed since the last call; asked while a reply comes. Loaded outlives the session,
  // and its engine runs on another thread.
  ChatSession(const Loaded& loaded, ChatSettings settings, bool on_terminal, bool (*is_stopped)());

  void answer(const std::string& text);     // sends it, prints the reply as it comes
  bool run_command(std::string_view line);  // "/help" and the like; false: the conversation is over
  void note(const std::string& words) const;

 private:
  struct Turn {
    std::string role, content;
  };
  struct Shown {
    std::string content;
    bool in_thought = false;
  };
  ApiResult<Request> build_request(bool& starts_thinking) const;
  bool follow(Replies& replies, RequestId id, bool starts_thinking, Shown& shown);
  void show(const ThinkSplit::Pieces& pieces, Shown& shown) const;
  void note_end(const EndEvent& end) const;
  void set(std::string_view words);
  void save(const std::string& file) const;
  std::string settings_in_words() const;

  const Loaded& loaded_;
  const ServedModel model_;
  ChatSettings settings_;
  const bool on_terminal_;
  bool (*const is_stopped_)();
  std::vector<Turn> turns_;
};

}  // namespace rondo
