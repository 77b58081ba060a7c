// Server: HTTP/1.1 on one io thread, in front of a RequestRunner.
//
// The io thread does everything here except tokenising and templates, which a small pool of workers does. A client that
// goes away ends its request; one that reads too slowly is cut off; nothing a client sends is answered with a 5xx
// unless the engine cannot serve. No Asio in this header.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/prompt_builder.h"
#include "api/served_model.h"
#include "base/result.h"
#include "engine/request_runner.h"
#include "server/api_keys.h"

namespace rondo {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  // 0 = any free one
  std::size_t max_header_bytes = 16 << 10;
  std::size_t max_body_bytes = 32 << 20;
  std::size_t max_all_body_bytes = 256 << 20;  // of all requests together that are being received or answered
  std::size_t max_unsent_bytes = 1 << 20;      // of one reply: events that wait for a slow reader
  int max_connections = 1024;                  // more wait in the system's backlog
  int num_workers = 2;
  std::chrono::milliseconds header_timeout{10'000};  // first byte of a request to the end of its header
  std::chrono::milliseconds body_timeout{60'000};    // end of the header to the end of the body
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds write_timeout{60'000};   // one write that makes no end
  std::chrono::milliseconds comment_every{
      15'000};  // a silent stream gets a comment, for proxies that hang up on silence
  std::chrono::milliseconds drain_timeout{5'000};  // on stop: how long running replies may take to end by themselves
  double heartbeat_stale_ms = 15'000;              // /health says 503 after this
  ApiKeys keys;                                    // none: everybody may ask
  std::vector<std::string> allowed_origins;        // web pages beside this machine's own; "*" = all
  bool logs_text = false;                          // the log has the bodies of requests and replies
  std::string version;                             // as /metrics says it
};

class Server {
 public:
  // Listens; Io in words when it cannot. Until open(), /health says "loading" and what needs the model is a 503.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options);
  ~Server();

  std::string url() const;  // http://127.0.0.1:8080, with the port that was bound
  int port() const;

  // Any thread, once. runner and prompts outlive the server, and no sink may be called once the server is gone: stop
  // the engine first.
  void open(ServedModel model, RequestRunner& runner, const PromptBuilder& prompts);

  // SIGINT and SIGTERM call stop(); while the model loads, or the second time, they end the process at once.
  void stop_on_signals();

  // Serves on the calling thread until stop(): then no new connection, replies may end for drain_timeout, stop_engine
  // is called (on this thread; it must not block) so that what still runs fails in words, and run returns.
  void run(std::function<void()> stop_engine);
  void stop();  // any thread

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rondo
