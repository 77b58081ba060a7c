// ReplySettings: what every route that generates text reads alike, whatever its API: length, drawing, stops, drafts,
// choices, delivery.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/error.h"
#include "api/request_fields.h"
#include "api/served_model.h"
#include "engine/request.h"

namespace rondo {

enum class Delivery { Whole, Streamed };

struct ReplySettings {
  std::optional<int> max_tokens;  // nullopt: as much as ServedModel and the window allow
  DrawSettings draw;              // model defaults where the request is silent
  std::int64_t seed = 0;          // as the reply returns it; draw.seed has the same bits
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
  int max_draft_depth = Request{}.max_draft_depth;  // draft_depth, or 0 for draft: false
  bool use_prefix_cache = true;                     // cache: false neither reads nor writes it
  int num_top_logprobs = -1;                        // as Request has it
  int num_choices = 1;                              // replies to one prompt
  Delivery delivery = Delivery::Whole;
  bool include_usage = false;  // in a streamed reply
};

constexpr std::int64_t kMostTokens = 0x7FFFFFFF;
constexpr int kMaxChoices = 128;

// A body's own fields, each under the names it has in every API; a refusal stays in `fields`.
ApiResult<json::Object> parse_body(std::string_view body);
void check_model(RequestFields& fields, const ServedModel& model);
// temperature, top_p, top_k, min_p, presence_penalty, frequency_penalty, logit_bias, seed.
void read_sampling(RequestFields& fields, const ServedModel& model, std::int64_t fresh_seed, ReplySettings& settings);
void read_drafts(RequestFields& fields, ReplySettings& settings);  // draft, draft_depth
void read_cache(RequestFields& fields, ReplySettings& settings);   // cache
// `stop`, `stop_sequences`: a string or an array of them.
void read_stop(RequestFields& fields, std::string_view name, ReplySettings& settings);
void read_stream_options(RequestFields& fields, ReplySettings& settings);  // stream, stream_options

// prompt_field: where the prompt stands in the body, for messages. TooLong with both numbers when prompt and reply
// cannot fit the window.
ApiResult<Request> to_request(const ReplySettings& settings, std::vector<std::int32_t> prompt_ids,
                              const ServedModel& model, std::string_view prompt_field);

// What choice i of a request draws with: choice 0 of many is the only choice of one.
std::uint64_t choice_seed(std::int64_t seed, int choice);

}  // namespace rondo
