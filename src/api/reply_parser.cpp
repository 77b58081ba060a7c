#include "api/reply_parser.h"

#include <utility>

namespace rondo {

void append_text(ReplyParts& parts, ReplyPart::Kind kind, std::string_view text, int call) {
  if (text.empty()) return;
  if (parts.empty() || parts.back().kind != kind || parts.back().call != call) {
    parts.push_back({kind, std::string(), call, std::string()});
  }
  parts.back().text += text;
}

ReplyParser::ReplyParser(ReplyForm form)
    : split_(form.starts_thinking), calls_(std::move(form.tools), std::move(form.call_id_stem)) {}

void ReplyParser::add(const ThinkSplit::Pieces& pieces, ReplyParts& parts) {
  append_text(parts, ReplyPart::Kind::Reasoning, pieces.reasoning);
  calls_.push(pieces.content, parts);
}

ReplyParts ReplyParser::push(std::string_view text) {
  ReplyParts parts;
  add(split_.push(text), parts);
  return parts;
}

ReplyParts ReplyParser::finish() {
  ReplyParts parts;
  add(split_.finish(), parts);
  calls_.finish(parts);
  return parts;
}

}  // namespace rondo
