// ServerTest: a server on a free port over a FakeRunner, on a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "server/server.h"
#include "tests/server/fake_runner.h"
#include "tests/server/raw_client.h"

namespace rondo {

class ServerTest : public testing::Test {
 protected:
  void TearDown() override { stop(); }

  // With the options as the test left them.
  void start() {
    start_loading();
    open();
  }

  void start_loading() {
    options.port = 0;
    auto made = Server::listen(options);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    server = *std::move(made);
    port = server->port();
    thread = std::jthread([this] {
      server->run([this] { runner.fail_all({ErrorCode::Unavailable, "the server is stopping"}); });
    });
  }

  void open() {
    ServedModel model;
    model.name = "demo";
    model.vocab_size = 256;
    model.context_tokens = 4096;
    model.max_tokens = 64;
    model.arithmetic = "fake";
    server->open(model, runner, prompts);
  }

  // Returns when the server's thread has ended; nothing may be left running.
  void stop() {
    if (!thread.joinable()) return;
    server->stop();
    thread.join();
    EXPECT_TRUE(runner.all_are_over()) << "a request outlived the server";
  }

  RawReply ask(const std::string& bytes, bool has_body = true) {
    RawClient client(port);
    client.send(bytes);
    return client.read_reply(has_body).value_or(RawReply{});
  }

  void expect_serving() { EXPECT_EQ(ask(get("/v1/models")).status, 200); }

  FakeRunner runner;
  FakePrompts prompts;
  ServerOptions options;
  std::unique_ptr<Server> server;
  std::jthread thread;
  int port = 0;
};

inline constexpr const char* kHello = R"({"messages":[{"role":"user","content":"hello"}]})";
inline constexpr const char* kHelloStreamed = R"({"messages":[{"role":"user","content":"hello"}],"stream":true})";

}  // namespace rondo
