// ChatChoice: one choice of a chat reply as its events come: its parts, how many of its tokens were reasoning, its
// logprobs, and in the end its finish_reason.
//
// Logprobs: an entry for every token drawn, also of reasoning, of tags and of the end; as many as completion_tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/prompt_builder.h"
#include "api/reasoning_count.h"
#include "api/reply_parser.h"
#include "base/json.h"
#include "engine/request.h"

namespace rondo {

struct ChatChoiceForm {
  ReplyForm form;
  std::optional<std::int32_t> think_end_id;  // </think>, where it is one token
  bool has_logprobs = false;
  const PromptBuilder* prompts = nullptr;  // for the tokens' text; outlives the choice
};

class ChatChoice {
 public:
  explicit ChatChoice(ChatChoiceForm form);

  ReplyParts push(const TextEvent& event);
  ReplyParts finish(const EndEvent& end);
  std::string_view finish_reason() const { return finish_reason_; }  // after finish
  int reasoning_tokens() const { return reasoning_count_.tokens(); }
  // {"content": [...], "refusal": null} of the tokens since the last call; null when logprobs were not asked for.
  json::Value take_logprobs();

 private:
  void add_logprobs(std::int32_t id, const RowLogprobs& row);

  ChatChoiceForm form_;
  ReplyParser parser_;
  ReasoningCount reasoning_count_;
  json::Array logprobs_;
  std::string_view finish_reason_;
};

}  // namespace rondo
