#include "server/server.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/log.h"
#include "server/connection.h"
#include "server/context.h"
#include "server/workers.h"

namespace rondo {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

namespace {

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause{50};       // after "too many open files" and the like
constexpr std::chrono::milliseconds kSilence{250};          // after which a place may be given to who waits for one
constexpr std::chrono::milliseconds kStoppedEngine{2'000};  // for the last error events to reach their readers

awaitable<void> serve_connection(std::shared_ptr<Connection> connection) { co_await connection->serve(); }

// One connection's broken promise must not take the others along.
void note_exception(const std::exception_ptr& thrown) {
  if (!thrown) return;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    log_error("a connection was dropped: {}", error.what());
  }
}

}  // namespace

struct Server::State {
  explicit State(ServerOptions options)
      : context(std::move(options), io, workers), workers(context.options.num_workers) {}

  Result<void> listen();
  awaitable<void> accept_loop();
  bool is_full() const {
    return context.connections.size() >= static_cast<std::size_t>(context.options.max_connections);
  }
  Connection::Clock::time_point make_room();
  void admit(tcp::socket socket);
  void await_signal();
  void begin_stop();
  void stop_engine_now();
  void check_drained();

  // Connections unregister themselves when io goes, so what they share is declared first.
  ServerContext context;
  asio::io_context io{1};
  Workers workers;
  tcp::acceptor acceptor{io};
  asio::steady_timer room_timer{io};  // the accept loop waits here while it must not accept
  asio::steady_timer drain_timer{io};
  asio::signal_set signals{io};
  std::function<void()> stop_engine;
  bool engine_stopped = false;
};

Result<void> Server::State::listen() {
  const std::string& host = context.options.host;
  boost::system::error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(context.options.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (!error && found.empty()) error = asio::error::host_not_found;
  if (!error) {
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  }
  if (error) {
    return failure(ErrorCode::Io,
                   fmt::format("cannot listen on {}:{}: {}", host, context.options.port, error.message()));
  }
  return {};
}

awaitable<void> Server::State::accept_loop() {
  while (acceptor.is_open()) {
    if (is_full()) {
      const auto [stopped] = co_await acceptor.async_wait(tcp::acceptor::wait_read, kNoThrow);
      if (stopped || !is_full()) continue;  // a place that came free meanwhile woke nobody: nobody slept
      room_timer.expires_at(make_room());   // for the one who now waits
      co_await room_timer.async_wait(kNoThrow);
      continue;
    }
    tcp::socket socket(io);
    const auto [error] = co_await acceptor.async_accept(socket, kNoThrow);
    if (!error) {
      admit(std::move(socket));
    } else if (acceptor.is_open()) {
      log_warning("cannot accept a connection: {}", error.message());
      room_timer.expires_after(kAcceptPause);
      co_await room_timer.async_wait(kNoThrow);
    }
  }
}

// Where every place is taken, the one that has kept its place the longest without a word gives way to who waits; but
// who came just now, or has just read a reply, may have said something that is still on its way. Returns when to look
// again, if nobody leaves or falls silent before.
Connection::Clock::time_point Server::State::make_room() {
  Connection* longest = nullptr;
  for (Connection* each : context.connections) {
    if (each->idle_since() && (longest == nullptr || *each->idle_since() < *longest->idle_since())) longest = each;
  }
  if (longest == nullptr) return Connection::Clock::time_point::max();
  const Connection::Clock::time_point gives_way_at = *longest->idle_since() + kSilence;
  if (Connection::Clock::now() < gives_way_at) return gives_way_at;
  longest->close();
  return Connection::Clock::time_point::max();
}

void Server::State::admit(tcp::socket socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);  // a token must not wait for the next one
  auto connection = std::make_shared<Connection>(std::move(socket), context);
  asio::co_spawn(io, serve_connection(connection), [connection](const std::exception_ptr& thrown) {
    note_exception(thrown);
    connection->close();
  });
}

void Server::State::await_signal() {
  signals.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    if (context.is_draining || !context.is_ready()) std::_Exit(128 + signal);
    log_info("stopping: replies may end for {} s; once more to stop at once",
             std::chrono::duration_cast<std::chrono::seconds>(context.options.drain_timeout).count());
    begin_stop();
    await_signal();
  });
}

void Server::State::begin_stop() {
  if (std::exchange(context.is_draining, true)) return;
  boost::system::error_code ignored;
  acceptor.close(ignored);
  room_timer.cancel();
  for (Connection* connection : context.connections) {
    if (!connection->is_answering()) connection->close();
  }
  drain_timer.expires_after(context.options.drain_timeout);
  drain_timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) stop_engine_now();
  });
  check_drained();
}

void Server::State::stop_engine_now() {
  if (std::exchange(engine_stopped, true)) return;
  stop_engine();
  drain_timer.expires_after(kStoppedEngine);
  drain_timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) io.stop();
  });
}

void Server::State::check_drained() {
  if (!context.is_draining || !context.connections.empty()) return;
  if (!std::exchange(engine_stopped, true)) stop_engine();
  io.stop();
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options) {
  auto state = std::make_unique<State>(std::move(options));
  TRY_VOID(state->listen());
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

void Server::open(ServedModel model, RequestRunner& runner, const PromptBuilder& prompts) {
  asio::post(state_->io, [&context = state_->context, model = std::move(model), &runner, &prompts]() mutable {
    context.model = std::move(model);
    context.prompts = &prompts;
    context.runner = &runner;
  });
}

int Server::port() const {
  boost::system::error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

std::string Server::url() const {
  const std::string& host = state_->context.options.host;
  return host.find(':') == std::string::npos ? fmt::format("http://{}:{}", host, port())
                                             : fmt::format("http://[{}]:{}", host, port());
}

void Server::stop_on_signals() {
  state_->signals.add(SIGINT);
  state_->signals.add(SIGTERM);
  state_->await_signal();
}

void Server::run(std::function<void()> stop_engine) {
  State& state = *state_;
  state.stop_engine = std::move(stop_engine);
  state.context.on_connection_gone = [&state] {
    state.room_timer.cancel();
    if (state.context.is_draining) asio::post(state.io, [&state] { state.check_drained(); });
  };
  state.context.on_connection_idle = [&state] { state.room_timer.cancel(); };
  asio::co_spawn(state.io, state.accept_loop(), [](const std::exception_ptr& thrown) { note_exception(thrown); });
  run_queue(state.io);
  state.context.on_connection_gone = [] {};
  state.workers.join();
}

void Server::stop() {
  asio::post(state_->io, [this] { state_->begin_stop(); });
}

}  // namespace rondo
