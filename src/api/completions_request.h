// POST /v1/completions, the way in: prompts as text or token ids, continued as they are, without a template.
//
// prompt: a text, an array of texts, an array of token ids, or an array of such arrays. Each has `n` choices; choice i
// of prompt p has index p * n + i and is, seed by seed, what it would be if the prompt were sent alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/reply_writer.h"
#include "api/structure.h"
#include "base/json.h"

namespace rondo {

struct CompletionsRequest : ReplySettings {
  std::vector<std::vector<std::int32_t>> prompts;
  std::optional<Structure> structure;  // the form its text must have
  std::vector<std::string> echoes;     // with echo: what each prompt's choices begin with; else empty
};

ApiResult<CompletionsRequest> parse_completions(std::string_view body, const ServedModel& model,
                                                const PromptBuilder& prompts, std::int64_t fresh_seed);

ApiResult<PreparedReply> prepare_completions(std::string_view body, const ServedModel& model,
                                             const PromptBuilder& prompts, const ReplyStamp& stamp);

}  // namespace rondo
