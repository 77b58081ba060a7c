// The way out: events to OpenAI's JSON. Streamed and whole say the same.
#include "api/openai_reply.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/openai_models.h"

namespace rondo {
namespace {

// A text event that owns what it says.
struct Said {
  std::string text;
  std::vector<std::int32_t> ids;
  operator TextEvent() const {
    return {.text = text, .ids = ids, .logprobs = {}};
  }  // NOLINT(google-explicit-constructor)
};

ReplyFacts facts() {
  ReplyFacts facts;
  facts.id = "chatcmpl-1";
  facts.created = 1700000000;
  facts.model = "demo";
  facts.seed = 5;
  facts.arithmetic = "cpu/plain";
  facts.think_end_id = 99;
  return facts;
}

EndEvent ending(FinishReason reason) {
  EndEvent end;
  end.reason = reason;
  end.token_sha = "abc";
  end.usage = Usage{10, 6, 2, 4, 3, 1};
  return end;
}

// The JSON documents of a run of server-sent events; "[DONE]" must be the last and comes out as null.
std::vector<json::Value> documents_of(const std::string& events) {
  std::vector<json::Value> out;
  std::size_t begin = 0;
  while (begin < events.size()) {
    const std::size_t end = events.find("\n\n", begin);
    EXPECT_NE(end, std::string::npos);
    if (end == std::string::npos) break;
    const std::string event = events.substr(begin, end - begin);
    EXPECT_EQ(event.find('\n'), std::string::npos) << "an event is one line";
    EXPECT_TRUE(event.starts_with("data: "));
    const std::string payload = event.substr(6);
    out.push_back(payload == "[DONE]" ? json::Value(nullptr) : *parse_json(payload));
    begin = end + 2;
  }
  return out;
}

std::string delta_text(const std::vector<json::Value>& documents, std::string_view key) {
  std::string out;
  for (const json::Value& document : documents) {
    if (!document.is_object()) continue;
    for (const json::Value& choice : document.at("choices").as_array()) {
      const json::Value* text = choice.at("delta").as_object().if_contains(key);
      if (text != nullptr) out += std::string(text->as_string());
    }
  }
  return out;
}

TEST(WholeReply, IsAChatCompletion) {
  WholeReply reply(facts());
  reply.push(Said{"Hel", {1}});
  reply.push(Said{"lo", {2}});
  EXPECT_EQ(
      reply.finish(ending(FinishReason::Stop)),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"demo","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":10,"completion_tokens":6,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":2},)"
      R"("completion_tokens_details":{"accepted_prediction_tokens":1,"rejected_prediction_tokens":2,"reasoning_tokens":0}},)"
      R"("rondo":{"token_sha":"abc","rounds":4,"drafted":3,"accepted":1,"seed":5,"arithmetic":"cpu/plain"}})");
}

TEST(WholeReply, SetsReasoningApartAndCountsIt) {
  ReplyFacts thinking = facts();
  thinking.thinking = true;
  WholeReply reply(thinking);
  reply.push(Said{"hm", {1, 2}});
  reply.push(Said{"\n</think>\n\nyes", {3, 99, 4, 5}});
  const json::Value body = *parse_json(reply.finish(ending(FinishReason::Stop)));
  const json::Value& message = body.at("choices").as_array()[0].at("message");
  EXPECT_EQ(message.at("content").as_string(), "yes");
  EXPECT_EQ(message.at("reasoning_content").as_string(), "hm");
  EXPECT_EQ(body.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64(), 4);
}

TEST(WholeReply, AThoughtCutByLengthStaysReasoning) {
  ReplyFacts thinking = facts();
  thinking.thinking = true;
  WholeReply reply(thinking);
  reply.push(Said{"still thinking", {1, 2}});
  const json::Value body = *parse_json(reply.finish(ending(FinishReason::Length)));
  const json::Value& choice = body.at("choices").as_array()[0];
  EXPECT_EQ(choice.at("message").at("content").as_string(), "");
  EXPECT_EQ(choice.at("message").at("reasoning_content").as_string(), "still thinking");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "length");
}

TEST(StreamedReply, BeginsWithTheRoleAndEndsWithDone) {
  StreamedReply reply(facts());
  std::string events = reply.begin();
  events += reply.push(Said{"Hel", {1}});
  events += reply.push(Said{"", {2}});
  events += reply.push(Said{"lo", {3}});
  events += reply.finish(ending(FinishReason::Length));
  const std::vector<json::Value> documents = documents_of(events);
  ASSERT_EQ(documents.size(), 5U);  // role, two texts, the end, DONE
  EXPECT_EQ(documents[0].at("choices").as_array()[0].at("delta").at("role").as_string(), "assistant");
  EXPECT_EQ(documents[0].at("object").as_string(), "chat.completion.chunk");
  EXPECT_EQ(delta_text(documents, "content"), "Hello");
  EXPECT_EQ(documents[3].at("choices").as_array()[0].at("finish_reason").as_string(), "length");
  EXPECT_EQ(documents[3].at("rondo").at("seed").as_int64(), 5);
  EXPECT_EQ(documents[3].as_object().if_contains("usage"), nullptr);
  EXPECT_TRUE(documents[4].is_null());
}

TEST(StreamedReply, CarriesUsageInAnEventWithoutChoicesWhenAsked) {
  ReplyFacts asked = facts();
  asked.include_usage = true;
  StreamedReply reply(asked);
  const std::vector<json::Value> documents = documents_of(reply.begin() + reply.finish(ending(FinishReason::Stop)));
  ASSERT_EQ(documents.size(), 4U);
  EXPECT_TRUE(documents[0].at("usage").is_null());
  EXPECT_TRUE(documents[1].at("usage").is_null());
  EXPECT_TRUE(documents[2].at("choices").as_array().empty());
  EXPECT_EQ(documents[2].at("usage").at("total_tokens").as_int64(), 16);
  EXPECT_EQ(documents[2].at("rondo").at("token_sha").as_string(), "abc");
}

TEST(StreamedReply, SaysWhatTheWholeReplySays) {
  const std::string text = "<think>\nwas 日本?\n</think>\n\nJa — \U0001F600.\n";
  WholeReply whole(facts());
  whole.push(Said{text, {1}});
  const json::Value body = *parse_json(whole.finish(ending(FinishReason::Stop)));
  const json::Value& message = body.at("choices").as_array()[0].at("message");
  StreamedReply streamed(facts());
  std::string events = streamed.begin();
  for (std::size_t i = 0; i < text.size();) {
    std::size_t n = 1;  // one code point at a time, as a detokeniser gives them
    while (i + n < text.size() && (static_cast<unsigned char>(text[i + n]) & 0xC0U) == 0x80U) ++n;
    events += streamed.push(Said{text.substr(i, n), {1}});
    i += n;
  }
  events += streamed.finish(ending(FinishReason::Stop));
  const std::vector<json::Value> documents = documents_of(events);
  EXPECT_EQ(delta_text(documents, "content"), std::string(message.at("content").as_string()));
  EXPECT_EQ(delta_text(documents, "reasoning_content"), std::string(message.at("reasoning_content").as_string()));
  EXPECT_EQ(delta_text(documents, "reasoning_content"), "was 日本?");
}

TEST(StreamedReply, SendsWhatTheEndStillHeldBack) {
  StreamedReply reply(facts());
  std::string events = reply.push(Said{"a <", {1}});
  EndEvent end = ending(FinishReason::Stop);
  end.text = "b";
  events += reply.finish(end);
  EXPECT_EQ(delta_text(documents_of(events), "content"), "a <b");
}

TEST(StreamedReply, AFailureIsAnErrorEvent) {
  const std::vector<json::Value> documents =
      documents_of(StreamedReply::fail({ErrorCode::Unavailable, "the server is stopping", "", ""}));
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].at("error").at("message").as_string(), "the server is stopping");
  EXPECT_TRUE(documents[1].is_null());
}

TEST(Models, CarryTheWindow) {
  ServedModel model;
  model.name = "demo";
  model.aliases = {"x", "*"};
  model.context_tokens = 4096;
  EXPECT_EQ(
      render_models(model),
      R"({"object":"list","data":[{"id":"demo","object":"model","created":0,"owned_by":"rondo","max_model_len":4096},)"
      R"({"id":"x","object":"model","created":0,"owned_by":"rondo","max_model_len":4096}]})");
}

TEST(Health, IsAHeartbeat) {
  EngineStatus status;
  status.heartbeat_age_ms = 900;
  EXPECT_EQ(render_health(status, 1000).status, 200);
  status.heartbeat_age_ms = 1100;
  EXPECT_EQ(render_health(status, 1000).status, 503);
  status.heartbeat_age_ms = 0;
  status.stopped = true;
  EXPECT_EQ(render_health(status, 1000).status, 503);
}

}  // namespace
}  // namespace rondo
