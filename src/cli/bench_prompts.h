// The prompts of the bench: bench/bench_prompts.json, built into the program. Code and prose are raw texts to go on
// with; edits are conversations, for models that have a chat template.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rondo {

class ChatTemplate;
class Tokenizer;

struct PromptKind {
  std::string name;  // code, prose, edit; ids without a tokenizer
  std::vector<std::vector<std::int32_t>> prompts;
  bool ends = false;  // a reply has a natural end, after which text would degenerate: end tokens end it
};

// The named kinds, in the order they are named. InvalidArgument for an unknown name, or edit without a template.
Result<std::vector<PromptKind>> bench_prompts(const std::vector<std::string>& names, const Tokenizer& tokenizer,
                                              const ChatTemplate* chat_template);

// For models without a tokenizer: seeded ids, as long as a prompt of code.
PromptKind seeded_prompts(int vocab_size);

extern const std::string_view kBenchPromptsJson;  // the file; made by the build

}  // namespace rondo
