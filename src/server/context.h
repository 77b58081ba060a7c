// ServerContext: what all connections share. Touched on the io thread; workers read `model` and `prompts` for the
// requests that the io thread hands them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <unordered_set>

#include "api/prompt_builder.h"
#include "api/served_model.h"
#include "engine/request_runner.h"
#include "server/metrics.h"
#include "server/page.h"
#include "server/server.h"
#include "server/workers.h"

namespace rondo {

class Connection;

struct ServerContext {
  ServerContext(ServerOptions the_options, boost::asio::io_context& the_io, Workers& the_workers)
      : options(std::move(the_options)), io(the_io), workers(the_workers) {}

  ServerOptions options;
  boost::asio::io_context& io;
  Workers& workers;

  // Set once, when the model is loaded; a request that needs them is refused before that.
  ServedModel model;
  RequestRunner* runner = nullptr;
  const PromptBuilder* prompts = nullptr;
  bool is_ready() const { return runner != nullptr; }

  bool is_draining = false;                     // every reply is its connection's last
  std::unordered_set<Connection*> connections;  // all there are
  std::function<void()> on_connection_gone = [] {}, on_connection_idle = [] {};
  HttpCounts counts;
  const HttpReply page = make_page();
};

}  // namespace rondo
