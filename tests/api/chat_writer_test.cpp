// The way out: events to OpenAI's JSON. Streamed and whole say the same.
#include "api/chat_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/answers.h"
#include "tests/api/fake_prompts.h"

namespace rondo {
namespace {

// A text event that owns what it says.
struct Said {
  std::string text;
  std::vector<std::int32_t> ids;
  std::vector<RowLogprobs> logprobs = {};
  operator TextEvent() const {
    return {.text = text, .ids = ids, .logprobs = logprobs};
  }  // NOLINT(google-explicit-constructor)
};

const FakePrompts kPrompts;

ChatFacts facts() {
  ChatFacts facts;
  facts.id = "1";
  facts.prompts = &kPrompts;
  facts.created = 1700000000;
  facts.model = "demo";
  facts.seed = 5;
  facts.arithmetic = "cpu/plain";
  facts.think_end_id = 99;
  return facts;
}

EndEvent ending(FinishReason reason) { return end_with(reason, Usage{10, 6, 2, 4, 3, 1}); }

std::string delta_text(const std::vector<json::Value>& documents, std::string_view key) {
  std::string out;
  for (const json::Value& document : documents) {
    for (const json::Value& choice : document.at("choices").as_array()) {
      const json::Value* text = choice.at("delta").as_object().if_contains(key);
      if (text != nullptr) out += std::string(text->as_string());
    }
  }
  return out;
}

TEST(WholeChat, IsAChatCompletion) {
  const auto reply = make_chat_writer(facts(), Delivery::Whole);
  reply->push(0, Said{"Hel", {1}});
  reply->push(0, Said{"lo", {2}});
  EXPECT_EQ(
      reply->finish(0, ending(FinishReason::Stop)),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"demo","choices":[{"index":0,)"
      R"("message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}],)"
      R"("usage":{"prompt_tokens":10,"completion_tokens":6,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":2},)"
      R"("completion_tokens_details":{"accepted_prediction_tokens":1,"rejected_prediction_tokens":2,"reasoning_tokens":0}},)"
      R"("rondo":{"token_sha":"sha","rounds":4,"drafted":3,"accepted":1,"seed":5,"arithmetic":"cpu/plain"}})");
}

TEST(WholeChat, SetsReasoningApartAndCountsIt) {
  ChatFacts thinking = facts();
  thinking.thinking = true;
  const auto reply = make_chat_writer(thinking, Delivery::Whole);
  reply->push(0, Said{"hm", {1, 2}});
  reply->push(0, Said{"\n</think>\n\nyes", {3, 99, 4, 5}});
  const json::Value body = *parse_json(reply->finish(0, ending(FinishReason::Stop)));
  const json::Value& message = body.at("choices").as_array()[0].at("message");
  EXPECT_EQ(message.at("content").as_string(), "yes");
  EXPECT_EQ(message.at("reasoning_content").as_string(), "hm");
  EXPECT_EQ(body.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64(), 4);
}

TEST(WholeChat, AThoughtCutByLengthStaysReasoning) {
  ChatFacts thinking = facts();
  thinking.thinking = true;
  const auto reply = make_chat_writer(thinking, Delivery::Whole);
  reply->push(0, Said{"still thinking", {1, 2}});
  const json::Value body = *parse_json(reply->finish(0, ending(FinishReason::Length)));
  const json::Value& choice = body.at("choices").as_array()[0];
  EXPECT_EQ(choice.at("message").at("content").as_string(), "");
  EXPECT_EQ(choice.at("message").at("reasoning_content").as_string(), "still thinking");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "length");
}

