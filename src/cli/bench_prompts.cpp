#include "cli/bench_prompts.h"

#include <fmt/format.h>

#include <utility>

#include "api/template_prompt.h"
#include "base/check.h"
#include "base/json.h"
#include "base/random.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rondo {

namespace {

constexpr int kSeededPrompts = 8, kSeededIds = 32;

Result<std::vector<std::int32_t>> prompt_ids(const json::Value& prompt, const Tokenizer& tokenizer,
                                             const ChatTemplate* chat_template) {
  if (prompt.is_string()) return tokenizer.encode(std::string_view(prompt.as_string()));
  if (chat_template == nullptr) {
    return failure(ErrorCode::InvalidArgument, "edit prompts are conversations, and the model has no chat template");
  }
  json::Object variables;
  variables["messages"] = prompt;
  variables["add_generation_prompt"] = true;
  TRY(BuiltPrompt built, TemplatePrompt(*chat_template, tokenizer).build(variables, {}));
  return std::move(built.ids);
}

}  // namespace

Result<std::vector<PromptKind>> bench_prompts(const std::vector<std::string>& names, const Tokenizer& tokenizer,
                                              const ChatTemplate* chat_template) {
  TRY(const json::Value document, parse_json(kBenchPromptsJson));
  std::vector<PromptKind> kinds;
  for (const std::string& name : names) {
    const json::Value* prompts = document.as_object().if_contains(name);
    if (prompts == nullptr) {
      return failure(ErrorCode::InvalidArgument,
                     fmt::format("there are no '{}' prompts; known: code, prose, edit", name));
    }
    PromptKind kind{.name = name, .prompts = {}};
    for (const json::Value& prompt : prompts->as_array()) {
      TRY(std::vector<std::int32_t> ids, prompt_ids(prompt, tokenizer, chat_template));
      kind.prompts.push_back(std::move(ids));
      kind.ends = prompt.is_array();
    }
    CHECK(!kind.prompts.empty());
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

PromptKind seeded_prompts(int vocab_size) {
  PromptKind kind{.name = "ids", .prompts = {}};
  for (std::uint64_t prompt = 0; prompt < kSeededPrompts; ++prompt) {
    std::vector<std::int32_t> ids;
    for (std::uint64_t i = 0; i < kSeededIds; ++i) {
      ids.push_back(static_cast<std::int32_t>(random_bits(11, prompt, i) % static_cast<std::uint64_t>(vocab_size)));
    }
    kind.prompts.push_back(std::move(ids));
  }
  return kind;
}

}  // namespace rondo
