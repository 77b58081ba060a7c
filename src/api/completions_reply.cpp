#include "api/completions_reply.h"

#include <algorithm>
#include <utility>

#include "api/choice_ends.h"
#include "api/openai_reply.h"
#include "api/token_name.h"
#include "base/json.h"

namespace rondo {

namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// The logprobs of one choice's tokens, or of those in one event.
class LogprobLists {
 public:
  explicit LogprobLists(const PromptBuilder& prompts) : prompts_(&prompts) {}

  void add(const TextEvent& event) {
    for (std::size_t i = 0; i < event.logprobs.size(); ++i) add(event.ids[i], event.logprobs[i]);
  }

  // What was added since the last call.
  json::Object take() {
    json::Object out;
    out["tokens"] = std::exchange(tokens_, {});
    out["token_logprobs"] = std::exchange(chosen_, {});
    out["top_logprobs"] = std::exchange(top_, {});
    out["text_offset"] = std::exchange(offsets_, {});
    return out;
  }

 private:
  void add(std::int32_t id, const RowLogprobs& row) {
    const std::string bytes = prompts_->decode(std::span(&id, 1));
    const std::string name = token_name(bytes);
    tokens_.emplace_back(name);
    chosen_.emplace_back(row.chosen);
    json::Object top;
    for (int i = 0; i < row.num_top; ++i) {
      const std::string likely = token_name(prompts_->decode(std::span(&row.top_ids[i], 1)));
      if (!top.contains(likely)) top[likely] = row.top[i];  // two ids may have one spelling: the likelier stays
    }
    top[name] = row.chosen;
    top_.push_back(std::move(top));
    // A token in the middle of a character stands where the character does.
    const bool continues = !bytes.empty() && !begins_character(bytes[0]) && characters_ > 0;
    offsets_.emplace_back(characters_ - (continues ? 1 : 0));
    if (!prompts_->is_special(id)) characters_ += std::count_if(bytes.begin(), bytes.end(), begins_character);
  }

  const PromptBuilder* prompts_;
  std::int64_t characters_ = 0;
  json::Array tokens_, chosen_, top_, offsets_;
};

json::Object render_choice(int index, std::string_view text, json::Value logprobs, json::Value finish_reason) {
  json::Object out;
  out["text"] = text;
  out["index"] = index;
  out["logprobs"] = std::move(logprobs);
  out["finish_reason"] = std::move(finish_reason);
  return out;
}

json::Object render_completion(const CompletionsFacts& facts, json::Array choices) {
  json::Object out;
  out["id"] = facts.id;
  out["object"] = "text_completion";
  out["created"] = facts.created;
  out["model"] = facts.model;
  out["choices"] = std::move(choices);
  return out;
}

std::string_view echo_of(const CompletionsFacts& facts, int choice) {
  if (facts.echoes.empty()) return "";
  return facts.echoes[static_cast<std::size_t>(choice / facts.choices_a_prompt)];
}

class WholeCompletions final : public ReplyWriter {
 public:
  explicit WholeCompletions(CompletionsFacts facts)
      : facts_(std::move(facts)), ends_(facts_.num_choices, facts_.choices_a_prompt) {
    for (int i = 0; i < facts_.num_choices; ++i) {
      choices_.push_back({std::string(echo_of(facts_, i)), LogprobLists(*facts_.prompts), ""});
    }
  }

  std::string push(int choice, const TextEvent& event) override {
    Choice& target = choices_[static_cast<std::size_t>(choice)];
    target.text += event.text;
    target.logprobs.add(event);
    return "";
  }

  std::string finish(int choice, const EndEvent& end) override {
    Choice& target = choices_[static_cast<std::size_t>(choice)];
    target.text += end.text;
    target.finish_reason = finish_reason_name(end.reason);
    ends_.add(choice, end);
    return ends_.is_complete() ? render() : "";
  }

  std::string fail(const ApiError& error) override { return render_openai_error(error); }

 private:
  struct Choice {
    std::string text;
    LogprobLists logprobs;
    std::string finish_reason;
  };

  std::string render() {
    json::Array rendered;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      json::Value logprobs = nullptr;
      if (facts_.has_logprobs) logprobs = choice.logprobs.take();
      rendered.push_back(
          render_choice(static_cast<int>(i), choice.text, std::move(logprobs), json::Value(choice.finish_reason)));
    }
    json::Object out = render_completion(facts_, std::move(rendered));
    out["usage"] = render_usage(ends_.usage(), 0);
    out["rondo"] = ends_.render_rondo(facts_.seed, facts_.arithmetic);
    return to_json(out);
  }

  CompletionsFacts facts_;
  ChoiceEnds ends_;
  std::vector<Choice> choices_;
};

class StreamedCompletions final : public ReplyWriter {
 public:
  explicit StreamedCompletions(CompletionsFacts facts)
      : facts_(std::move(facts)),
        ends_(facts_.num_choices, facts_.choices_a_prompt),
        logprobs_(static_cast<std::size_t>(facts_.num_choices), LogprobLists(*facts_.prompts)) {}

  std::string begin() override {
    std::string out;
    for (int i = 0; i < facts_.num_choices; ++i) {
      const std::string_view echo = echo_of(facts_, i);
      if (!echo.empty()) out += server_sent_event(chunk(render_choice(i, echo, nullptr, nullptr)));
    }
    return out;
  }

  std::string push(int choice, const TextEvent& event) override {
    LogprobLists& lists = logprobs_[static_cast<std::size_t>(choice)];
    lists.add(event);
    if (event.text.empty() && !facts_.has_logprobs) return "";
    return server_sent_event(chunk(render_choice(choice, event.text, take(lists), nullptr)));
  }

  std::string finish(int choice, const EndEvent& end) override {
    ends_.add(choice, end);
    json::Object last = chunk(render_choice(choice, end.text, nullptr, json::Value(finish_reason_name(end.reason))));
    if (!ends_.is_complete()) return server_sent_event(last);
    std::string out;
    if (facts_.include_usage) {
      out = server_sent_event(last);
      last = render_completion(facts_, {});
      last["usage"] = render_usage(ends_.usage(), 0);
    }
    last["rondo"] = ends_.render_rondo(facts_.seed, facts_.arithmetic);
    return out + server_sent_event(last) + std::string(kDone);
  }

  std::string fail(const ApiError& error) override { return end_stream(error); }

 private:
  json::Value take(LogprobLists& lists) const {
    if (!facts_.has_logprobs) return nullptr;
    return lists.take();
  }

  json::Object chunk(json::Object choice) const {
    json::Array choices;
    choices.push_back(std::move(choice));
    json::Object out = render_completion(facts_, std::move(choices));
    if (facts_.include_usage) out["usage"] = nullptr;  // the last one has it
    return out;
  }

  CompletionsFacts facts_;
  ChoiceEnds ends_;
  std::vector<LogprobLists> logprobs_;  // one a choice
};

}  // namespace

std::unique_ptr<ReplyWriter> make_completions_writer(CompletionsFacts facts, Delivery delivery) {
  if (delivery == Delivery::Streamed) return std::make_unique<StreamedCompletions>(std::move(facts));
  return std::make_unique<WholeCompletions>(std::move(facts));
}

}  // namespace rondo