TEST(StreamedChat, BeginsWithTheRoleAndEndsWithDone) {
  const auto reply = make_chat_writer(facts(), Delivery::Streamed);
  std::string events = reply->begin();
  events += reply->push(0, Said{"Hel", {1}});
  events += reply->push(0, Said{"", {2}});
  events += reply->push(0, Said{"lo", {3}});
  events += reply->finish(0, ending(FinishReason::Length));
  const std::vector<json::Value> documents = documents_of(events);
  ASSERT_EQ(documents.size(), 4U);  // role, two texts, the end
  EXPECT_EQ(documents[0].at("choices").as_array()[0].at("delta").at("role").as_string(), "assistant");
  EXPECT_EQ(documents[0].at("object").as_string(), "chat.completion.chunk");
  EXPECT_EQ(delta_text(documents, "content"), "Hello");
  EXPECT_EQ(documents[3].at("choices").as_array()[0].at("finish_reason").as_string(), "length");
  EXPECT_EQ(documents[3].at("rondo").at("seed").as_int64(), 5);
  EXPECT_EQ(documents[3].as_object().if_contains("usage"), nullptr);
}

TEST(StreamedChat, CarriesUsageInAnEventWithoutChoicesWhenAsked) {
  ChatFacts asked = facts();
  asked.include_usage = true;
  const auto reply = make_chat_writer(asked, Delivery::Streamed);
  const std::vector<json::Value> documents =
      documents_of(reply->begin() + reply->finish(0, ending(FinishReason::Stop)));
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_TRUE(documents[0].at("usage").is_null());
  EXPECT_TRUE(documents[1].at("usage").is_null());
  EXPECT_TRUE(documents[2].at("choices").as_array().empty());
  EXPECT_EQ(documents[2].at("usage").at("total_tokens").as_int64(), 16);
  EXPECT_EQ(documents[2].at("rondo").at("token_sha").as_string(), "sha");
}

TEST(StreamedChat, SaysWhatTheWholeReplySays) {
  const std::string text = "<think>\nwas 日本?\n</think>\n\nJa — \U0001F600.\n";
  const auto whole = make_chat_writer(facts(), Delivery::Whole);
  whole->push(0, Said{text, {1}});
  const json::Value body = *parse_json(whole->finish(0, ending(FinishReason::Stop)));
  const json::Value& message = body.at("choices").as_array()[0].at("message");
  const auto streamed = make_chat_writer(facts(), Delivery::Streamed);
  std::string events = streamed->begin();
  for (std::size_t i = 0; i < text.size();) {
    std::size_t n = 1;  // one code point at a time, as a detokeniser gives them
    while (i + n < text.size() && (static_cast<unsigned char>(text[i + n]) & 0xC0U) == 0x80U) ++n;
    events += streamed->push(0, Said{text.substr(i, n), {1}});
    i += n;
  }
  events += streamed->finish(0, ending(FinishReason::Stop));
  const std::vector<json::Value> documents = documents_of(events);
  EXPECT_EQ(delta_text(documents, "content"), std::string(message.at("content").as_string()));
  EXPECT_EQ(delta_text(documents, "reasoning_content"), std::string(message.at("reasoning_content").as_string()));
  EXPECT_EQ(delta_text(documents, "reasoning_content"), "was 日本?");
}

TEST(StreamedChat, SendsWhatTheEndStillHeldBack) {
  const auto reply = make_chat_writer(facts(), Delivery::Streamed);
  std::string events = reply->push(0, Said{"a <", {1}});
  EndEvent end = ending(FinishReason::Stop);
  end.text = "b";
  events += reply->finish(0, end);
  EXPECT_EQ(delta_text(documents_of(events), "content"), "a <b");
}

TEST(StreamedChat, AFailureIsAnErrorEvent) {
  const std::vector<json::Value> documents = documents_of(
      make_chat_writer(facts(), Delivery::Streamed)->fail({ErrorCode::Unavailable, "the server is stopping", "", ""}));
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].at("error").at("message").as_string(), "the server is stopping");
}

// --- tools ---

std::shared_ptr<const std::vector<Tool>> two_tools() {
  return std::make_shared<const std::vector<Tool>>(
      std::vector<Tool>{{"add", parse_json(R"({"properties":{"a":{"type":"integer"}}})")->as_object()}, {"now", {}}});
}

const char* const kTwoCalls =
    "I'll add.\n<tool_call>\n<function=add>\n<parameter=a>\n5\n</parameter>\n</function>\n</tool_call>\n"
    "<tool_call>\n<function=now>\n</function>\n</tool_call>";

ChatFacts with_tools() {
  ChatFacts out = facts();
  out.tools = two_tools();
  return out;
}

