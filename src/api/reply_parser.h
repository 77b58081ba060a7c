// ReplyParser: a reply's text to its parts: reasoning, content and tool calls, as it comes, for any protocol.
//
// Text may come in any pieces: parts of the same kind joined are the same however it was cut, so a streamed reply and
// a whole one say the same. Whatever may be the beginning of a tag is held back until it is decided. Where reasoning
// ends is think_split.h's, what a call is call_parser.h's; inside reasoning nothing is a call. A part is whole UTF-8
// when the pieces are.
//
// One reply: push each piece, then finish. A whole reply is one push.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/call_parser.h"
#include "api/reply_part.h"
#include "api/think_split.h"
#include "api/tool.h"

namespace rondo {

struct ReplyForm {
  bool starts_thinking = false;                    // the prompt ended inside an open <think> (BuiltPrompt::thinking)
  std::shared_ptr<const std::vector<Tool>> tools;  // that may be called; null or empty: nothing is a call
  std::string call_id_stem;                        // unique to the reply: "call_5f0c..."
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplyForm form);

  ReplyParts push(std::string_view text);
  ReplyParts finish();  // what was held back, and the end of a call that is still open
  bool is_thinking() const { return split_.is_thinking(); }
  int num_calls() const { return calls_.num_calls(); }  // begun so far

 private:
  void add(const ThinkSplit::Pieces& pieces, ReplyParts& parts);
  ThinkSplit split_;
  CallParser calls_;
};

}  // namespace rondo
