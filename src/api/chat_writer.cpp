#include "api/chat_writer.h"

#include <utility>

#include "api/chat_choice.h"
#include "api/choice_ends.h"
#include "api/openai_reply.h"

namespace rondo {

namespace {

std::vector<ChatChoice> make_choices(const ChatFacts& facts) {
  std::vector<ChatChoice> out;
  for (int i = 0; i < facts.num_choices; ++i) {
    ChatChoiceForm form;
    form.form = {facts.thinking, facts.tools, "call_" + facts.id + "_" + std::to_string(i) + "_"};
    form.think_end_id = facts.think_end_id;
    form.has_logprobs = facts.has_logprobs;
    form.prompts = facts.prompts;
    out.emplace_back(std::move(form));
  }
  return out;
}

int reasoning_tokens(const std::vector<ChatChoice>& choices) {
  int sum = 0;
  for (const ChatChoice& choice : choices) sum += choice.reasoning_tokens();
  return sum;
}

json::Object render_reply(const ChatFacts& facts, std::string_view object, json::Array choices) {
  json::Object out;
  out["id"] = "chatcmpl-" + facts.id;
  out["object"] = object;
  out["created"] = facts.created;
  out["model"] = facts.model;
  out["choices"] = std::move(choices);
  return out;
}

// key: "message" or "delta", by what `value` is.
json::Object render_choice(int index, std::string_view key, json::Object value, json::Value logprobs,
                           json::Value finish_reason) {
  json::Object out;
  out["index"] = index;
  out[key] = std::move(value);
  out["logprobs"] = std::move(logprobs);
  out["finish_reason"] = std::move(finish_reason);
  return out;
}

class WholeChat final : public ReplyWriter {
 public:
  explicit WholeChat(ChatFacts facts)
      : facts_(std::move(facts)),
        ends_(facts_.num_choices, facts_.num_choices),
        choices_(make_choices(facts_)),
        messages_(choices_.size()) {}

  std::string push(int choice, const TextEvent& event) override {
    const auto i = static_cast<std::size_t>(choice);
    messages_[i].add(choices_[i].push(event));
    return "";
  }

  std::string finish(int choice, const EndEvent& end) override {
    const auto i = static_cast<std::size_t>(choice);
    messages_[i].add(choices_[i].finish(end));
    ends_.add(choice, end);
    return ends_.is_complete() ? render() : "";
  }

  std::string fail(const ApiError& error) override { return render_openai_error(error); }

 private:
  struct Call {
    std::string id, name, arguments;
  };
  struct Message {
    std::string reasoning, content;
    std::vector<Call> calls;

