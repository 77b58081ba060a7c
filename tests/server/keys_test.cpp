// API keys: what a key file may hold, and which routes ask for one.
#include "server/api_keys.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

TEST(ApiKeys, AFileHasAKeyALinePlainOrHashed) {
  const auto keys = ApiKeys::parse("# ours\n\n  plain-1 \r\nsha256:" + sha256_hex("hidden") + "\nlast", "keys");
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_TRUE(keys->are_needed());
  for (const char* known : {"plain-1", "hidden", "last"}) EXPECT_TRUE(keys->admit(known)) << known;
  for (const std::string& unknown :
       {std::string(), std::string("plain"), std::string("plain-11"), std::string("# ours"),
        "sha256:" + sha256_hex("hidden"), sha256_hex("hidden"), std::string("Hidden")}) {
    EXPECT_FALSE(keys->admit(unknown)) << unknown;
  }
}

TEST(ApiKeys, WhatIsNoKeyIsSaidWithFileAndLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "keys: there is no key in it"},
      {"# only words\n", "keys: there is no key in it"},
      {"ok\ntwo words\n", "keys: line 2: a key is one word of printable ASCII"},
      {"sha256:12\n", "keys: line 1: after sha256: come 64 hex digits"},
      {"sha256:zz5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542\n",
       "keys: line 1: after sha256: come 64 hex digits"},
  };
  for (const auto& [text, message] : wrong) {
    const auto keys = ApiKeys::parse(text, "keys");
    ASSERT_FALSE(keys) << text;
    EXPECT_EQ(keys.error().message, message);
  }
  EXPECT_NE(ApiKeys::read("/nowhere/keys").error().message.find("/nowhere/keys"), std::string::npos);
}

class Keys : public ServerTest {
 protected:
  void SetUp() override {
    options.keys = *ApiKeys::parse("secret\n", "keys");
    start();
    runner.answer_at_once("hi");
  }
};

std::string get_with(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

TEST_F(Keys, EveryRouteButHealthAndTheFirstPageAsksForOne) {
  for (const char* path : {"/health", "/"}) EXPECT_EQ(ask(get(path)).status, 200) << path;
  for (const char* path : {"/v1/models", "/v1/models/demo", "/metrics", "/nowhere", "/v1/chat/completions"}) {
    const RawReply reply = ask(get(path));
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.headers.at("www-authenticate"), "Bearer");
    EXPECT_NE(reply.body.find(R"("code":"invalid_api_key")"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(ask(post_chat(kHello)).status, 401);
}

TEST_F(Keys, EitherHeaderCarriesIt) {
  EXPECT_EQ(ask(get_with("/v1/models", "Authorization: Bearer secret\r\n")).status, 200);
  EXPECT_EQ(ask(get_with("/v1/models", "authorization: bearer  secret\r\n")).status, 200);
  EXPECT_EQ(ask(get_with("/v1/models", "X-Api-Key: secret\r\n")).status, 200);
  EXPECT_EQ(ask(post_chat(kHello, "x-api-key: secret\r\n")).status, 200);
  for (const char* wrong :
       {"Authorization: Bearer\r\n", "Authorization: Bearer Secret\r\n", "Authorization: secret\r\n",
        "Authorization: Basic secret\r\n", "X-Api-Key: secret2\r\n", "X-Api-Key:\r\n", "Cookie: secret\r\n"}) {
    EXPECT_EQ(ask(get_with("/v1/models", wrong)).status, 401) << wrong;
  }
  EXPECT_EQ(ask(get("/v1/models?api_key=secret")).status, 401) << "a key in an address ends up in logs";
}

TEST_F(Keys, AStrangersBodyIsNotRead) {
  RawClient client(port);
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "1000000\r\n\r\n");
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 401);
  EXPECT_TRUE(client.read_to_end());
}

TEST_F(Keys, APreflightNeedsNone) {
  const RawReply reply =
      ask("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: http://localhost:3000\r\n"
          "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n\r\n");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.headers.at("access-control-allow-headers"), "authorization,content-type");
}

}  // namespace
}  // namespace rondo
