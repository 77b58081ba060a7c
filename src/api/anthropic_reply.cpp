#include "api/anthropic_reply.h"

#include <optional>
#include <utility>
#include <vector>

#include "api/chat_choice.h"
#include "api/choice_ends.h"
#include "base/sha256.h"

namespace rondo {

namespace {

std::string render_event(std::string_view name, const json::Object& document) {
  return "event: " + std::string(name) + "\ndata: " + to_json(document) + "\n\n";
}

json::Object render_message_usage(const Usage& usage, int thinking_tokens, bool has_cache_control) {
  // Without a marked prompt Anthropic's API reads nothing from its cache, and neither do its clients' sums.
  const int cached = has_cache_control ? usage.cached_tokens : 0;
  json::Object out;
  out["input_tokens"] = usage.prompt_tokens - cached;
  out["cache_creation_input_tokens"] = 0;
  out["cache_read_input_tokens"] = cached;
  out["output_tokens"] = usage.completion_tokens;
  out["output_tokens_details"] = {{"thinking_tokens", thinking_tokens}};
  return out;
}

json::Object render_message(const MessageFacts& facts, json::Array content, json::Object usage) {
  json::Object out;
  out["id"] = "msg_" + facts.chat.id;
  out["type"] = "message";
  out["role"] = "assistant";
  out["model"] = facts.chat.model;
  out["content"] = std::move(content);
  out["stop_reason"] = nullptr;
  out["stop_sequence"] = nullptr;
  out["usage"] = std::move(usage);
  return out;
}

std::string_view stop_reason(const ChatChoice& choice, const EndEvent& end) {
  if (choice.finish_reason() == "tool_calls") return "tool_use";
  if (end.reason == FinishReason::Length) return "max_tokens";
  return end.stop_string ? "stop_sequence" : "end_turn";
}

json::Value stop_sequence(const EndEvent& end) {
  return end.stop_string ? json::Value(*end.stop_string) : json::Value(nullptr);
}

std::string signature_of(std::string_view thought) { return "sha256:" + sha256_hex(thought); }

// The only choice of a reply, and how it ended.
struct MessageEvents {
  explicit MessageEvents(const MessageFacts& facts)
      : choice({.form = {.starts_thinking = facts.chat.thinking,
                         .tools = facts.chat.tools,
                         .call_id_stem = "toolu_" + facts.chat.id},
                .think_end_id = facts.chat.think_end_id}),
        ends(1, 1) {}

  json::Object usage(bool has_cache_control) const {
    return render_message_usage(ends.usage(), choice.reasoning_tokens(), has_cache_control);
  }

  ChatChoice choice;
  ChoiceEnds ends;
};

class WholeMessage final : public ReplyWriter {
 public:
  explicit WholeMessage(MessageFacts facts) : facts_(std::move(facts)), events_(facts_) {}

  std::string push(int /*choice*/, const TextEvent& event) override {
    add(events_.choice.push(event));
    return "";
  }

  std::string finish(int /*choice*/, const EndEvent& end) override {
    add(events_.choice.finish(end));
    close_block();
    events_.ends.add(0, end);
    json::Object out = render_message(facts_, std::move(content_), events_.usage(facts_.has_cache_control));
    out["stop_reason"] = stop_reason(events_.choice, end);
    out["stop_sequence"] = stop_sequence(end);
    out["rondo"] = events_.ends.render_rondo(facts_.chat.seed, facts_.chat.arithmetic);
    return to_json(out);
  }

  std::string fail(const ApiError& error) override { return render_error(error, ApiForm::Anthropic); }

 private:
  using Kind = ReplyPart::Kind;

  void add(const ReplyParts& parts) {
    for (const ReplyPart& part : parts) {
      if (part.kind == Kind::CallEnd || part.kind == Kind::CallCut) {
        close_block();
        continue;
      }
      if (part.kind == Kind::CallBegin) {
        begin_block(part.kind);
        block_ = {{"type", "tool_use"}, {"id", part.id}, {"name", part.text}};
        continue;
      }
      if (open_ != part.kind && part.kind != Kind::CallArguments) begin_block(part.kind);
      text_ += part.text;
    }
  }

  void begin_block(Kind kind) {
    close_block();
    open_ = kind;
  }

  void close_block() {
    if (!open_) return;
    json::Object block = std::exchange(block_, {});
    if (open_ == Kind::Reasoning) {
      block = {{"type", "thinking"}, {"thinking", text_}, {"signature", signature_of(text_)}};
    } else if (open_ == Kind::Content) {
      block = {{"type", "text"}, {"text", text_}};
    } else {
      block["input"] = arguments_so_far(text_);
    }
    content_.push_back(std::move(block));
    open_.reset();
    text_.clear();
  }

