// PromptBuilder: a conversation to prompt ids, by the model's own chat template and tokenizer.
#pragma once

#include <cstdint>
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
  virtual Result<BuiltPrompt> build(const json::Object& variables) const = 0;
};

}  // namespace rondo
