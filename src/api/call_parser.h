// CallParser: cuts a reply's content into text and tool calls, as it comes.
//
//   <tool_call>
//   <function=NAME>
//   <parameter=KEY>
//   VALUE
//   </parameter>
//   </function>
//   </tool_call>
//
// with any number of parameters and calls. White space between tags is free; one newline after <parameter=KEY> and one
// before </parameter> belong to the tags. White space before a call, and after the last one, goes.
//
// The form has no escapes, so </parameter> inside a value is told from its end by what follows: a value ends at the
// first </parameter> that is followed by <parameter=KEY> with a KEY that the call does not have yet and the tool may
// take, or by </function></tool_call>. Any other is part of the value.
//
// A call begins once its function is known to be one of the tools and its first parameter or its end has come. What
// breaks off or goes wrong before that (an unknown function among it) is text, byte for byte. After that only the
// reply's end can break a call: after </function> the call is whole without its last tag, before it is cut, and its
// JSON is left open so that nobody takes half a value for a whole one.
//
// String arguments are passed on as they come, others once they are whole (api/argument_type.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/argument_type.h"
#include "api/reply_part.h"
#include "api/tool.h"

namespace rondo {

class CallParser {
 public:
  // No tools: everything is text. A call's id is the stem and its number.
  CallParser(std::shared_ptr<const std::vector<Tool>> tools, std::string call_id_stem);

  void push(std::string_view text, ReplyParts& parts);
  void finish(ReplyParts& parts);  // what was held back
  int num_calls() const { return num_calls_; }

 private:
  enum class State { Text, ValueStart, Value };
  enum class Match { Yes, No, More };  // More: what is there so far may yet become it
  // What stands between <tool_call> and the first value, or between </parameter> and the next.
  struct Seam {
    Match match = Match::No;
    std::size_t bytes = 0;  // of the seam
    const Tool* tool = nullptr;
    std::string key;  // of the parameter that begins; empty = the call ends
  };
  struct Cursor;

  bool advance(ReplyParts& parts);  // false when more text is needed
  bool read_text(ReplyParts& parts);
  bool read_value(ReplyParts& parts);
  Seam match_opening(std::string_view text) const;
  Seam match_next(std::string_view text) const;
  Match match_parameter(Cursor& cursor, const Tool& tool, std::string& key) const;
  Match match_close(Cursor& cursor) const;

  void give_text(std::size_t bytes, ReplyParts& parts);  // the first bytes of held_
  void begin_call(const Seam& seam, ReplyParts& parts);
  void begin_value(std::string key, ReplyParts& parts);
  void give_value(std::size_t bytes, ReplyParts& parts);
  void end_value(ReplyParts& parts);
  void end_call(ReplyParts& parts);

  std::shared_ptr<const std::vector<Tool>> tools_;
  std::string call_id_stem_;
  State state_ = State::Text;
  std::string held_;
  bool at_end_ = false;      // of the reply
  bool after_call_ = false;  // no text since the last call
  int num_calls_ = 0;

  // The call being read.
  const Tool* tool_ = nullptr;
  std::vector<std::string> keys_;
  ArgumentType type_;
  bool streams_ = false;  // the value is a string: its text goes on as it comes
  std::string value_;     // else its text so far
};

}  // namespace rondo
