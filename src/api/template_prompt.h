// TemplatePrompt: the PromptBuilder of a loaded checkpoint.
#pragma once

#include "api/prompt_builder.h"

namespace rondo {

class ChatTemplate;
class Tokenizer;

class TemplatePrompt final : public PromptBuilder {
 public:
  // Both outlive the builder.
  TemplatePrompt(const ChatTemplate& chat_template, const Tokenizer& tokenizer)
      : chat_template_(&chat_template), tokenizer_(&tokenizer) {}
  Result<BuiltPrompt> build(const json::Object& variables, std::string_view begun_reply) const override;
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  bool is_special(std::int32_t id) const override;

 private:
  const ChatTemplate* chat_template_;
  const Tokenizer* tokenizer_;
};

}  // namespace rondo
