// ReplyPart: a piece of one of the things a reply is made of, in the order in which they come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

struct ReplyPart {
  enum class Kind {
    Reasoning,      // text: more of the thought
    Content,        // text: more of the answer
    CallBegin,      // call, id, and text: the function's name
    CallArguments,  // call, and text: more of the arguments' JSON; all of them joined are one object
    CallEnd,        // call: its arguments are whole
    CallCut,        // call: the reply ended inside it; its arguments joined are not JSON, and must not be used
  };
  Kind kind;
  std::string text;
  int call = 0;    // which call of the reply, from 0
  std::string id;  // unique to the call
};

using ReplyParts = std::vector<ReplyPart>;

// Neighbours of one kind and call become one part.
void append_text(ReplyParts& parts, ReplyPart::Kind kind, std::string_view text, int call = 0);

}  // namespace rondo
