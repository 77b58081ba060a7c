#include "api/reply_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/random.h"

namespace rondo {

namespace {

constexpr std::size_t kMaxStopStrings = 16;
constexpr std::size_t kMaxBiases = 1024;

std::optional<std::int32_t> token_id(std::string_view key) {
  std::int32_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0) return std::nullopt;
  return id;
}

void read_logit_bias(RequestFields& fields, int vocab_size, DrawSettings& draw) {
  const json::Object* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > kMaxBiases) {
    return fields.refuse("logit_bias",
                         fmt::format("logit_bias takes at most {} tokens, not {}", kMaxBiases, biases->size()));
  }
  RequestFields entries(*biases, "logit_bias");
  for (const auto& member : *biases) {
    const std::string_view key = member.key();
    const std::optional<std::int32_t> id = token_id(key);
    if (!id || *id >= vocab_size) {
      return fields.refuse("logit_bias",
                           fmt::format("logit_bias: '{}' is no token id, which are 0 to {}", key, vocab_size - 1));
    }
    const std::optional<double> bias = entries.number(key, -100, 100);
    if (bias) draw.bias.push_back({*id, static_cast<float>(*bias)});
  }
  if (entries.refusal()) fields.refuse(*entries.refusal());
}

}  // namespace

ApiResult<json::Object> parse_body(std::string_view body) {
  Result<json::Value> document = parse_json(body);
  if (!document) return refusal(to_api_error(document.error()));
  if (document->is_object()) return std::move(document->get_object());
  return refusal({ErrorCode::InvalidArgument,
                  fmt::format("the body must be a JSON object, not {}", kind_in_words(*document)), "", ""});
}

void check_model(RequestFields& fields, const ServedModel& model) {
  const std::optional<std::string> name = fields.text("model");
  if (!name || *name == model.name) return;
  std::string known = fmt::format("'{}'", model.name);
  for (const std::string& alias : model.aliases) {
    if (alias == "*" || alias == *name) return;
    known += fmt::format(", '{}'", alias);
  }
  fields.refuse(ApiError{ErrorCode::NotFound, fmt::format("model '{}' is not served here; served: {}", *name, known),
                         "model", "model_not_found"});
}

void read_sampling(RequestFields& fields, const ServedModel& model, std::int64_t fresh_seed, ReplySettings& settings) {
  const GenerationDefaults& defaults = model.defaults;
  DrawSettings& draw = settings.draw;
  const auto number = [&](std::string_view name, double low, double high, float silent) {
    return static_cast<float>(fields.number(name, low, high).value_or(silent));
  };
  draw.temperature = number("temperature", 0, 2, defaults.temperature);
  draw.top_p = number("top_p", 0, 1, defaults.top_p);
  draw.min_p = number("min_p", 0, 1, defaults.min_p);
  // -1 is another common spelling of "off".
  draw.top_k =
      static_cast<int>(std::max<std::int64_t>(0, fields.integer("top_k", -1, kMostTokens).value_or(defaults.top_k)));
  draw.presence_penalty = number("presence_penalty", -2, 2, 0);
  draw.frequency_penalty = number("frequency_penalty", -2, 2, 0);
  read_logit_bias(fields, model.vocab_size, draw);
  settings.seed =
      fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())
          .value_or(fresh_seed);
  draw.seed = static_cast<std::uint64_t>(settings.seed);
}

void read_drafts(RequestFields& fields, ReplySettings& settings) {
  const auto depth = fields.integer("draft_depth", 0, 1 << 20);
  if (depth) settings.max_draft_depth = static_cast<int>(*depth);
  if (!fields.boolean("draft").value_or(true)) settings.max_draft_depth = 0;
}

void read_cache(RequestFields& fields, ReplySettings& settings) {
  settings.use_prefix_cache = fields.boolean("cache").value_or(true);
}

void read_stop(RequestFields& fields, std::string_view name, ReplySettings& settings) {
  const json::Value* stop = fields.find(name);
  if (stop == nullptr) return;
  const auto add = [&](const json::Value& value) {
    if (!value.is_string()) return fields.refuse(name, fmt::format("{} must be a string or an array of strings", name));
    if (value.get_string().empty()) return fields.refuse(name, fmt::format("{}: a stop string is empty", name));
    settings.stop_strings.emplace_back(value.get_string());
  };
  if (!stop->is_array()) return add(*stop);
  const json::Array& stops = stop->get_array();
  if (stops.size() > kMaxStopStrings) {
    return fields.refuse(name, fmt::format("{} takes at most {} strings, not {}", name, kMaxStopStrings, stops.size()));
  }
  for (const json::Value& value : stops) add(value);
}

void read_stream_options(RequestFields& fields, ReplySettings& settings) {
  if (fields.boolean("stream").value_or(false)) settings.delivery = Delivery::Streamed;
  const json::Object* given = fields.object("stream_options");
  if (given == nullptr) return;
  if (settings.delivery != Delivery::Streamed) {
    return fields.refuse("stream_options", "stream_options is only allowed when stream is true");
  }
  RequestFields options(*given, "stream_options");
  settings.include_usage = options.boolean("include_usage").value_or(false);
  if (options.boolean("include_obfuscation").value_or(false)) {
    options.refuse("include_obfuscation", "stream_options.include_obfuscation is not supported",
                   ErrorCode::Unsupported);
  }
  options.refuse_unread();
  if (options.refusal()) fields.refuse(*options.refusal());
}

ApiResult<Request> to_request(const ReplySettings& settings, std::vector<std::int32_t> prompt_ids,
                              const ServedModel& model, std::string_view prompt_field) {
  const auto prompt_tokens = static_cast<std::int64_t>(prompt_ids.size());
  const std::string field(prompt_field);
  if (prompt_tokens == 0) return refusal({ErrorCode::InvalidArgument, "the prompt is empty", field, ""});
  const std::int64_t room = model.context_tokens - prompt_tokens;
  if (room < 1) {
    return refusal({ErrorCode::TooLong,
                    fmt::format("the prompt has {} tokens; with at least one for the reply it must fit the context of "
                                "{} tokens",
                                prompt_tokens, model.context_tokens),
                    field, ""});
  }
  if (settings.max_tokens && *settings.max_tokens > room) {
    return refusal(
        {ErrorCode::TooLong,
         fmt::format("the prompt has {} tokens and max_tokens asks for {} more: {} in all, but the context "
                     "is {} tokens",
                     prompt_tokens, *settings.max_tokens, prompt_tokens + *settings.max_tokens, model.context_tokens),
         "max_tokens", ""});
  }
  Request request;
  request.prompt_ids = std::move(prompt_ids);
  request.max_tokens = settings.max_tokens.value_or(static_cast<int>(std::min<std::int64_t>(model.max_tokens, room)));
  request.draw = settings.draw;
  if (!settings.ignore_eos) {
    request.end_ids.assign(model.defaults.end_tokens.begin(), model.defaults.end_tokens.end());
  }
  request.stop_strings = settings.stop_strings;
  request.max_draft_depth = settings.max_draft_depth;
  request.use_prefix_cache = settings.use_prefix_cache;
  request.num_top_logprobs = settings.num_top_logprobs;
  return request;
}

std::uint64_t choice_seed(std::int64_t seed, int choice) {
  const auto bits = static_cast<std::uint64_t>(seed);
  return choice == 0 ? bits : random_bits(bits, static_cast<std::uint64_t>(choice));
}

}  // namespace rondo
