#include "api/anthropic_messages.h"

#include <fmt/format.h>

#include <utility>

namespace rondo {

namespace {

constexpr std::string_view kErrorPrefix = "Error: ";  // how a template without a word for it is told of is_error

std::string required_text(RequestFields& fields, std::string_view name) {
  const std::optional<std::string> text = fields.text(name);
  if (!text) fields.refuse(name, fmt::format("{} is missing", fields.path_of(name)));
  return text.value_or("");
}

// One message of the request as it is read: the messages of the template that it becomes.
struct Turn {
  std::string role;
  std::string text;
  std::string reasoning;
  json::Array calls;
  json::Array messages;  // finished ones: tool results, and text before them
  bool has_text = false;
};

class ConversationReader {
 public:
  AnthropicConversation read(RequestFields& fields) {
    if (const json::Value* system = fields.find("system")) {
      json::Object message = {{"role", "system"}, {"content", read_texts(fields, "system", *system)}};
      out_.messages.push_back(std::move(message));
    }
    const json::Array* messages = fields.array("messages");
    if (messages == nullptr) fields.refuse("messages", "messages is missing");
    if (messages != nullptr && messages->empty()) {
      fields.refuse("messages", "messages must hold at least one message");
    }
    for (std::size_t i = 0; messages != nullptr && i < messages->size() && !fields.refusal(); ++i) {
      read_at(fields, fmt::format("messages[{}]", i), (*messages)[i],
              [&](RequestFields& message) { read_message(message, i + 1 == messages->size()); });
    }
    return std::move(out_);
  }

 private:
  // Calls read(fields of the object at path), and passes its refusal on.
  template <class Read>
  void read_at(RequestFields& parent, const std::string& path, const json::Value& value, Read read) {
    if (!value.is_object()) {
      return parent.refuse(ApiError{ErrorCode::InvalidArgument,
                                    fmt::format("{} must be an object, not {}", path, kind_in_words(value)), path, ""});
    }
    RequestFields fields(value.get_object(), path);
    read(fields);
    fields.refuse_unread();
    if (fields.refusal()) parent.refuse(*fields.refusal());
  }

  template <class Read>
  void read_blocks(RequestFields& parent, std::string_view name, const json::Array& blocks, Read read) {
    for (std::size_t i = 0; i < blocks.size() && !parent.refusal(); ++i) {
      read_at(parent, fmt::format("{}[{}]", parent.path_of(name), i), blocks[i], [&](RequestFields& block) {
        const std::string type = required_text(block, "type");
        read_cache_control(block, out_.has_cache_control);
        if (!block.refusal()) read(block, type);
      });
    }
  }

  void refuse_type(RequestFields& block, const std::string& type, std::string_view where) {
    block.refuse("type",
                 fmt::format("{}: blocks of type '{}' are not supported {}: this model reads text only",
                             block.path_of("type"), type, where),
                 ErrorCode::Unsupported);
  }

  std::string read_text_block(RequestFields& block) {
    if (const json::Array* citations = block.array("citations"); citations != nullptr && !citations->empty()) {
      block.refuse("citations", block.path_of("citations") + " are not supported", ErrorCode::Unsupported);
    }
    return required_text(block, "text");
  }

  // A string, or text blocks joined.
  std::string read_texts(RequestFields& parent, std::string_view name, const json::Value& content) {
    if (content.is_string()) return std::string(content.get_string());
    std::string joined;
    if (!content.is_array()) {
      parent.refuse(name, fmt::format("{} must be a string or an array of blocks, not {}", parent.path_of(name),
                                      kind_in_words(content)));
      return joined;
    }
    read_blocks(parent, name, content.get_array(), [&](RequestFields& block, const std::string& type) {
      if (type != "text") return refuse_type(block, type, "here");
      joined += read_text_block(block);
    });
    return joined;
  }

  void read_message(RequestFields& message, bool is_last) {
    Turn turn;
    turn.role = required_text(message, "role");
    if (message.refusal()) return;
    if (turn.role != "user" && turn.role != "assistant" && turn.role != "system") {
      return message.refuse(
          "role", fmt::format("{} must be user, assistant or system, not '{}'", message.path_of("role"), turn.role));
    }
    const json::Value* content = message.find("content");
    if (content == nullptr) return message.refuse("content", fmt::format("{} is missing", message.path_of("content")));
    if (content->is_array() && turn.role != "system") {
      read_blocks(message, "content", content->get_array(),
                  [&](RequestFields& block, const std::string& type) { read_block(block, type, turn); });
    } else {
      turn.text = read_texts(message, "content", *content);
      turn.has_text = true;
    }
    if (message.refusal()) return;
    if (is_last && turn.role == "assistant") return begin_reply(message, turn);
    finish(std::move(turn));
  }