TEST(WholeChat, GivesToolCallsWithTheirArguments) {
  const auto reply = make_chat_writer(with_tools(), Delivery::Whole);
  reply->push(0, Said{kTwoCalls, {1}});
  const json::Value body = *parse_json(reply->finish(0, ending(FinishReason::Stop)));
  const json::Value& choice = body.at("choices").as_array()[0];
  EXPECT_EQ(to_json(choice.at("message")),
            R"({"role":"assistant","content":"I'll add.","refusal":null,"tool_calls":[)"
            R"({"id":"call_1_0_0","type":"function","function":{"name":"add","arguments":"{\"a\":5}"}},)"
            R"({"id":"call_1_0_1","type":"function","function":{"name":"now","arguments":"{}"}}]})");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "tool_calls");
}

TEST(WholeChat, OfCallsAloneHasNullForContent) {
  const auto reply = make_chat_writer(with_tools(), Delivery::Whole);
  reply->push(0, Said{"\n<tool_call>\n<function=now>\n</function>\n</tool_call>", {1}});
  const json::Value body = *parse_json(reply->finish(0, ending(FinishReason::Stop)));
  EXPECT_TRUE(body.at("choices").as_array()[0].at("message").at("content").is_null());
}

TEST(WholeChat, ACutCallEndsForLengthAndItsArgumentsAreNoJson) {
  for (const FinishReason reason : {FinishReason::Length, FinishReason::Stop}) {
    const auto reply = make_chat_writer(with_tools(), Delivery::Whole);
    reply->push(0, Said{"<tool_call>\n<function=now>\n<parameter=path>\n/ho", {1}});
    const json::Value body = *parse_json(reply->finish(0, ending(reason)));
    const json::Value& choice = body.at("choices").as_array()[0];
    EXPECT_EQ(choice.at("finish_reason").as_string(), reason == FinishReason::Length ? "length" : "stop");
    const auto& function = choice.at("message").at("tool_calls").as_array()[0].at("function");
    EXPECT_FALSE(parse_json(function.at("arguments").as_string()).has_value());
  }
}

TEST(StreamedChat, SendsACallsNameFirstAndThenItsArguments) {
  const auto reply = make_chat_writer(with_tools(), Delivery::Streamed);
  std::string events = reply->begin();
  for (const char* text = kTwoCalls; *text != 0; ++text) events += reply->push(0, Said{std::string(1, *text), {1}});
  events += reply->finish(0, ending(FinishReason::Stop));
  std::vector<std::string> names(2), arguments(2), ids(2);
  std::string finish_reason;
  for (const json::Value& document : documents_of(events)) {
    for (const json::Value& choice : document.at("choices").as_array()) {
      if (choice.at("finish_reason").is_string()) finish_reason = choice.at("finish_reason").as_string();
      const json::Value* calls = choice.at("delta").as_object().if_contains("tool_calls");
      if (calls == nullptr) continue;
      const json::Value& call = calls->as_array()[0];
      const auto index = static_cast<std::size_t>(call.at("index").as_int64());
      const json::Value& function = call.at("function");
      if (const json::Value* name = function.as_object().if_contains("name")) {
        EXPECT_TRUE(arguments[index].empty());
        names[index] = name->as_string();
        ids[index] = call.at("id").as_string();
      }
      arguments[index] += function.at("arguments").as_string();
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"add", "now"}));
  EXPECT_EQ(arguments, (std::vector<std::string>{R"({"a":5})", "{}"}));
  EXPECT_EQ(ids, (std::vector<std::string>{"call_1_0_0", "call_1_0_1"}));
  EXPECT_EQ(finish_reason, "tool_calls");
  EXPECT_EQ(delta_text(documents_of(events), "content"), "I'll add.");
}

// --- logprobs ---

ChatFacts with_logprobs() {
  ChatFacts out = facts();
  out.has_logprobs = true;
  return out;
}