    void add(const ReplyParts& parts) {
      using Kind = ReplyPart::Kind;
      for (const ReplyPart& part : parts) {
        if (part.kind == Kind::Reasoning) reasoning += part.text;
        if (part.kind == Kind::Content) content += part.text;
        if (part.kind == Kind::CallBegin) calls.push_back({part.id, part.text, ""});
        if (part.kind == Kind::CallArguments) calls.back().arguments += part.text;
      }
    }
    json::Object render() const {
      json::Object out;
      out["role"] = "assistant";
      out["content"] = content.empty() && !calls.empty() ? json::Value(nullptr) : json::Value(content);
      out["refusal"] = nullptr;
      if (!reasoning.empty()) out["reasoning_content"] = reasoning;
      json::Array rendered;
      for (const Call& call : calls) {
        rendered.push_back({{"id", call.id},
                            {"type", "function"},
                            {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
      if (!rendered.empty()) out["tool_calls"] = std::move(rendered);
      return out;
    }
  };

  std::string render() {
    json::Array rendered;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      rendered.push_back(render_choice(static_cast<int>(i), "message", messages_[i].render(),
                                       choices_[i].take_logprobs(), json::Value(choices_[i].finish_reason())));
    }
    json::Object out = render_reply(facts_, "chat.completion", std::move(rendered));
    out["usage"] = render_usage(ends_.usage(), reasoning_tokens(choices_));
    out["rondo"] = ends_.render_rondo(facts_.seed, facts_.arithmetic);
    return to_json(out);
  }

  ChatFacts facts_;
  ChoiceEnds ends_;
  std::vector<ChatChoice> choices_;
  std::vector<Message> messages_;  // one a choice
};

json::Object call_delta(const ReplyPart& part, json::Object function) {
  json::Object call;
  call["index"] = part.call;
  if (part.kind == ReplyPart::Kind::CallBegin) {
    call["id"] = part.id;
    call["type"] = "function";
  }
  call["function"] = std::move(function);
  json::Object out;
  out["tool_calls"] = json::Array{std::move(call)};
  return out;
}

// Empty for a part that only ends something: finish_reason says it.
json::Object delta_of(const ReplyPart& part) {
  switch (part.kind) {
    case ReplyPart::Kind::Reasoning: return {{"reasoning_content", part.text}};
    case ReplyPart::Kind::Content: return {{"content", part.text}};
    case ReplyPart::Kind::CallBegin: return call_delta(part, {{"name", part.text}, {"arguments", ""}});
    case ReplyPart::Kind::CallArguments: return call_delta(part, {{"arguments", part.text}});
    case ReplyPart::Kind::CallEnd:
    case ReplyPart::Kind::CallCut: return {};
  }
  return {};
}

class StreamedChat final : public ReplyWriter {
 public:
  explicit StreamedChat(ChatFacts facts)
      : facts_(std::move(facts)), ends_(facts_.num_choices, facts_.num_choices), choices_(make_choices(facts_)) {}

  std::string begin() override {
    std::string out;
    for (int i = 0; i < facts_.num_choices; ++i) {
      json::Object first;
      first["role"] = "assistant";
      first["content"] = "";
      out += event(render_choice(i, "delta", std::move(first), nullptr, nullptr));
    }
    return out;
  }

  std::string push(int choice, const TextEvent& event) override {
    return deltas(choice, choices_[static_cast<std::size_t>(choice)].push(event));
  }

  std::string finish(int choice, const EndEvent& end) override {
    ChatChoice& ended = choices_[static_cast<std::size_t>(choice)];
    std::string out = deltas(choice, ended.finish(end));
    ends_.add(choice, end);
    json::Object last =
        chunk({render_choice(choice, "delta", {}, rest_of_logprobs(ended), json::Value(ended.finish_reason()))});
    if (!ends_.is_complete()) return out + server_sent_event(last);
    if (facts_.include_usage) {
      out += server_sent_event(last);
      last = chunk({});
      last["usage"] = render_usage(ends_.usage(), reasoning_tokens(choices_));
    }
    last["rondo"] = ends_.render_rondo(facts_.seed, facts_.arithmetic);
    return out + server_sent_event(last) + std::string(kDone);
  }

  std::string fail(const ApiError& error) override { return end_stream(error); }

 private:
  json::Object chunk(json::Array choices) const {
    json::Object out = render_reply(facts_, "chat.completion.chunk", std::move(choices));
    if (facts_.include_usage) out["usage"] = nullptr;  // the last one has it
    return out;
  }

  std::string event(json::Object choice) const {
    json::Array choices;
    choices.push_back(std::move(choice));
    return server_sent_event(chunk(std::move(choices)));
  }

  std::string deltas(int choice, const ReplyParts& parts) {
    std::string out;
    for (const ReplyPart& part : parts) {
      json::Object delta = delta_of(part);
      if (delta.empty()) continue;
      json::Value logprobs = rest_of_logprobs(choices_[static_cast<std::size_t>(choice)]);
      out += event(render_choice(choice, "delta", std::move(delta), std::move(logprobs), nullptr));
    }
    return out;
  }

  // Of the tokens since the last event of this choice; null when there were none.
  static json::Value rest_of_logprobs(ChatChoice& choice) {
    json::Value logprobs = choice.take_logprobs();
    const bool is_empty = logprobs.is_object() && logprobs.at("content").get_array().empty();
    return is_empty ? json::Value(nullptr) : logprobs;
  }

  ChatFacts facts_;
  ChoiceEnds ends_;
  std::vector<ChatChoice> choices_;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_chat_writer(ChatFacts facts, Delivery delivery) {
  if (delivery == Delivery::Streamed) return std::make_unique<StreamedChat>(std::move(facts));
  return std::make_unique<WholeChat>(std::move(facts));
}

}  // namespace rondo
