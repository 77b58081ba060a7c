#include "api/template_prompt.h"

#include <ctime>
#include <utility>

#include "api/think_split.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rondo {

Result<BuiltPrompt> TemplatePrompt::build(const json::Object& variables) const {
  TRY(const MarkedText prompt, chat_template_->render(variables, std::time(nullptr)));
  BuiltPrompt built;
  built.ids = tokenizer_->encode(prompt);
  built.thinking = ends_inside_think(prompt);
  return built;
}

std::vector<std::int32_t> TemplatePrompt::encode(std::string_view text) const { return tokenizer_->encode(text); }

std::string TemplatePrompt::decode(std::span<const std::int32_t> ids) const { return tokenizer_->decode(ids, false); }

bool TemplatePrompt::is_special(std::int32_t id) const { return tokenizer_->is_special(id); }

}  // namespace rondo
