// ServedModel: what api/ must know of the model being served to judge a request and word a reply.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ckpt/config.h"
#include "device/memory.h"

namespace rondo {

namespace grammar {
class GrammarCache;
}

struct ServedModel {
  std::string name;
  std::vector<std::string> aliases;          // other names it answers to; "*" = any name
  int vocab_size = 0;                        // token ids are 0 up to this
  int context_tokens = 0;                    // the window of one request: prompt and reply
  int max_tokens = 0;                        // of a reply whose request is silent (also bounded by the window)
  GenerationDefaults defaults;               // what a silent request gets, and the ids that end a reply
  std::string arithmetic;                    // backend and instruction set, "cpu/avx512"
  std::optional<std::int32_t> think_end_id;  // </think>, where it is one token
  MemoryPlan memory;                         // what was reserved for it
  bool drafts_priced = false;                // rounds are planned in milliseconds
  std::optional<std::int32_t> tool_call_id;  // <tool_call>, likewise
  std::vector<std::int32_t> think_closing;   // what a thought is ended with, think_end_id last; empty without it
  // The variables of a chat that the template reads; the others it cannot honour.
  bool reads_tools = false, reads_enable_thinking = false, reads_reasoning_effort = false;
  std::int64_t created = 0;                         // seconds since 1970
  std::shared_ptr<grammar::GrammarCache> grammars;  // null: replies cannot be held to a form, and why
  std::string why_no_grammars = "this server was started without structured output";
};

}  // namespace rondo
