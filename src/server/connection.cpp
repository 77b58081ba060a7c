#include "server/connection.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "api/completions_request.h"
#include "api/error.h"
#include "api/openai_chat_reply.h"
#include "api/openai_models.h"
#include "api/stats.h"
#include "api/tokenize.h"
#include "server/reply_answer.h"
#include "server/routes.h"

namespace rondo {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr std::size_t kMaxReceivedBytes = 64 << 10;  // what a client may send ahead while it waits for a reply
constexpr std::chrono::milliseconds kLinger{2'000};  // for a refused client to read why before the socket goes

// Completes with the error instead of throwing it.
constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

HttpReply json_reply(int status, std::string body) {
  return HttpReply{status, "application/json", std::move(body), {}};
}

HttpReply answer_options(const RouteMatch& match) { return HttpReply{204, "", "", {{"Allow", match.allow}}}; }

HttpReply refuse_method(const std::string& method, const RouteMatch& match) {
  HttpReply reply =
      json_reply(405, render_http_error(405, fmt::format("{} is not for this path: it takes {}", method, match.allow)));
  reply.headers.emplace_back("Allow", match.allow);
  return reply;
}

HttpReply answer_model(const ServedModel& model, const std::string& name) {
  const ApiResult<std::string> found = render_model(model, name);
  if (found) return json_reply(200, *found);
  return json_reply(http_status(found.error().code), render_openai_error(found.error()));
}

// Of the routes that make a reply of a body; null for the others.
PrepareReply find_preparation(Route route) {
  switch (route) {
    case Route::Chat: return prepare_chat_reply;
    case Route::Completions: return prepare_completions;
    case Route::Tokenize: return prepare_tokenize;
    case Route::Detokenize: return prepare_detokenize;
    default: return nullptr;
  }
}

HttpReply answer_health(const ServerContext& context) {
  Health health = render_health(context.runner.status(), context.options.heartbeat_stale_ms);
  return json_reply(health.status, std::move(health.body));
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerContext& context)
    : socket_(std::move(socket)), context_(context), wake_timer_(context.io), write_timer_(context.io) {
  context_.connections.insert(this);
}

Connection::~Connection() {
  context_.connections.erase(this);
  context_.on_connection_gone();
}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;  // a socket that is broken already is as closed as we want it
  socket_.close(ignored);
  wake_timer_.cancel();
}

void Connection::abandon_when_gone(std::vector<std::shared_ptr<EventQueue>> events) {
  events_ = std::move(events);
  abandons_when_gone_ = true;
  if (peer_closed_) close();
}

void Connection::wake() {
  for (const std::shared_ptr<EventQueue>& events : events_) {
    if (events->has_overflowed()) close();
  }
  wake_timer_.cancel();
}

std::function<void()> Connection::make_waker() {
  return [weak = weak_from_this(), executor = context_.io.get_executor()] {
    asio::post(executor, [weak] {
      if (const std::shared_ptr<Connection> connection = weak.lock()) connection->wake();
    });
  };
}

void Connection::read_more() {
  if (is_reading_ || peer_closed_ || closed_ || received_.size() >= kMaxReceivedBytes) return;
  is_reading_ = true;
  socket_.async_read_some(asio::buffer(incoming_),
                          [self = shared_from_this()](const boost::system::error_code& error, std::size_t num_bytes) {
                            self->on_read(error, num_bytes);
                          });
}

void Connection::on_read(const boost::system::error_code& error, std::size_t num_bytes) {
  is_reading_ = false;
  received_.append(incoming_.data(), num_bytes);
  if (error) {
    peer_closed_ = true;
    if (abandons_when_gone_ || error != asio::error::eof) close();
  }
  read_more();
  wake();
}

awaitable<Connection::Woken> Connection::wait(std::chrono::milliseconds at_most) {
  wake_timer_.expires_after(at_most);
  const auto [error] = co_await wake_timer_.async_wait(kNoThrow);
  co_return error ? Woken::Early : Woken::InTime;
}

awaitable<void> Connection::wait() {
  wake_timer_.expires_at(Clock::time_point::max());
  co_await wake_timer_.async_wait(kNoThrow);
}

void Connection::arm_write_timeout() {
  is_writing_ = true;
  write_timer_.expires_after(context_.options.write_timeout);
  write_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const std::shared_ptr<Connection> connection = weak.lock();
    if (!error && connection && connection->is_writing_) connection->close();
  });
}

awaitable<bool> Connection::write(std::string bytes) {
  if (closed_) co_return false;
  arm_write_timeout();
  const auto [error, num_bytes] = co_await asio::async_write(socket_, asio::buffer(bytes), kNoThrow);
  is_writing_ = false;
  write_timer_.cancel();
  if (error) close();
  co_return !error;
}

Connected Connection::stays() const {
  return request_.keep_alive && !context_.is_draining ? Connected::KeepAlive : Connected::Close;
}

awaitable<void> Connection::send(HttpReply reply) {
  const BodyBytes body_bytes = request_.method == "HEAD" ? BodyBytes::LeaveOut : BodyBytes::Send;
  std::string bytes = render_reply(reply, stays(), body_bytes, std::time(nullptr));
  co_await write(std::move(bytes));
}

