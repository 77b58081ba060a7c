// ThinkSplit: cuts a reply's text into reasoning and content, as it comes.
//
// A reply is reasoning from its first byte when the prompt ended inside an open <think>, or from a <think> that it
// opens with itself (white space before the tag goes). Reasoning lasts to the first </think>, or to the end: a thought
// cut by length stays reasoning. Newlines right after <think>, right before </think> and right after </think> belong to
// the tags, as templates of the family write them back. Any other reply is content, byte for byte.
//
// Whatever may be the beginning of a tag is held back until it is decided; all pieces joined are the same however the
// text was cut. Pieces are whole UTF-8 when the text is: tags and newlines are ASCII.
#pragma once

#include <string>
#include <string_view>

#include "text/marked_text.h"

namespace rondo {

class ThinkSplit {
 public:
  struct Pieces {
    std::string reasoning;  // comes before content
    std::string content;
  };
  explicit ThinkSplit(bool starts_thinking) : state_(starts_thinking ? State::ThinkStart : State::Undecided) {}

  Pieces push(std::string_view text);
  Pieces finish();  // what was held back
  bool is_thinking() const { return state_ == State::ThinkStart || state_ == State::Thinking; }

 private:
  enum class State { Undecided, ThinkStart, Thinking, ContentStart, Content };
  bool advance(Pieces& pieces);  // false when more text is needed
  bool decide();
  bool think(Pieces& pieces);
  State state_;
  std::string held_;
};

// Whether a rendered prompt ends in "<think>" and white space, spelled by the template and not by a client.
bool ends_inside_think(const MarkedText& prompt);

}  // namespace rondo
