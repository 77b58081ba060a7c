// server_events: what the server itself costs. A runner that makes tokens out of nothing, at a steady beat, feeds a
// real Server; a client in the same process reads every stream. Each token's text is the moment it was handed to the
// server.
//
//   server_events [--streams 64] [--seconds 3] [--rates 2000,20000,40000,80000]
//
// For each offered rate (tokens/s over all streams): what arrived a second, and how long after the runner said it the
// client had read it, median and 99th percentile. A beat hands each stream one token, all at once, as a round does.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "server/server.h"
#include "tests/api/fake_prompts.h"
#include "tests/server/raw_client.h"

namespace {

using namespace rondo;
using Steady = std::chrono::steady_clock;

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Steady::now().time_since_epoch()).count();
}

// Costs nothing: it only holds the sinks, and beat() says one token to each.
class BeatRunner final : public RequestRunner {
 public:
  Result<RequestId> submit(Request, std::shared_ptr<EventSink> sink) override {
    const std::lock_guard lock(mutex_);
    sinks_.push_back(std::move(sink));
    return RequestId{sinks_.size()};
  }
  void cancel(RequestId) override { ++cancelled; }
  EngineStatus status() const override { return {}; }
  int context_tokens() const override { return 1 << 30; }

  std::size_t num_open() const {
    const std::lock_guard lock(mutex_);
    return sinks_.size();
  }
  void beat() {
    const std::int32_t id = 1;
    for (const auto& sink : sinks_) {
      sink->on_text({.text = fmt::format("{} ", now_us()), .ids = std::span(&id, 1), .logprobs = {}});
    }
  }
  void end() {
    for (const auto& sink : sinks_) sink->on_end({});
    sinks_.clear();
  }
  std::atomic<int> cancelled{0};

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<EventSink>> sinks_;
};

// One stream's bytes to the moments in them: every run of digits that a space ends, within "content":"...".
class StreamScanner {
 public:
  void push(std::string_view bytes, std::vector<double>& delays_ms) {
    constexpr std::string_view kOpen = "\"content\":\"";
    const std::int64_t now = now_us();
    for (const char c : bytes) {
      if (!in_content_) {
        matched_ = c == kOpen[matched_] ? matched_ + 1 : (c == kOpen[0] ? 1 : 0);
        if (matched_ < kOpen.size()) continue;
        in_content_ = true;
        matched_ = 0;
        value_ = 0;
      } else if (c >= '0' && c <= '9') {
        value_ = 10 * value_ + (c - '0');
      } else if (c == ' ') {
        delays_ms.push_back(static_cast<double>(now - value_) / 1000);
        value_ = 0;
      } else {
        in_content_ = false;
      }
    }
  }

 private:
  bool in_content_ = false;
  std::size_t matched_ = 0;
  std::int64_t value_ = 0;
};

struct Outcome {
  double tokens_per_s = 0, median_ms = 0, p99_ms = 0;
  std::size_t lost = 0;
};

Outcome run(BeatRunner& runner, int port, int num_streams, double rate, double seconds) {
  std::vector<std::unique_ptr<RawClient>> clients;
  const int events_fd = ::epoll_create1(0);
  for (int i = 0; i < num_streams; ++i) {
    clients.push_back(std::make_unique<RawClient>(port));
    clients.back()->send(post_chat(R"({"messages":[{"role":"user","content":"x"}],"stream":true})"));
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.u32 = static_cast<std::uint32_t>(i);
    CHECK(::epoll_ctl(events_fd, EPOLL_CTL_ADD, clients.back()->socket(), &wanted) == 0);
  }
  while (runner.num_open() < static_cast<std::size_t>(num_streams)) std::this_thread::yield();
  const auto beats = static_cast<int>(seconds * rate / num_streams);
  const auto begin = Steady::now();
  std::jthread engine([&] {
    const auto gap = std::chrono::duration<double>(num_streams / rate);
    for (int i = 0; i < beats; ++i) {
      std::this_thread::sleep_until(begin + std::chrono::duration_cast<Steady::duration>(i * gap));
      runner.beat();
    }
    runner.end();
  });
  const std::size_t expected = static_cast<std::size_t>(beats) * static_cast<std::size_t>(num_streams);
  std::vector<double> delays_ms;
  delays_ms.reserve(expected);
  std::vector<StreamScanner> scanners(static_cast<std::size_t>(num_streams));
  std::vector<char> bytes(64 << 10);
  const auto give_up = begin + std::chrono::duration<double>(3 * seconds + 5);
  while (delays_ms.size() < expected && Steady::now() < give_up) {
    epoll_event ready[64];
    const int num_ready = ::epoll_wait(events_fd, ready, std::size(ready), 1000);
    for (int e = 0; e < num_ready; ++e) {
      const std::size_t i = ready[e].data.u32;
      const ssize_t got = ::read(clients[i]->socket(), bytes.data(), bytes.size());
      if (got <= 0) ::epoll_ctl(events_fd, EPOLL_CTL_DEL, clients[i]->socket(), nullptr);
      if (got > 0) scanners[i].push(std::string_view(bytes.data(), static_cast<std::size_t>(got)), delays_ms);
    }
  }
  const double took_s = std::chrono::duration<double>(Steady::now() - begin).count();
  engine.join();
  ::close(events_fd);
  std::sort(delays_ms.begin(), delays_ms.end());
  const std::size_t n = delays_ms.size();
  if (n == 0) return {.lost = expected};
  return {static_cast<double>(n) / took_s, delays_ms[n / 2], delays_ms[n * 99 / 100], expected - n};
}

std::vector<double> numbers(std::string_view text) {
  std::vector<double> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    out.push_back(std::strtod(std::string(one).c_str(), nullptr));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  int streams = 64;
  double seconds = 3;
  std::vector<double> rates = {2'000, 20'000, 40'000, 80'000};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--streams") streams = std::atoi(argv[i + 1]);
    if (name == "--seconds") seconds = std::strtod(argv[i + 1], nullptr);
    if (name == "--rates") rates = numbers(argv[i + 1]);
  }
  set_log(LogFormat::Text, LogLevel::Error);
  BeatRunner runner;
  const FakePrompts prompts;
  ServerOptions options;
  options.port = 0;
  const auto server = *Server::listen(options);
  ServedModel model;
  model.name = "none";
  model.vocab_size = 256;
  model.context_tokens = model.max_tokens = 1 << 30;
  server->open(model, runner, prompts);
  std::jthread io([&] { server->run([] {}); });
  fmt::print("{} streams, {} s each\n{:>12} {:>12} {:>12} {:>12} {:>8}\n", streams, seconds, "offered/s", "arrived/s",
             "median ms", "p99 ms", "lost");
  bool any_lost = false;
  for (const double rate : rates) {
    const Outcome out = run(runner, server->port(), streams, rate, seconds);
    fmt::print("{:>12.0f} {:>12.0f} {:>12.3f} {:>12.3f} {:>8}\n", rate, out.tokens_per_s, out.median_ms, out.p99_ms,
               out.lost);
    any_lost = any_lost || out.lost > 0;
  }
  server->stop();
  return any_lost ? 1 : 0;
}
