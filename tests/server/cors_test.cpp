// Cross-origin requests: which pages' browsers are told that they may.
#include "server/cors.h"

#include <gtest/gtest.h>

#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

TEST(Cors, PagesOfThisMachineMayAndOthersWhenNamed) {
  for (const char* origin : {"http://localhost", "http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:5"}) {
    EXPECT_TRUE(is_allowed_origin({}, origin)) << origin;
  }
  for (const char* origin : {"http://localhost.evil.example", "http://localhost:3000.evil.example",
                             "http://localhost:", "http://127.0.0.1.evil.example", "https://app.example", "null",
                             "ftp://localhost", "", "http://localhost:3000/path", "http://evil.example?localhost"}) {
    EXPECT_FALSE(is_allowed_origin({}, origin)) << origin;
  }
  EXPECT_TRUE(is_allowed_origin({"https://app.example"}, "https://app.example"));
  EXPECT_FALSE(is_allowed_origin({"https://app.example"}, "https://app.example.evil.example"));
  EXPECT_TRUE(is_allowed_origin({"*"}, "https://anything.example"));
}

class CorsOverHttp : public ServerTest {};

std::string from(const char* origin, const std::string& first_line) {
  return first_line + " HTTP/1.1\r\nHost: x\r\nOrigin: " + origin + "\r\n\r\n";
}

TEST_F(CorsOverHttp, EveryReplyToAnAllowedPageSaysSoErrorsToo) {
  start();
  for (const char* line : {"GET /v1/models", "GET /health", "GET /nowhere", "DELETE /health", "OPTIONS /v1/models"}) {
    RawReply reply = ask(from("http://localhost:3000", line));
    EXPECT_EQ(reply.headers["access-control-allow-origin"], "http://localhost:3000") << line;
    EXPECT_EQ(reply.headers["vary"], "Origin");
    EXPECT_FALSE(ask(from("https://evil.example", line)).headers.contains("access-control-allow-origin")) << line;
  }
  EXPECT_FALSE(ask(get("/v1/models")).headers.contains("access-control-allow-origin"));
}

TEST_F(CorsOverHttp, AStreamSaysSoToo) {
  start();
  runner.answer_at_once("hi");
  RawReply reply = ask(post_chat(kHelloStreamed, "Origin: http://localhost:3000\r\n"));
  EXPECT_EQ(reply.headers["access-control-allow-origin"], "http://localhost:3000");
}

TEST_F(CorsOverHttp, APreflightIsAnsweredForAllowedPagesAlone) {
  options.allowed_origins = {"https://app.example"};
  start();
  const auto preflight = [&](const char* origin) {
    return ask("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: " + std::string(origin) +
               "\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n");
  };
  RawReply allowed = preflight("https://app.example");
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.headers["access-control-allow-methods"], "POST, OPTIONS");
  EXPECT_EQ(allowed.headers["access-control-allow-headers"], "content-type");
  EXPECT_EQ(allowed.headers["access-control-allow-origin"], "https://app.example");
  RawReply refused = preflight("https://evil.example");
  for (const auto& [name, value] : refused.headers) EXPECT_FALSE(name.starts_with("access-control-")) << name;
}

}  // namespace
}  // namespace rondo
