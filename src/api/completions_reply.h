// POST /v1/completions, the way out: engine events to OpenAI's text_completion objects, whole or as server-sent events.
//
// A streamed reply is: with echo an event for each choice with its prompt, events with text, one for each choice with
// its finish_reason, one with usage if asked (its choices are empty), "[DONE]". `rondo` rides the last of them.
//
// logprobs, in the form of this API: arrays of the same length, a place for each token drawn. A token that is not whole
// UTF-8 is written "bytes:\xe2\x80". text_offset counts characters of the choice's text, which control tokens are not
// part of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/reply_writer.h"

namespace rondo {

// What a reply says of itself, known before its first token.
struct CompletionsFacts {
  std::string id;  // "cmpl-..."
  std::int64_t created = 0;
  std::string model;
  std::int64_t seed = 0;
  std::string arithmetic;
  int num_choices = 1;              // of all prompts
  int choices_a_prompt = 1;         // n
  std::vector<std::string> echoes;  // one a prompt, or none
  bool has_logprobs = false;
  bool include_usage = false;              // in a streamed reply
  const PromptBuilder* prompts = nullptr;  // outlives the reply
};

std::unique_ptr<ReplyWriter> make_completions_writer(CompletionsFacts facts, Delivery delivery);

}  // namespace rondo
