// A chat over the wire: whole, streamed, refused, failing half way.
#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

class Chat : public ServerTest {};

TEST_F(Chat, AWholeReplyIsOneObject) {
  start();
  RawClient client(port);
  client.send(post_chat(R"({"messages":[{"role":"user","content":"hello"}],"max_tokens":7,"seed":3})"));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->request.prompt_ids.size(), 5U);
  EXPECT_EQ(request->request.max_tokens, 7);
  EXPECT_EQ(request->request.draw.seed, 3U);
  say(*request->sink, "Hi", {1});
  say(*request->sink, " there", {2});
  runner.end(*request, FinishReason::Stop);
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  const json::Value body = *parse_json(reply->body);
  EXPECT_EQ(body.at("choices").as_array()[0].at("message").at("content").as_string(), "Hi there");
  EXPECT_EQ(body.at("rondo").at("seed").as_int64(), 3);
  EXPECT_EQ(body.at("rondo").at("arithmetic").as_string(), "fake");
}

TEST_F(Chat, AStreamShowsEachTextBeforeTheNextIsMade) {
  start();
  RawClient client(port);
  client.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  say(*request->sink, "first", {1});
  EXPECT_TRUE(client.read_until("first"));
  say(*request->sink, "second", {2});
  EXPECT_TRUE(client.read_until("second"));
  runner.end(*request, FinishReason::Length);
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->headers.at("content-type"), "text/event-stream");
  EXPECT_TRUE(reply->body.ends_with("data: [DONE]\n\n"));
  EXPECT_NE(reply->body.find(R"("finish_reason":"length")"), std::string::npos);
}

TEST_F(Chat, AStreamLeavesTheConnectionOpenForTheNextRequest) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  for (int i = 0; i < 3; ++i) {
    client.send(post_chat(i == 1 ? kHello : kHelloStreamed));
    const auto reply = client.read_reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_NE(reply->body.find("hi"), std::string::npos);
  }
}

TEST_F(Chat, AnOldClientGetsAStreamThatEndsWithTheConnection) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(std::string_view(kHelloStreamed).size()) + "\r\n\r\n" + kHelloStreamed);
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->headers.contains("transfer-encoding"));
  EXPECT_TRUE(reply->body.starts_with("data: {"));
  EXPECT_TRUE(reply->body.ends_with("data: [DONE]\n\n"));
}

TEST_F(Chat, AFullQueueSaysWhenToComeBack) {
  start();
  runner.refuse_with(ErrorCode::QueueFull);
  for (const char* body : {kHello, kHelloStreamed}) {
    const RawReply reply = ask(post_chat(body));
    EXPECT_EQ(reply.status, 429);
    EXPECT_TRUE(reply.headers.contains("retry-after"));
    EXPECT_NE(reply.body.find(R"("code":"queue_full")"), std::string::npos);
  }
}

TEST_F(Chat, TheEnginesRefusalKeepsItsStatus) {
  start();
  runner.refuse_with(ErrorCode::TooLong);
  EXPECT_EQ(ask(post_chat(kHello)).status, 400);
}

TEST_F(Chat, AFailureBeforeTheReplyIsAStatusAndDuringAStreamAnEvent) {
  start();
  RawClient whole(port);
  whole.send(post_chat(kHello));
  ASSERT_TRUE(runner.wait_for_request());
  runner.fail_all({ErrorCode::Unavailable, "the engine has stopped"});
  EXPECT_EQ(whole.read_reply().value_or(RawReply{}).status, 503);

  RawClient streamed(port);
  streamed.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  say(*request->sink, "so far", {1});
  runner.fail_all({ErrorCode::Unavailable, "the engine has stopped"});
  const auto reply = streamed.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_NE(reply->body.find("so far"), std::string::npos);
  EXPECT_NE(reply->body.find(R"(data: {"error":{"message":"the engine has stopped")"), std::string::npos);
}

TEST_F(Chat, ATemplateThatRaisesIsABadRequestInItsWords) {
  start();
  const RawReply reply = ask(post_chat(R"({"messages":[{"role":"user","content":"RAISE"}]})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("the template says no"), std::string::npos);
}

TEST_F(Chat, AWorkersExceptionEndsOneRequestAndNoOther) {
  start();
  RawClient other(port);
  other.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  const RawReply reply = ask(post_chat(R"({"messages":[{"role":"user","content":"THROW"}]})"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("could not prepare this request"), std::string::npos);
  say(*request->sink, "fine", {1});
  runner.end(*request, FinishReason::Stop);
  EXPECT_EQ(other.read_reply().value_or(RawReply{}).status, 200);
}

TEST_F(Chat, APromptThatCannotFitNamesBothNumbers) {
  start();
  const RawReply reply =
      ask(post_chat(R"({"messages":[{"role":"user","content":")" + std::string(5000, 'x') + R"("}]})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("5000"), std::string::npos);
  EXPECT_NE(reply.body.find("4096"), std::string::npos);
  EXPECT_NE(reply.body.find("context_length_exceeded"), std::string::npos);
}

TEST_F(Chat, AThinkingPromptBeginsAsReasoning) {
  prompts.thinking = true;
  start();
  runner.answer_at_once("hm</think>yes");
  const RawReply reply = ask(post_chat(kHello));
  EXPECT_NE(reply.body.find(R"("content":"yes")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("reasoning_content":"hm")"), std::string::npos);
}

TEST_F(Chat, ASilentStreamGetsComments) {
  options.comment_every = std::chrono::milliseconds(1);
  start();
  RawClient client(port);
  client.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  EXPECT_TRUE(client.read_until(": still here\n\n"));
  runner.end(*request, FinishReason::Stop);
  EXPECT_TRUE(client.read_until("[DONE]"));
}

TEST_F(Chat, EachSilentRequestDrawsItsOwnSeedOf53Bits) {
  start();
  runner.answer_at_once("x");
  const json::Value first = *parse_json(ask(post_chat(kHello)).body);
  const json::Value second = *parse_json(ask(post_chat(kHello)).body);
  EXPECT_NE(first.at("rondo").at("seed"), second.at("rondo").at("seed"));
  EXPECT_LT(first.at("rondo").at("seed").as_int64(), std::int64_t{1} << 53);
  EXPECT_NE(first.at("id"), second.at("id"));
}

}  // namespace
}  // namespace rondo
