#include "api/call_parser.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "engine/stop_matcher.h"

namespace rondo {

namespace {

constexpr std::string_view kCallOpen = "<tool_call>";
constexpr std::string_view kCallClose = "</tool_call>";
constexpr std::string_view kFunctionOpen = "<function=";
constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameterOpen = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
constexpr std::size_t kMostKeyBytes = 256;  // more is no parameter's name, and need not be waited for

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// `text` as the middle of a JSON string.
std::string escaped(std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

// Reads on while what is there fits.
struct CallParser::Cursor {
  std::string_view rest;

  void skip_space() {
    while (!rest.empty() && is_space(rest[0])) rest.remove_prefix(1);
  }
  Match take(std::string_view literal) {
    if (rest.starts_with(literal)) {
      rest.remove_prefix(literal.size());
      return Match::Yes;
    }
    return literal.starts_with(rest) ? Match::More : Match::No;
  }
  // Up to ">", which goes too.
  Match take_name(std::string_view& name) {
    const std::size_t end = rest.find_first_of("<>\n");
    if (end == std::string_view::npos) {
      name = rest;
      return rest.size() > kMostKeyBytes ? Match::No : Match::More;
    }
    if (rest[end] != '>' || end == 0 || end > kMostKeyBytes) return Match::No;
    name = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return Match::Yes;
  }
};

CallParser::CallParser(std::shared_ptr<const std::vector<Tool>> tools, std::string call_id_stem)
    : tools_(tools != nullptr ? std::move(tools) : std::make_shared<const std::vector<Tool>>()),
      call_id_stem_(std::move(call_id_stem)),
      type_(ArgumentType::of({}, "")) {}

void CallParser::push(std::string_view text, ReplyParts& parts) {
  if (tools_->empty()) return append_text(parts, ReplyPart::Kind::Content, text);
  held_ += text;
  while (advance(parts)) {
  }
}

void CallParser::finish(ReplyParts& parts) {
  at_end_ = true;
  while (advance(parts)) {
  }
  if (state_ == State::Text) {
    const bool is_space_after_call = after_call_ && std::all_of(held_.begin(), held_.end(), is_space);
    if (!is_space_after_call) give_text(held_.size(), parts);
  } else {
    give_value(held_.size(), parts);
    parts.push_back({ReplyPart::Kind::CallCut, "", num_calls_ - 1, ""});
  }
  held_.clear();
}

bool CallParser::advance(ReplyParts& parts) {
  switch (state_) {
    case State::Text: return read_text(parts);
    case State::ValueStart:
      if (held_.empty()) return false;
      if (held_[0] == '\n') held_.erase(0, 1);
      state_ = State::Value;
      return true;
    case State::Value: return read_value(parts);
  }
  return false;
}

bool CallParser::read_text(ReplyParts& parts) {
  const std::size_t open = held_.find(kCallOpen);
  std::size_t ready = open != std::string::npos ? open : held_.size() - begun_bytes(held_, kCallOpen);
  const std::size_t tag = ready;
  while (ready > 0 && is_space(held_[ready - 1])) --ready;
  give_text(ready, parts);
  if (open == std::string::npos) return false;
  const std::size_t space = tag - ready;
  const Seam seam = match_opening(std::string_view(held_).substr(space));
  if (seam.match == Match::More) return false;
  if (seam.match == Match::No) {
    give_text(space + kCallOpen.size(), parts);
    return true;
  }
  held_.erase(0, space + seam.bytes);
  begin_call(seam, parts);
  return true;
}

bool CallParser::read_value(ReplyParts& parts) {
  const std::size_t close = held_.find(kParameterClose);
  const std::size_t tag = close != std::string::npos ? close : held_.size() - begun_bytes(held_, kParameterClose);
  const std::size_t value_bytes = tag > 0 && held_[tag - 1] == '\n' ? tag - 1 : tag;
  Seam seam{Match::More, 0, nullptr, ""};
  if (close != std::string::npos) seam = match_next(std::string_view(held_).substr(tag));
  give_value(seam.match == Match::No ? tag + kParameterClose.size() : value_bytes, parts);
  if (seam.match != Match::Yes) return seam.match == Match::No;
  held_.erase(0, tag - value_bytes + seam.bytes);
  end_value(parts);
  if (seam.key.empty()) {
    end_call(parts);
  } else {
    begin_value(seam.key, parts);
  }
  return true;
}

// <tool_call> <function=NAME>, then a parameter or the end.
CallParser::Seam CallParser::match_opening(std::string_view text) const {
  Cursor cursor{text.substr(kCallOpen.size())};
  Seam seam;
  std::string_view name;
  cursor.skip_space();
  if ((seam.match = cursor.take(kFunctionOpen)) != Match::Yes) return seam;
  seam.match = cursor.take_name(name);
  if (seam.match == Match::No) return seam;
  const auto may_be = [&](const Tool& tool) {
    return seam.match == Match::Yes ? tool.name == name : std::string_view(tool.name).starts_with(name);
  };
  const auto tool = std::find_if(tools_->begin(), tools_->end(), may_be);
  if (tool == tools_->end()) seam.match = Match::No;
  if (seam.match != Match::Yes) return seam;
  seam.tool = &*tool;
  cursor.skip_space();
  const Cursor after_name = cursor;
  seam.match = match_parameter(cursor, *seam.tool, seam.key);
  if (seam.match == Match::No) {
    cursor = after_name;
    seam.match = match_close(cursor);
  }
  seam.bytes = text.size() - cursor.rest.size();
  return seam;
}

// </parameter>, then a parameter or the end.
CallParser::Seam CallParser::match_next(std::string_view text) const {
  Cursor cursor{text.substr(kParameterClose.size())};
  Seam seam;
  cursor.skip_space();
  const Cursor after_value = cursor;
  seam.match = match_parameter(cursor, *tool_, seam.key);
  if (seam.match == Match::Yes && std::find(keys_.begin(), keys_.end(), seam.key) != keys_.end()) {
    seam.match = Match::No;
    return seam;
  }
  if (seam.match == Match::No) {
    cursor = after_value;
    seam.match = match_close(cursor);
  }
  seam.bytes = text.size() - cursor.rest.size();
  return seam;
}

CallParser::Match CallParser::match_parameter(Cursor& cursor, const Tool& tool, std::string& key) const {
  std::string_view name;
  Match match = cursor.take(kParameterOpen);
  if (match == Match::Yes) match = cursor.take_name(name);
  if (match != Match::Yes) return match;
  if (!takes_argument(tool.parameters, name)) return Match::No;
  key = name;
  return Match::Yes;
}

CallParser::Match CallParser::match_close(Cursor& cursor) const {
  if (const Match match = cursor.take(kFunctionClose); match != Match::Yes) return match;
  cursor.skip_space();
  const Match match = cursor.take(kCallClose);
  if (match != Match::More || !at_end_) return match;
  cursor.rest = {};  // the reply ended in the last tag or before it: the arguments are whole
  return Match::Yes;
}

void CallParser::give_text(std::size_t bytes, ReplyParts& parts) {
  if (bytes == 0) return;
  append_text(parts, ReplyPart::Kind::Content, std::string_view(held_).substr(0, bytes));
  held_.erase(0, bytes);
  after_call_ = false;
}

void CallParser::begin_call(const Seam& seam, ReplyParts& parts) {
  tool_ = seam.tool;
  keys_.clear();
  const int call = num_calls_++;
  parts.push_back({ReplyPart::Kind::CallBegin, tool_->name, call, call_id_stem_ + std::to_string(call)});
  append_text(parts, ReplyPart::Kind::CallArguments, "{", call);
  if (seam.key.empty()) {
    end_call(parts);
  } else {
    begin_value(seam.key, parts);
  }
}

void CallParser::begin_value(std::string key, ReplyParts& parts) {
  std::string name = keys_.empty() ? "" : ",";
  append_json_string(name, key);
  name += ':';
  append_text(parts, ReplyPart::Kind::CallArguments, name, num_calls_ - 1);
  type_ = ArgumentType::of(tool_->parameters, key);
  keys_.push_back(std::move(key));
  streams_ = false;
  value_.clear();
  state_ = State::ValueStart;
}

void CallParser::give_value(std::size_t bytes, ReplyParts& parts) {
  if (bytes == 0) return;
  const std::string_view text = std::string_view(held_).substr(0, bytes);
  if (streams_) {
    append_text(parts, ReplyPart::Kind::CallArguments, escaped(text), num_calls_ - 1);
  } else {
    value_ += text;
    if (!type_.may_not_be_string(value_)) {
      streams_ = true;
      append_text(parts, ReplyPart::Kind::CallArguments, "\"", num_calls_ - 1);
      append_text(parts, ReplyPart::Kind::CallArguments, escaped(value_), num_calls_ - 1);
    }
  }
  held_.erase(0, bytes);
}

void CallParser::end_value(ReplyParts& parts) {
  const std::string rest = streams_ ? "\"" : type_.to_json(value_);
  append_text(parts, ReplyPart::Kind::CallArguments, rest, num_calls_ - 1);
}

void CallParser::end_call(ReplyParts& parts) {
  append_text(parts, ReplyPart::Kind::CallArguments, "}", num_calls_ - 1);
  parts.push_back({ReplyPart::Kind::CallEnd, "", num_calls_ - 1, ""});
  state_ = State::Text;
  after_call_ = true;
}

}  // namespace rondo