awaitable<bool> Connection::begin_stream(std::string first_bytes) {
  HttpReply head;
  head.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  if (request_.is_http_1_0) {
    request_.keep_alive = false;  // the end of the connection is the end of the reply
  } else {
    head.headers.emplace_back("Transfer-Encoding", "chunked");
  }
  std::string bytes = render_reply(head, stays(), BodyBytes::Send, std::time(nullptr));
  if (!co_await write(std::move(bytes))) co_return false;
  const bool written = co_await write_stream(std::move(first_bytes));
  co_return written;
}

awaitable<bool> Connection::write_stream(std::string bytes) {
  if (bytes.empty()) co_return !closed_;  // an empty chunk would end the reply
  std::string framed = request_.is_http_1_0 ? std::move(bytes) : fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  const bool written = co_await write(std::move(framed));
  co_return written;
}

awaitable<bool> Connection::end_stream() {
  if (request_.is_http_1_0) co_return !closed_;
  std::string last = "0\r\n\r\n";
  const bool written = co_await write(std::move(last));
  co_return written;
}

awaitable<void> Connection::serve() {
  bool goes_on = true;
  while (goes_on) goes_on = co_await serve_one();
  if (!closed_ && !context_.is_draining) co_await linger();
  close();
}

// Closing while bytes of the client are unread would reset the connection, and it might never see what was said last.
awaitable<void> Connection::linger() {
  boost::system::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  const Clock::time_point deadline = Clock::now() + kLinger;
  while (!is_gone() && Clock::now() < deadline) {
    received_.clear();
    read_more();
    co_await wait(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()) +
                  std::chrono::milliseconds(1));
  }
}

awaitable<Connection::Arrival> Connection::receive(RequestReader& reader) {
  using Progress = RequestReader::Progress;
  Progress phase = Progress::Nothing;
  Clock::time_point deadline = Clock::now() + context_.options.idle_timeout;
  while (true) {
    const Progress progress = reader.feed(received_);
    if (progress == Progress::Complete) co_return Arrival::Request;
    if (progress == Progress::Refused) {
      refusal_ = reader.refusal();
      co_return Arrival::Refused;
    }
    if (is_gone() || (context_.is_draining && progress == Progress::Nothing)) co_return Arrival::Nothing;
    if (progress != phase) {
      phase = progress;
      deadline = Clock::now() +
                 (phase == Progress::InHeader ? context_.options.header_timeout : context_.options.body_timeout);
    }
    if (Clock::now() >= deadline) {
      if (phase == Progress::Nothing) co_return Arrival::Nothing;
      refusal_ = HttpRefusal{408, "the request did not arrive in time"};
      co_return Arrival::Refused;
    }
    if (reader.take_expectation()) {
      std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await write(std::move(go_on));
    }
    read_more();
    co_await wait(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()) +
                  std::chrono::milliseconds(1));
  }
}

awaitable<bool> Connection::serve_one() {
  RequestReader reader(context_.options.max_header_bytes, context_.options.max_body_bytes);
  const Arrival arrival = co_await receive(reader);
  if (arrival == Arrival::Nothing) co_return false;
  is_answering_ = true;
  if (arrival == Arrival::Refused) {
    request_ = HttpRequest{};
    request_.keep_alive = false;
    HttpReply reply = json_reply(refusal_.status, render_http_error(refusal_.status, refusal_.message));
    co_await send(std::move(reply));
  } else {
    request_ = reader.take();
    read_more();
    co_await answer();
  }
  is_answering_ = false;
  abandons_when_gone_ = false;
  events_.clear();
  co_return !closed_ && stays() == Connected::KeepAlive;
}

awaitable<void> Connection::answer() {
  const RouteMatch match = find_route(request_.method, request_.target);
  const PrepareReply prepare = match.route ? find_preparation(*match.route) : nullptr;
  if (prepare != nullptr && is_json_type(request_.content_type)) {
    std::string body = std::move(request_.body);
    co_await answer_with_reply(*this, prepare, std::move(body));
    co_return;
  }
  HttpReply reply = answer_at_once(match);
  co_await send(std::move(reply));
}

HttpReply Connection::answer_at_once(const RouteMatch& match) const {
  if (match.allow.empty())
    return json_reply(404, render_http_error(404, "no such path; there are " + routes_in_words()));
  if (request_.method == "OPTIONS") return answer_options(match);
  if (!match.route) return refuse_method(request_.method, match);
  switch (*match.route) {
    case Route::Home: return context_.page;
    case Route::Health: return answer_health(context_);
    case Route::Stats: return json_reply(200, render_stats(context_.model, context_.runner.status()));
    case Route::Models: return json_reply(200, render_models(context_.model));
    case Route::Model: return answer_model(context_.model, match.argument);
    case Route::Chat:
    case Route::Completions:
    case Route::Tokenize:
    case Route::Detokenize:
      return json_reply(415, render_http_error(415, "send the body with Content-Type: application/json"));
  }
  return json_reply(404, render_http_error(404, "no such path"));
}

}  // namespace rondo
