// For who watches over a server: health as the heartbeat of the engine's loop, request ids, and a log that never has a
// request's text.
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/log.h"
#include "server/request_log.h"
#include "tests/server/engine_fixture.h"
#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

using test::EngineServerTest;

class Health : public EngineServerTest {};

TEST_F(Health, AStuckModelIsSeenThoughTheSocketsAnswer) {
  start();
  EXPECT_EQ(ask(post_chat(kHello)).status, 200);
  EXPECT_EQ(ask(get("/health")).status, 200);
  model.hold();
  RawClient client(port);
  client.send(post_chat(kHello));
  model.wait_until_stuck();
  clock.advance(std::chrono::milliseconds(14'000));
  EXPECT_EQ(ask(get("/health")).status, 200);
  clock.advance(std::chrono::milliseconds(2'000));
  const RawReply stale = ask(get("/health"));
  EXPECT_EQ(stale.status, 503);
  EXPECT_NE(stale.body.find(R"("status":"stale")"), std::string::npos) << stale.body;
  EXPECT_EQ(ask(get("/v1/models")).status, 200) << "the sockets are fine";
  model.let_go();
  EXPECT_EQ(client.read_reply().value_or(RawReply{}).status, 200);
  EXPECT_EQ(ask(get("/health")).status, 200);
}

class Loading : public ServerTest {};

TEST_F(Loading, IsSaidUntilTheModelIsThere) {
  start_loading();
  const RawReply loading = ask(get("/health"));
  EXPECT_EQ(loading.status, 503);
  EXPECT_EQ(loading.body, R"({"status":"loading"})");
  for (const std::string& request : {get("/v1/models"), get("/v1/models/demo"), post_chat(kHello)}) {
    const RawReply reply = ask(request);
    EXPECT_EQ(reply.status, 503);
    EXPECT_TRUE(reply.headers.contains("retry-after"));
    EXPECT_NE(reply.body.find("still loading"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(ask(get("/")).status, 200);
  EXPECT_EQ(ask(get("/nowhere")).status, 404);
  open();
  runner.answer_at_once("hi");
  EXPECT_EQ(ask(get("/health")).status, 200);
  EXPECT_EQ(ask(post_chat(kHello)).status, 200);
}

TEST_F(Loading, AStopDuringTheLoadEndsIt) {
  start_loading();
  EXPECT_EQ(ask(get("/health")).status, 503);
  stop();
}

class Watching : public ServerTest {
 protected:
  std::string logged(const std::string& bytes) {
    testing::internal::CaptureStderr();
    {
      RawClient client(port);
      client.send(bytes);
      client.read_reply();
    }
    stop();  // the line is written when the request is over
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Watching, EveryReplyHasARequestId) {
  start();
  runner.answer_at_once("hi");
  const auto id_of = [&](const std::string& bytes) { return ask(bytes).headers["x-request-id"]; };
  EXPECT_TRUE(id_of(get("/health")).starts_with("req-"));
  EXPECT_NE(id_of(get("/health")), id_of(get("/health")));
  EXPECT_EQ(id_of(post_chat(kHello, "X-Request-Id: mine-1.a:b_c\r\n")), "mine-1.a:b_c");
  EXPECT_EQ(id_of(post_chat(kHelloStreamed, "X-Request-Id: mine\r\n")), "mine");
  for (const std::string& unusable :
       {std::string("two words"), std::string("a\"b"), std::string("a=b"), std::string(129, 'a')}) {
    EXPECT_TRUE(id_of(post_chat(kHello, "X-Request-Id: " + unusable + "\r\n")).starts_with("req-")) << unusable;
  }
  EXPECT_TRUE(id_of("nonsense\r\n\r\n").starts_with("req-"));
}

TEST_F(Watching, ALineSaysHowARequestWentAndNotWhatItSaid) {
  start();
  runner.answer_at_once("SECRET reply");
  const std::string line =
      logged(post_chat(R"({"messages":[{"role":"user","content":"SECRET"}]})", "X-Request-Id: mine\r\n"));
  EXPECT_NE(line.find("POST /v1/chat/completions 200"), std::string::npos) << line;
  EXPECT_NE(line.find("3 prompt tokens, 1 reply tokens, stop"), std::string::npos) << line;
  EXPECT_NE(line.find("[mine]"), std::string::npos) << line;
  EXPECT_EQ(line.find("SECRET"), std::string::npos) << line;
}

TEST_F(Watching, ARefusalsWordsAreNotLoggedForTheyMayQuoteTheRequest) {
  start();
  const std::string line = logged(post_chat(R"({"messages":[],"model":"SECRET"})"));
  EXPECT_NE(line.find(" 404"), std::string::npos) << line;
  EXPECT_EQ(line.find("SECRET"), std::string::npos) << line;
}

TEST_F(Watching, AQueryIsNotLoggedAndAPathOnlyAsPrintable) {
  start();
  const std::string line = logged(get("/no\xffwhere?key=SECRET"));
  EXPECT_NE(line.find("GET /no?where 404"), std::string::npos) << line;
  EXPECT_EQ(line.find("SECRET"), std::string::npos) << line;
}

TEST_F(Watching, WithLogTextBothBodiesAreThere) {
  options.logs_text = true;
  start();
  runner.answer_at_once("SECRET reply");
  const std::string line = logged(post_chat(R"({"messages":[{"role":"user","content":"PLEASE"}]})"));
  EXPECT_NE(line.find("PLEASE"), std::string::npos) << line;
  EXPECT_NE(line.find("SECRET reply"), std::string::npos) << line;
}

TEST_F(Watching, RoutineQuestionsAreNotLogged) {
  start();
  EXPECT_EQ(logged(get("/health")), "");
}

// The log's format is set once in a process: last, then, in this file.
TEST_F(Watching, AsJsonALineIsAnObject) {
  start();
  runner.answer_at_once("SECRET reply");
  set_log(LogFormat::Json, LogLevel::Info);
  const std::string line =
      logged(post_chat(R"({"messages":[{"role":"user","content":"SECRET"}]})", "X-Request-Id: mine\r\n"));
  const auto object = parse_json(line);
  ASSERT_TRUE(object) << line;
  EXPECT_EQ(object->at("message").as_string(), "request");
  EXPECT_EQ(object->at("level").as_string(), "info");
  EXPECT_EQ(object->at("request_id").as_string(), "mine");
  EXPECT_EQ(object->at("route").as_string(), "/v1/chat/completions");
  EXPECT_EQ(object->at("status").as_int64(), 200);
  EXPECT_EQ(object->at("prompt_tokens").as_int64(), 3);
  EXPECT_EQ(object->at("finish_reason").as_string(), "stop");
  EXPECT_EQ(line.find("SECRET"), std::string::npos) << line;
  set_log(LogFormat::Text, LogLevel::Info);
}

}  // namespace
}  // namespace rondo