  void read_block(RequestFields& block, const std::string& type, Turn& turn) {
    const bool is_assistant = turn.role == "assistant";
    if (type == "text") {
      turn.text += read_text_block(block);
      turn.has_text = true;
    } else if (type == "thinking" && is_assistant) {
      turn.reasoning += required_text(block, "thinking");
      block.text("signature");
    } else if (type == "tool_use" && is_assistant) {
      read_tool_use(block, turn);
    } else if (type == "tool_result" && !is_assistant) {
      read_tool_result(block, turn);
    } else if (type == "thinking" || type == "tool_use" || type == "tool_result") {
      block.refuse("type",
                   fmt::format("{}: a {} block is not for the {}'s messages", block.path_of("type"), type, turn.role));
    } else {
      refuse_type(block, type, "");
    }
  }

  void read_tool_use(RequestFields& block, Turn& turn) {
    json::Object function;
    json::Object call;
    call["id"] = required_text(block, "id");
    call["type"] = "function";
    function["name"] = required_text(block, "name");
    const json::Object* input = block.object("input");
    if (input == nullptr) return block.refuse("input", fmt::format("{} is missing", block.path_of("input")));
    function["arguments"] = *input;
    call["function"] = std::move(function);
    block.object("caller");  // as replies of other servers have it; the model called
    turn.calls.push_back(std::move(call));
  }

  void read_tool_result(RequestFields& block, Turn& turn) {
    json::Object message;
    message["role"] = "tool";
    message["tool_call_id"] = required_text(block, "tool_use_id");
    std::string text;
    if (const json::Value* content = block.find("content")) text = read_texts(block, "content", *content);
    if (block.boolean("is_error").value_or(false)) text.insert(0, kErrorPrefix);
    message["content"] = text;
    end_text(turn);
    turn.messages.push_back(std::move(message));
  }

  // The text so far as a message of its own: what follows must not come before it.
  void end_text(Turn& turn) {
    if (!std::exchange(turn.has_text, false)) return;
    turn.messages.push_back({{"role", turn.role}, {"content", std::exchange(turn.text, "")}});
  }

  void finish(Turn turn) {
    if (turn.role == "assistant") {
      json::Object message = {{"role", turn.role}, {"content", turn.text}};
      if (!turn.reasoning.empty()) message["reasoning_content"] = turn.reasoning;
      if (!turn.calls.empty()) message["tool_calls"] = std::move(turn.calls);
      turn.messages.push_back(std::move(message));
    } else {
      turn.has_text = turn.has_text || turn.messages.empty();
      end_text(turn);
    }
    for (json::Value& message : turn.messages) out_.messages.push_back(std::move(message));
  }

  void begin_reply(RequestFields& message, const Turn& turn) {
    if (!turn.calls.empty() || !turn.reasoning.empty()) {
      return message.refuse("content",
                            fmt::format("{}: only text can be continued; thinking and tool_use end a turn that "
                                        "tool_result or the user's text must follow",
                                        message.path_of("content")));
    }
    if (turn.text.empty() || turn.text.find_last_not_of(" \t\r\n") + 1 != turn.text.size()) {
      return message.refuse("content", fmt::format("{}: the text that the reply continues must not be empty or end in "
                                                   "white space",
                                                   message.path_of("content")));
    }
    out_.begun_reply = turn.text;
  }

  AnthropicConversation out_;
};

}  // namespace

AnthropicConversation read_anthropic_conversation(RequestFields& fields) { return ConversationReader().read(fields); }

void read_cache_control(RequestFields& fields, bool& has_cache_control) {
  const json::Object* given = fields.object("cache_control");
  if (given == nullptr) return;
  RequestFields control(*given, fields.path_of("cache_control"));
  const std::string type = required_text(control, "type");
  if (type != "ephemeral") {
    control.refuse("type", fmt::format("{} must be ephemeral, not '{}'", control.path_of("type"), type));
  }
  control.text("ttl");
  control.refuse_unread();
  if (control.refusal()) return fields.refuse(*control.refusal());
  has_cache_control = true;
}

}  // namespace rondo
