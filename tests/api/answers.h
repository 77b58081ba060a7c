// What the tests of the APIs share: a served model, requests taken or refused, and a reply's end, rows and events.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/error.h"
#include "api/served_model.h"
#include "base/json.h"
#include "engine/request.h"
#include "text/utf8.h"

namespace rondo {

inline ServedModel served_demo() {
  ServedModel model;
  model.name = "demo";
  model.vocab_size = 256;
  model.context_tokens = 100;
  model.max_tokens = 40;
  model.arithmetic = "fake";
  model.defaults = {0.7F, 0.95F, 20, 0.0F, {7}};
  return model;
}

// One that can think and call tools.
inline ServedModel served_thinker(std::int32_t think_end_id) {
  ServedModel model = served_demo();
  model.think_end_id = think_end_id;
  model.think_closing = {think_end_id};
  model.reads_tools = model.reads_enable_thinking = true;
  return model;
}

// What came of `given`, which must not be refused.
template <class T>
T taken(ApiResult<T> result, const std::string& given) {
  if (result) return *std::move(result);
  ADD_FAILURE() << given << " was refused: " << result.error().message;
  return {};
}

// What `given` is refused for, which must not be taken.
template <class T>
ApiError refused(const ApiResult<T>& result, const std::string& given) {
  if (!result) return result.error();
  ADD_FAILURE() << given << " was taken";
  return {};
}

struct RefusedCase {
  std::string given;
  std::string param;
};

// The field is named, and its last name stands in the message.
inline void expect_refusal(const ApiError& error, const RefusedCase& c) {
  EXPECT_EQ(error.param, c.param) << c.given << ": " << error.message;
  EXPECT_EQ(http_status(error.code), c.param == "model" ? 404 : 400) << c.given;
  EXPECT_NE(error.message.find(c.param.substr(c.param.rfind('.') + 1)), std::string::npos) << error.message;
}

inline EndEvent end_with(FinishReason reason, Usage usage, std::string text = "") {
  EndEvent end;
  end.reason = reason;
  end.text = std::move(text);
  end.token_sha = "sha";
  end.usage = usage;
  return end;
}

inline RowLogprobs row(float chosen, const std::vector<std::pair<std::int32_t, float>>& top) {
  RowLogprobs out;
  out.chosen = chosen;
  out.num_top = static_cast<int>(top.size());
  for (std::size_t i = 0; i < top.size(); ++i) {
    out.top_ids[i] = top[i].first;
    out.top[i] = top[i].second;
  }
  return out;
}

// A stream's events, each UTF-8 by itself.
inline std::vector<std::string> events_in(std::string_view stream) {
  std::vector<std::string> events;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos);
    if (end == std::string_view::npos) break;
    events.emplace_back(stream.substr(0, end));
    EXPECT_TRUE(is_utf8(events.back()));
    stream.remove_prefix(end + 2);
  }
  return events;
}

// The documents of OpenAI's events, which are one line each; "[DONE]" must be the last, and is left out.
inline std::vector<json::Value> documents_of(std::string_view stream) {
  std::vector<std::string> events = events_in(stream);
  EXPECT_TRUE(!events.empty() && events.back() == "data: [DONE]");
  if (!events.empty()) events.pop_back();
  std::vector<json::Value> documents;
  for (const std::string& event : events) {
    EXPECT_TRUE(event.starts_with("data: ") && event.find('\n') == std::string::npos) << event;
    documents.push_back(*parse_json(event.substr(6)));
  }
  return documents;
}

// Where a reply begins: in the answer, or inside a thought that the prompt opened.
enum class Begins { Plain, Thinking };

// The pieces of `text` that end at each of `cuts`, and what is left.
inline std::vector<std::string_view> pieces_of(std::string_view text, const std::vector<std::size_t>& cuts) {
  std::vector<std::string_view> pieces;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    pieces.push_back(text.substr(begin, cut - begin));
    begin = cut;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

}  // namespace rondo
