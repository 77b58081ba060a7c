// HTTP itself: keep-alive, framing, limits, routes, and a long list of what clients get wrong.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

class Http : public ServerTest {};

std::string chunked(const std::string& body, std::size_t chunk_bytes) {
  std::string out =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  for (std::size_t i = 0; i < body.size(); i += chunk_bytes) {
    const std::string chunk = body.substr(i, chunk_bytes);
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
    out += size + chunk + "\r\n";
  }
  return out + "0\r\n\r\n";
}

TEST_F(Http, AConnectionServesManyRequests) {
  start();
  RawClient client(port);
  for (int i = 0; i < 20; ++i) {
    client.send(get("/v1/models"));
    const auto reply = client.read_reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->headers.at("connection"), "keep-alive");
  }
}

TEST_F(Http, RequestsSentAheadAreAnsweredInOrder) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  client.send(get("/health") + post_chat(kHello) + get("/nowhere") + post_chat(kHelloStreamed) + get("/v1/models"));
  for (const int status : {200, 200, 404, 200, 200}) {
    const auto reply = client.read_reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, status);
  }
}

TEST_F(Http, ConnectionCloseIsHonoured) {
  start();
  RawClient client(port);
  client.send("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->headers.at("connection"), "close");
  EXPECT_TRUE(client.read_to_end());
}

TEST_F(Http, AnOldClientIsAnsweredAndTheConnectionCloses) {
  start();
  RawClient client(port);
  client.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 200);
  EXPECT_TRUE(client.read_to_end());
}

TEST_F(Http, ABodyMayComeInChunksOfAnySize) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  for (const std::size_t chunk_bytes : {1UL, 7UL, 1000UL}) {
    client.send(chunked(kHello, chunk_bytes));
    const auto reply = client.read_reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200) << reply->body;
  }
}

TEST_F(Http, ARequestMayComeByteByByte) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  for (const char byte : post_chat(kHello)) client.send(std::string_view(&byte, 1));
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 200);
}

TEST_F(Http, ALargeBodyUnderTheLimitIsTaken) {
  start();
  const RawReply reply =
      ask(post_chat(R"({"messages":[{"role":"user","content":")" + std::string(2 << 20, 'x') + R"("}]})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("context_length_exceeded"), std::string::npos);
}

TEST_F(Http, AClientThatWaitsForContinueIsToldTo) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  const std::string whole = post_chat(kHello, "Expect: 100-continue\r\n");
  const std::size_t body_pos = whole.find("\r\n\r\n") + 4;
  client.send(whole.substr(0, body_pos));
  ASSERT_TRUE(client.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send(whole.substr(body_pos));
  EXPECT_TRUE(client.read_until("HTTP/1.1 200 OK\r\n"));
}

TEST_F(Http, TooLargeABodyIsRefusedBeforeItIsSent) {
  options.max_body_bytes = 1000;
  start();
  RawClient client(port);
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 413);
  EXPECT_EQ(ask(chunked(std::string(5000, ' '), 100)).status, 413);
  expect_serving();
}

TEST_F(Http, ARefusedUploadStillHearsWhy) {
  options.max_body_bytes = 1000;
  start();
  RawClient client(port);
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
              std::string(1'000'000, 'x'));
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 413);
}

TEST_F(Http, TooLongAHeaderIsRefused) {
  start();
  EXPECT_EQ(ask("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(17 << 10, 'a') + "\r\n\r\n").status, 431);
  EXPECT_EQ(ask("GET /" + std::string(17 << 10, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 431);
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 4000; ++i) many += "A: b\r\n";
  EXPECT_EQ(ask(many + "\r\n").status, 431);
  expect_serving();
}

TEST_F(Http, AHeaderUnderTheLimitIsTaken) {
  start();
  EXPECT_EQ(ask("GET /health HTTP/1.1\r\nHost: x\r\nX: " + std::string(15 << 10, 'a') + "\r\n\r\n").status, 200);
}

TEST_F(Http, AHeaderThatDoesNotComeInTimeIsA408) {
  options.header_timeout = std::chrono::milliseconds(30);
  start();
  RawClient client(port);
  client.send("GET / HTTP/1.1\r\nHos");
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 408);
  EXPECT_TRUE(client.read_to_end());
}

TEST_F(Http, ABodyThatDoesNotComeInTimeIsA408) {
  options.body_timeout = std::chrono::milliseconds(30);
  start();
  RawClient client(port);
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 408);
}

TEST_F(Http, AnIdleConnectionIsClosedInSilence) {
  options.idle_timeout = std::chrono::milliseconds(30);
  start();
  RawClient client(port);
  EXPECT_TRUE(client.read_to_end());
  EXPECT_TRUE(client.unread().empty());
}

TEST_F(Http, AHalfOpenClientStillGetsAShortReply) {
  start();
  RawClient client(port);
  client.send(get("/health"));
  client.shut_sending_side();
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 200);
}

