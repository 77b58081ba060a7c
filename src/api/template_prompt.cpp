#include "api/template_prompt.h"

#include <ctime>
#include <utility>

#include "api/think_split.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rondo {

Result<BuiltPrompt> TemplatePrompt::build(const json::Object& variables, std::string_view begun_reply) const {
  TRY(MarkedText prompt, chat_template_->render(variables, std::time(nullptr)));
  BuiltPrompt built;
  built.thinking = ends_inside_think(prompt);
  if (!begun_reply.empty()) {
    if (built.thinking) {
      return failure(ErrorCode::InvalidArgument,
                     "the last message cannot be the assistant's: this reply begins with a thought");
    }
    const std::size_t begin = prompt.text.size();
    prompt.text += begun_reply;
    prompt.untrusted.push_back({begin, prompt.text.size()});
  }
  built.ids = tokenizer_->encode(prompt);
  return built;
}

std::vector<std::int32_t> TemplatePrompt::encode(std::string_view text) const { return tokenizer_->encode(text); }

std::string TemplatePrompt::decode(std::span<const std::int32_t> ids) const { return tokenizer_->decode(ids, false); }

bool TemplatePrompt::is_special(std::int32_t id) const { return tokenizer_->is_special(id); }

}  // namespace rondo