  MessageFacts facts_;
  MessageEvents events_;
  json::Array content_;
  std::optional<Kind> open_;  // the block being filled
  json::Object block_;        // its beginning, when it is a call
  std::string text_;          // its text
};

class StreamedMessage final : public ReplyWriter {
 public:
  explicit StreamedMessage(MessageFacts facts) : facts_(std::move(facts)), events_(facts_) {}

  std::string begin() override {
    Usage usage;
    usage.prompt_tokens = facts_.prompt_tokens;
    json::Object start;
    start["type"] = "message_start";
    start["message"] = render_message(facts_, {}, render_message_usage(usage, 0, facts_.has_cache_control));
    return render_event("message_start", start) + keep_alive();
  }

  std::string push(int /*choice*/, const TextEvent& event) override {
    std::string out;
    render(events_.choice.push(event), out);
    return out;
  }

  std::string finish(int /*choice*/, const EndEvent& end) override {
    std::string out;
    render(events_.choice.finish(end), out);
    close_block(out);
    events_.ends.add(0, end);
    json::Object last;
    last["type"] = "message_delta";
    last["delta"] = {{"stop_reason", stop_reason(events_.choice, end)}, {"stop_sequence", stop_sequence(end)}};
    last["usage"] = events_.usage(facts_.has_cache_control);
    last["rondo"] = events_.ends.render_rondo(facts_.chat.seed, facts_.chat.arithmetic);
    return out + render_event("message_delta", last) + render_event("message_stop", {{"type", "message_stop"}});
  }

  std::string fail(const ApiError& error) override {
    return "event: error\ndata: " + render_error(error, ApiForm::Anthropic) + "\n\n";
  }

  std::string keep_alive() const override { return render_event("ping", {{"type", "ping"}}); }

 private:
  using Kind = ReplyPart::Kind;

  // The three below append to `out`: each moves the reply on, so their order counts.
  void render(const ReplyParts& parts, std::string& out) {
    for (const ReplyPart& part : parts) render(part, out);
  }

  void render(const ReplyPart& part, std::string& out) {
    switch (part.kind) {
      case Kind::Reasoning:
        open(Kind::Reasoning, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, out);
        out += delta("thinking_delta", "thinking", part.text);
        thought_ += part.text;
        break;
      case Kind::Content:
        open(Kind::Content, {{"type", "text"}, {"text", ""}}, out);
        out += delta("text_delta", "text", part.text);
        break;
      case Kind::CallBegin:
        close_block(out);
        open(part.kind, {{"type", "tool_use"}, {"id", part.id}, {"name", part.text}, {"input", json::Object()}}, out);
        break;
      case Kind::CallArguments: out += delta("input_json_delta", "partial_json", part.text); break;
      case Kind::CallEnd:
      case Kind::CallCut: close_block(out); break;
    }
  }

  // Begins the block unless it is the one being filled.
  void open(Kind kind, json::Object block, std::string& out) {
    if (open_ == kind) return;
    close_block(out);
    open_ = kind;
    json::Object start;
    start["type"] = "content_block_start";
    start["index"] = index_;
    start["content_block"] = std::move(block);
    out += render_event("content_block_start", start);
  }

  void close_block(std::string& out) {
    if (!open_) return;
    if (open_ == Kind::Reasoning) out += delta("signature_delta", "signature", signature_of(thought_));
    open_.reset();
    out += render_event("content_block_stop", {{"type", "content_block_stop"}, {"index", index_++}});
  }

  std::string delta(std::string_view type, std::string_view field, std::string_view text) const {
    json::Object document;
    document["type"] = "content_block_delta";
    document["index"] = index_;
    document["delta"] = {{"type", type}, {field, text}};
    return render_event("content_block_delta", document);
  }

  MessageFacts facts_;
  MessageEvents events_;
  std::optional<Kind> open_;  // the block being filled
  int index_ = 0;             // its number, or the next one's
  std::string thought_;       // for its signature
};

// Where the last member of the object begins that the text was cut in: at its comma; npos when it is the first.
std::size_t last_member(std::string_view text) {
  std::size_t comma = std::string_view::npos;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 1) {
      comma = i;
    }
  }
  return comma;
}

}  // namespace

json::Object arguments_so_far(const std::string& text) {
  const std::size_t comma = last_member(text);
  const std::string without_last = comma == std::string::npos ? "" : text.substr(0, comma);
  for (const std::string& begun : {text, text + "}", without_last + "}"}) {
    const Result<json::Value> whole = parse_json(begun);
    if (whole && whole->is_object()) return whole->get_object();
  }
  return {};
}

std::unique_ptr<ReplyWriter> make_message_writer(MessageFacts facts, Delivery delivery) {
  if (delivery == Delivery::Streamed) return std::make_unique<StreamedMessage>(std::move(facts));
  return std::make_unique<WholeMessage>(std::move(facts));
}

}  // namespace rondo