TEST_F(Http, MoreClientsThanConnectionsWaitTheirTurn) {
  options.max_connections = 2;
  start();
  for (int i = 0; i < 10; ++i) {
    RawClient client(port);
    client.send(get("/health"));
    EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 200);
  }
}

// Places come free at any moment of the accept loop, also just before it begins to wait for one.
TEST_F(Http, NoPlaceThatComesFreeIsMissed) {
  options.max_connections = 2;
  start();
  std::atomic<int> answered{0};
  constexpr int kClients = 4, kEach = 250;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        for (int j = 0; j < kEach; ++j) {
          RawClient client(port);
          client.send("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
          if (client.read_reply().value_or(RawReply{}).status != 200) return;
          ++answered;
        }
      });
    }
  }
  EXPECT_EQ(answered, kClients * kEach);
}

// One document, and nothing from anywhere: what the policy allows is what the page has.
TEST_F(Http, ThePageComesWithAPolicyThatAllowsItselfAndNothingElse) {
  start();
  const RawReply reply = ask(get("/"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "text/html; charset=utf-8");
  const std::string& policy = reply.headers.at("content-security-policy");
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_TRUE(policy.starts_with("default-src 'none'; ")) << policy;
  const auto between = [&](std::string_view begin, std::string_view end) {
    const std::size_t from = reply.body.find(begin) + begin.size();
    EXPECT_EQ(reply.body.find(begin, from), std::string::npos) << "more than one " << begin;
    return reply.body.substr(from, reply.body.find(end, from) - from);
  };
  const std::string script = between("<script type=\"module\">", "</script>"), style = between("<style>", "</style>");
  EXPECT_GT(script.size(), 1000u);
  EXPECT_NE(policy.find("script-src 'sha256-" + sha256_base64(script) + "';"), std::string::npos);
  EXPECT_NE(policy.find("style-src 'sha256-" + sha256_base64(style) + "';"), std::string::npos);
  for (const char* outside : {"src=", "@import", "url(", "onclick="}) {
    EXPECT_EQ(reply.body.find(outside), std::string::npos) << outside;
  }
}

TEST_F(Http, StatsSayWhatTheEngineIsDoing) {
  EngineStatus status;
  status.running = 3;
  status.max_streams = 16;
  status.work.completion_tokens = 41;
  runner.set_status(status);
  start();
  const RawReply reply = ask(get("/stats"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_NE(reply.body.find(R"("streams":{"running":3,"filling":0,"queued":0,"max":16})"), std::string::npos);
  EXPECT_NE(reply.body.find(R"("completion_tokens":41)"), std::string::npos);
}

TEST_F(Http, WhoKeepsAPlaceInSilenceGivesWayToWhoWaits) {
  options.max_connections = 3;
  start();
  RawClient asked(port);
  asked.send(get("/health"));
  ASSERT_TRUE(asked.read_reply());
  RawClient streamed(port);
  streamed.send(post_chat(kHelloStreamed));
  const auto request = runner.wait_for_request();
  ASSERT_TRUE(request);
  RawClient half(port);
  half.send("GET / HTTP/1.1\r\nHos");
  RawClient late(port);
  late.send(get("/health"));
  EXPECT_EQ(late.read_reply().value_or(RawReply{}).status, 200);
  EXPECT_TRUE(asked.read_to_end());
  EXPECT_TRUE(asked.unread().empty());
  runner.end(*request, FinishReason::Stop);
  EXPECT_EQ(streamed.read_reply().value_or(RawReply{}).status, 200) << "who is being answered stays";
}

TEST_F(Http, BodiesOfAllConnectionsTogetherAreBounded) {
  options.max_all_body_bytes = 1000;
  start();
  runner.answer_at_once("hi");
  const std::string head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
  RawClient holds(port);
  holds.send(head + "Content-Length: 900\r\n\r\n{");
  const auto held = [&] { return ask(get("/metrics")).body.find("rondo_http_body_bytes 900\n") != std::string::npos; };
  while (!held()) {
  }
  for (const std::string& more : {post_chat(std::string(200, ' ')), head + "Transfer-Encoding: chunked\r\n\r\nc8\r\n" +
                                                                        std::string(200, ' ') + "\r\n0\r\n\r\n"}) {
    const RawReply reply = ask(more);
    EXPECT_EQ(reply.status, 503);
    EXPECT_TRUE(reply.headers.contains("retry-after"));
  }
  EXPECT_EQ(ask(post_chat(kHello)).status, 200) << "a small one still has room";
  holds.leave();
  while (held()) {
  }
  EXPECT_EQ(ask(post_chat(std::string(200, ' '))).status, 400) << "read, and no JSON";
}

TEST_F(Http, HeadDescribesWhatGetWouldSend) {
  start();
  RawClient client(port);
  client.send("HEAD /v1/models HTTP/1.1\r\nHost: x\r\n\r\n" + get("/v1/models"));
  const auto head = client.read_reply(false);
  const auto body = client.read_reply();
  ASSERT_TRUE(head && body);
  EXPECT_EQ(head->headers.at("content-length"), std::to_string(body->body.size()));
}

TEST_F(Http, OptionsNamesTheMethods) {
  start();
  const RawReply reply = ask("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").status, 204);
}

TEST_F(Http, AWrongMethodIsToldTheRightOnes) {
  start();
  const RawReply reply = ask(get("/v1/chat/completions"));
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("DELETE /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").headers["allow"], "GET, HEAD, OPTIONS");
}

TEST_F(Http, QueriesAndWholeAddressesLeadToTheSameRoutes) {
  start();
  EXPECT_EQ(ask(get("/health?now=1")).status, 200);
  EXPECT_EQ(ask(get("http://localhost:8080/health")).status, 200);
  EXPECT_EQ(ask(get("/v1/models/demo")).status, 200);
  EXPECT_EQ(ask(get("/v1/models/d%65mo")).status, 200);
  EXPECT_EQ(ask(get("/v1/models/other")).status, 404);
  EXPECT_EQ(ask(get("/")).status, 200);
}

TEST_F(Http, HealthFollowsTheEnginesHeartbeat) {
  start();
  EXPECT_EQ(ask(get("/health")).status, 200);
  EngineStatus status;
  status.heartbeat_age_ms = 1e6;
  runner.set_status(status);
  EXPECT_EQ(ask(get("/health")).status, 503);
  status = EngineStatus{};
  status.stopped = true;
  runner.set_status(status);
  EXPECT_EQ(ask(get("/health")).status, 503);
}

const std::string kHost = "Host: x\r\n";
const std::string kPost = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";

// What is not HTTP, or not the HTTP spoken here.
std::vector<std::string> bad_http() {
  return {
      "\r\n\r\n",
      "x",
      "hello\r\n\r\n",
      "GET\r\n\r\n",
      "GET /\r\n\r\n",
      "GET / HTTP\r\n\r\n",
      "GET / HTTP/9.9\r\n" + kHost + "\r\n",
      "GET / HTTP/2.0\r\n" + kHost + "\r\n",
      "GET / HTTP/1.2\r\n" + kHost + "\r\n",
      "GET  / HTTP/1.1\r\n" + kHost + "\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\n" + kHost + kHost + "\r\n",
      "GET / HTTP/1.1\r\nHost x\r\n\r\n",
      "GET / HTTP/1.1\r\n: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
      "GET / HTTP/1.1\n" + kHost + "\n\n",
      "GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n",
      std::string("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", 29),
      "G\xffT / HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /\x7f HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /\xff\xfe HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /nowhere HTTP/1.1\r\n" + kHost + "\r\n",
      "GET nowhere HTTP/1.1\r\n" + kHost + "\r\n",
      "GET //health HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /v1/models/ HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /v1/models/%ff HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /v1/models/% HTTP/1.1\r\n" + kHost + "\r\n",
      "GET /health/x HTTP/1.1\r\n" + kHost + "\r\n",
      "get /health HTTP/1.1\r\n" + kHost + "\r\n",
      "BREW / HTTP/1.1\r\n" + kHost + "\r\n",
      "CONNECT x:1 HTTP/1.1\r\n" + kHost + "\r\n",
      "TRACE /health HTTP/1.1\r\n" + kHost + "\r\n",
      "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 2\r\n\r\n{}",
      kPost + "Content-Length: -1\r\n\r\n",
      kPost + "Content-Length: many\r\n\r\n",
      kPost + "Content-Length: 99999999999999999999999\r\n\r\n",
      kPost + "Content-Length: 999999999999\r\n\r\n",
      kPost + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      kPost + "Content-Length: 2, 2\r\n\r\n{}",
      kPost + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
      kPost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      kPost + "Transfer-Encoding: gzip\r\n\r\n",
      kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      kPost + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
      kPost + "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
      kPost + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
      kPost + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
      kPost + "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n{}\r\n",
      kPost + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
      kPost + "Expect: miracles\r\nContent-Length: 2\r\n\r\n{}",
      kPost + "\r\n",
      "POST /v1/chat/completions HTTP/1.1\r\n" + kHost + "Content-Length: 2\r\n\r\n{}",
      "POST /v1/chat/completions HTTP/1.1\r\n" + kHost + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
      "POST /v1/chat/completions HTTP/1.1\r\n" + kHost +
          "Content-Type: application/jsonx\r\nContent-Length: 2\r\n\r\n{}",
  };
}

// What is HTTP, with a body that is not a chat request. The fields one by one are in tests/api.
std::vector<std::string> bad_bodies() {
  return {
      "",
      " ",
      "{",
      "}",
      "[]",
      "null",
      "5",
      "\"x\"",
      "{}",
      "{\"messages\"}",
      "{'messages':[]}",
      "{\"messages\":[],}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\n\"}]}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":1e9999}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"temperature\":NaN}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}{}",
      "\xef\xbb\xbf{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
      std::string("{\"messages\":\0[]}", 16),
      "{\"messages\":" + std::string(100'000, '[') + "}",
      std::string(100'000, '{'),
      "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"model\":\"\\u0000\"}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"" + std::string(50'000, 'k') + "\":1}",
  };
}

TEST_F(Http, NothingMalformedBecomesAServerError) {
  start();
  runner.answer_at_once("hi");
  std::vector<std::string> inputs = bad_http();
  for (const std::string& body : bad_bodies()) inputs.push_back(post_chat(body));
  ASSERT_GE(inputs.size(), 60U);
  for (const std::string& input : inputs) {
    RawClient client(port);
    client.send(input);
    client.shut_sending_side();
    const auto reply = client.read_reply();
    const std::string shown = input.substr(0, 120);
    if (reply) {
      EXPECT_GE(reply->status, 400) << shown;
      EXPECT_LT(reply->status, 500) << shown << "\n" << reply->body;
      EXPECT_TRUE(reply->body.starts_with(R"({"error":{"message":")")) << shown << "\n" << reply->body;
    }
    EXPECT_TRUE(client.read_to_end()) << shown;
    RawClient next(port);
    next.send(post_chat(kHello));
    EXPECT_EQ(next.read_reply().value_or(RawReply{}).status, 200) << "after " << shown;
  }
}

TEST_F(Http, ABadBodyLeavesTheConnectionOpen) {
  start();
  runner.answer_at_once("hi");
  RawClient client(port);
  for (const std::string& body : bad_bodies()) {
    client.send(post_chat(body));
    const auto refused = client.read_reply();
    ASSERT_TRUE(refused) << body.substr(0, 80);
    EXPECT_GE(refused->status, 400);
    EXPECT_LT(refused->status, 500);
    client.send(post_chat(kHello));
    const auto reply = client.read_reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
  }
}

}  // namespace
}  // namespace rondo
