// PromptBuilder: conversations and texts to prompt ids, and ids to text, by the model's own template and tokenizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace rondo {

struct BuiltPrompt {
  std::vector<std::int32_t> ids;
  bool thinking = false;  // it ends inside an open <think>: the reply begins as reasoning
};

// Any thread.
class PromptBuilder {
 public:
  virtual ~PromptBuilder() = default;
  // `variables` are the template's globals (text/chat_template.h); a template that cannot render them says why.
  // begun_reply: text that the reply continues, after what the template ends the prompt with; refused where that is an
  // open thought.
  virtual Result<BuiltPrompt> build(const json::Object& variables, std::string_view begun_reply) const = 0;
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;  // text may spell control tokens
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;    // bytes, perhaps not whole UTF-8
  virtual bool is_special(std::int32_t id) const = 0;  // a control token, which a reply's text leaves out
};

}  // namespace rondo