TEST(WholeChat, NamesEveryTokenWithItsLogprobAndBytes) {
  const auto reply = make_chat_writer(with_logprobs(), Delivery::Whole);
  reply->push(
      0, Said{"A", {65, 0xE2}, {row(-0.5F, {{66, -1.5F}}), row(-std::numeric_limits<float>::infinity(), {{65, 0}})}});
  const json::Value body = *parse_json(reply->finish(0, ending(FinishReason::Stop)));
  EXPECT_EQ(
      to_json(body.at("choices").as_array()[0].at("logprobs")),
      R"({"content":[{"token":"A","logprob":-0.5,"bytes":[65],"top_logprobs":[{"token":"B","logprob":-1.5,"bytes":[66]}]},)"
      R"({"token":"bytes:\\xe2","logprob":-9999.0,"bytes":[226],"top_logprobs":[{"token":"A","logprob":0.0,"bytes":[65]}]}],)"
      R"("refusal":null})");
}

TEST(StreamedChat, SendsEveryLogprobOnceAlsoOfTokensWithoutText) {
  const auto reply = make_chat_writer(with_logprobs(), Delivery::Streamed);
  std::string events = reply->begin();
  events += reply->push(0, Said{"", {65}, {row(-1, {{65, -1}})}});
  events += reply->push(0, Said{"ab", {66, 67}, {row(-2, {{65, -1}}), row(-3, {{65, -1}})}});
  events += reply->push(0, Said{"", {68}, {row(-4, {{65, -1}})}});
  events += reply->finish(0, ending(FinishReason::Stop));
  std::vector<double> logprobs;
  for (const json::Value& document : documents_of(events)) {
    const json::Value& found = document.at("choices").as_array()[0].at("logprobs");
    if (found.is_null()) continue;
    for (const json::Value& token : found.at("content").as_array())
      logprobs.push_back(token.at("logprob").to_number<double>());
  }
  EXPECT_EQ(logprobs, (std::vector<double>{-1, -2, -3, -4}));
}

// --- several choices ---

ChatFacts with_choices(int num_choices) {
  ChatFacts out = facts();
  out.num_choices = num_choices;
  return out;
}

TEST(WholeChat, OfSeveralChoicesIsReadyWithTheLastAndAddsThemUp) {
  const auto reply = make_chat_writer(with_choices(2), Delivery::Whole);
  reply->push(1, Said{"one", {1}});
  EXPECT_EQ(reply->finish(1, ending(FinishReason::Length)), "");
  reply->push(0, Said{"zero", {1}});
  const json::Value body = *parse_json(reply->finish(0, ending(FinishReason::Stop)));
  const json::Array& choices = body.at("choices").as_array();
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].at("message").at("content").as_string(), "zero");
  EXPECT_EQ(choices[1].at("index").as_int64(), 1);
  EXPECT_EQ(choices[1].at("message").at("content").as_string(), "one");
  EXPECT_EQ(choices[1].at("finish_reason").as_string(), "length");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").as_int64(), 10);
  EXPECT_EQ(body.at("usage").at("completion_tokens").as_int64(), 12);
  EXPECT_EQ(body.at("rondo").at("token_shas").as_array().size(), 2U);
}

TEST(StreamedChat, OfSeveralChoicesNamesTheirIndexAndIsDoneOnce) {
  const auto reply = make_chat_writer(with_choices(2), Delivery::Streamed);
  std::string events = reply->begin();
  events += reply->push(1, Said{"b", {1}});
  events += reply->push(0, Said{"a", {1}});
  events += reply->finish(0, ending(FinishReason::Stop));
  events += reply->push(1, Said{"c", {1}});
  events += reply->finish(1, ending(FinishReason::Stop));
  std::vector<std::string> texts(2);
  int num_roles = 0;
  for (const json::Value& document : documents_of(events)) {
    const json::Value& choice = document.at("choices").as_array()[0];
    const json::Object& delta = choice.at("delta").as_object();
    if (delta.contains("role")) ++num_roles;
    if (const json::Value* text = delta.if_contains("content"))
      texts[static_cast<std::size_t>(choice.at("index").as_int64())] += text->as_string();
  }
  EXPECT_EQ(num_roles, 2);
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(events.find("[DONE]"), events.rfind("[DONE]"));
}

}  // namespace
}  // namespace rondo
