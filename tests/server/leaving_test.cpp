// GoneClient and SlowClient: who goes away ends the request, who does not read is cut off; and stopping in good order.
#include <gtest/gtest.h>

#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

class Leaving : public ServerTest {};

enum class Exit { Close, Reset, HalfClose };

void leave(RawClient& client, Exit exit) {
  if (exit == Exit::Close) client.leave();
  if (exit == Exit::Reset) client.leave_with_reset();
  if (exit == Exit::HalfClose) client.shut_sending_side();
}

TEST_F(Leaving, AClientThatGoesAwayCancelsItsRequestWhereverItIs) {
  start();
  for (const char* body : {kHello, kHelloStreamed}) {
    for (const Exit exit : {Exit::Close, Exit::Reset, Exit::HalfClose}) {
      for (const bool had_text : {false, true}) {
        RawClient client(port);
        client.send(post_chat(body));
        const auto request = runner.wait_for_request();
        ASSERT_TRUE(request);
        if (had_text) say(*request->sink, "so far", {1});
        leave(client, exit);
        EXPECT_TRUE(runner.wait_for_cancel(request->id))
            << body << " exit " << static_cast<int>(exit) << " had_text " << had_text;
      }
    }
  }
  expect_serving();
}

TEST_F(Leaving, AClientThatSentItsNextRequestAheadIsStillSeenLeaving) {
  start();
  RawClient client(port);
  client.send(post_chat(kHello) + get("/health"));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  client.leave();
  EXPECT_TRUE(runner.wait_for_cancel(request->id));
}

TEST_F(Leaving, OneWhoLeavesDoesNotDisturbAnother) {
  start();
  RawClient stays(port);
  stays.send(post_chat(kHello));
  const auto kept = runner.wait_for_request();
  ASSERT_TRUE(kept);
  RawClient leaves(port);
  leaves.send(post_chat(kHello));
  const auto dropped = runner.wait_for_request();
  ASSERT_TRUE(dropped);
  leaves.leave();
  EXPECT_TRUE(runner.wait_for_cancel(dropped->id));
  EXPECT_FALSE(runner.is_cancelled(kept->id));
  say(*kept->sink, "fine", {1});
  runner.end(*kept, FinishReason::Stop);
  EXPECT_EQ(stays.read_reply().value_or(RawReply{}).status, 200);
}

TEST_F(Leaving, AFinishedRequestIsNotCancelled) {
  start();
  RawClient client(port);
  client.send(post_chat(kHello));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  runner.end(*request, FinishReason::Stop);
  ASSERT_TRUE(client.read_reply());
  client.leave();
  stop();
  EXPECT_FALSE(runner.is_cancelled(request->id));
}

TEST_F(Leaving, ASlowReaderIsCutOff) {
  options.max_unsent_bytes = 256 << 10;
  start();
  RawClient client(port, 4096);
  client.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  const std::string text(16 << 10, 'x');
  while (!runner.is_cancelled(request->id)) say(*request->sink, text, {1});
  EXPECT_TRUE(client.read_to_end());
  EXPECT_EQ(client.unread().find("[DONE]"), std::string::npos);
  expect_serving();
}

TEST_F(Leaving, AReaderStuckInAWriteIsCutOffInTheEnd) {
  options.write_timeout = std::chrono::milliseconds(50);
  options.max_unsent_bytes = 64 << 20;
  start();
  RawClient client(port, 4096);
  client.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  say(*request->sink, std::string(8 << 20, 'x'), {1});
  EXPECT_TRUE(runner.wait_for_cancel(request->id));
}

TEST_F(Leaving, AStopLetsARunningReplyEnd) {
  start();
  RawClient client(port);
  client.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  server->stop();
  say(*request->sink, "to the end", {1});
  runner.end(*request, FinishReason::Stop);
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_NE(reply->body.find("to the end"), std::string::npos);
  EXPECT_TRUE(reply->body.ends_with("data: [DONE]\n\n"));
  thread.join();
  EXPECT_FALSE(RawClient(port).is_connected());
}

TEST_F(Leaving, AStopEndsWhatTakesTooLongInWords) {
  options.drain_timeout = std::chrono::milliseconds(1);
  start();
  RawClient streamed(port);
  streamed.send(post_chat(kHelloStreamed));
  ASSERT_TRUE(runner.wait_for_request());
  RawClient whole(port);
  whole.send(post_chat(kHello));
  ASSERT_TRUE(runner.wait_for_request());
  server->stop();
  const auto streamed_reply = streamed.read_reply();
  ASSERT_TRUE(streamed_reply);
  EXPECT_NE(streamed_reply->body.find("the server is stopping"), std::string::npos);
  EXPECT_EQ(whole.read_reply().value_or(RawReply{}).status, 503);
  thread.join();
}

TEST_F(Leaving, AStopDoesNotWaitForIdleConnections) {
  start();
  RawClient idle(port);
  RawClient kept(port);
  kept.send(get("/health"));
  ASSERT_TRUE(kept.read_reply());
  stop();
  EXPECT_TRUE(idle.read_to_end());
  EXPECT_TRUE(kept.read_to_end());
}

TEST_F(Leaving, APortInUseIsOneClearLine) {
  start();
  ServerOptions second = options;
  second.port = port;
  const auto made = Server::listen(second);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::Io);
  EXPECT_EQ(made.error().message, "cannot listen on 127.0.0.1:" + std::to_string(port) + ": Address already in use");
}

TEST_F(Leaving, AHostThatIsNotThisMachineIsOneClearLine) {
  ServerOptions elsewhere;
  elsewhere.host = "203.0.113.7";
  const auto made = Server::listen(elsewhere);
  ASSERT_FALSE(made.has_value());
  EXPECT_TRUE(made.error().message.starts_with("cannot listen on 203.0.113.7:8080: ")) << made.error().message;
}

}  // namespace
}  // namespace rondo
