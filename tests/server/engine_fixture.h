// EngineServerTest: a server over a real engine with the fake model of tests/engine, whose text is a hash of its
// history in plain letters. The model can be made to hang, and its clock is the test's.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/engine.h"
#include "model/forwarding_model.h"
#include "server/server.h"
#include "tests/engine/fake_model.h"
#include "tests/server/fake_runner.h"
#include "tests/server/raw_client.h"
#include "tests/text/tiny_tokenizer.h"

namespace rondo::test {

// A clock that any thread may move and read.
class SharedClock final : public Clock {
 public:
  Time now() const override { return Time(Time::duration(ticks_.load())); }
  void advance(std::chrono::milliseconds by) { ticks_ += Time::duration(by).count(); }

 private:
  std::atomic<Time::rep> ticks_{std::chrono::duration_cast<Time::duration>(std::chrono::hours(1)).count()};
};

// A model whose next verify waits for as long as it is held.
class HeldModel final : public ForwardingModel {
 public:
  using ForwardingModel::ForwardingModel;
  void hold() { set_held(true); }
  void let_go() { set_held(false); }
  void wait_until_stuck() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stuck_; });
  }
  Verified verify(std::span<const Window> windows) override {
    pass();
    return inner_.verify(windows);
  }

 private:
  void set_held(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    if (!held_) return;
    stuck_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    stuck_ = false;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false, stuck_ = false;
};

class EngineServerTest : public testing::Test {
 protected:
  void TearDown() override { stop(); }

  void start() {
    options.port = 0;
    server = *Server::listen(options);
    port = server->port();
    ServedModel served;
    served.name = "demo";
    served.vocab_size = 256;
    served.context_tokens = engine.context_tokens();
    served.max_tokens = 30;
    served.arithmetic = "fake";
    server->open(served, engine, prompts);
    engine_thread = std::jthread([this](const std::stop_token& stop) { engine.run(stop); });
    io_thread = std::jthread([this] { server->run([this] { engine_thread.request_stop(); }); });
  }
  void stop() {
    if (!io_thread.joinable()) return;
    model.let_go();
    server->stop();
    io_thread.join();
    engine_thread.request_stop();
    engine_thread.join();
  }
  RawReply ask(const std::string& bytes) {
    RawClient client(port);
    client.send(bytes);
    return client.read_reply().value_or(RawReply{});
  }

  static FakeOptions fake_options() {
    FakeOptions o;
    o.context_tokens = 256;
    o.max_rows = 64;
    for (std::int32_t id = 'a'; id <= 'z'; ++id) o.alphabet.push_back(id);
    return o;
  }

  ServerOptions options;
  FakePrompts prompts;
  FakeClock fake_clock;  // of the fake model alone
  SharedClock clock;     // of the engine
  FakeModel fake{fake_options(), fake_clock};
  HeldModel model{fake};
  Tokenizer tokenizer = tiny_tokenizer();
  Engine engine{model, &tokenizer, CostTables{}, clock, EngineOptions{}};
  std::unique_ptr<Server> server;
  int port = 0;
  std::jthread engine_thread, io_thread;
};

}  // namespace rondo::test
