#include "server/connection.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "server/context.h"
#include "server/cors.h"
#include "server/gate.h"
#include "server/plain_answers.h"
#include "server/reply_answer.h"

namespace rondo {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr std::size_t kMaxReceivedBytes = 64 << 10;  // what a client may send ahead while it waits for a reply
constexpr std::chrono::milliseconds kLinger{2'000};  // for a refused client to read why before the socket goes
constexpr const char* kRetryAfter = "1";             // seconds
constexpr std::size_t kMaxLoggedPath = 200;
constexpr int kGoneStatus = 499;  // in log and counters: the client left before there was a reply, as nginx has it

// Completes with the error instead of throwing it.
constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ServerContext& context)
    : socket_(std::move(socket)), context_(context), wake_timer_(context.io), write_timer_(context.io) {
  boost::system::error_code ignored;  // then nothing is written at once
  socket_.non_blocking(true, ignored);
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
    if (!events->has_overflowed()) continue;
    record_.client_cut_off = true;
    close();
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
    if (error || !connection || !connection->is_writing_) return;
    connection->record_.client_cut_off = true;
    connection->close();
  });
}

// What the system takes without waiting, of what a stream writes: nearly always all of it, and then a token costs no
// timer and no turn of the io thread's queue.
std::size_t Connection::write_at_once(std::string_view bytes) {
  if (!socket_.non_blocking()) return 0;
  boost::system::error_code error;  // would block, or broken: who writes the rest will hear of it
  return socket_.write_some(asio::buffer(bytes), error);
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

void Connection::decorate(HttpReply& reply) {
  record_.status = reply.status;
  reply.headers.emplace_back("x-request-id", record_.id);
  if (match_.form == ApiForm::Anthropic) reply.headers.emplace_back("request-id", record_.id);  // as its clients look
  for (auto& header : cors_headers(context_.options.allowed_origins, request_.origin)) {
    reply.headers.push_back(std::move(header));
  }
  if (reply.status == 429 || reply.status == 503) reply.headers.emplace_back("Retry-After", kRetryAfter);
}

void Connection::note_said(std::string_view bytes) {
  if (!context_.options.logs_text || record_.said.size() >= kMaxLoggedText) return;
  record_.said += bytes.substr(0, kMaxLoggedText - record_.said.size());
}

awaitable<void> Connection::send(HttpReply reply) {
  decorate(reply);
  note_said(reply.body);
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
  decorate(head);
  std::string bytes = render_reply(head, stays(), BodyBytes::Send, std::time(nullptr));
  if (!co_await write(std::move(bytes))) co_return false;
  const bool written = co_await write_stream(std::move(first_bytes));
  co_return written;
}

awaitable<bool> Connection::write_stream(std::string bytes) {
  if (bytes.empty()) co_return !closed_;  // an empty chunk would end the reply
  note_said(bytes);
  std::string framed = request_.is_http_1_0 ? std::move(bytes) : fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  if (closed_) co_return false;
  const std::size_t num_written = write_at_once(framed);
  if (num_written == framed.size()) co_return true;
  framed.erase(0, num_written);
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

void Connection::note_head(const RequestReader& reader) {
  request_ = reader.head();
  match_ = find_route(request_.method, request_.target);
  record_.id = request_id(request_.x_request_id);
  record_.method = printable(request_.method, kMaxLoggedPath);
  record_.path = printable(std::string_view(request_.target).substr(0, request_.target.find('?')), kMaxLoggedPath);
  record_.route = match_.name;
  refusal_ = refuse_at_gate(request_, match_, context_);
}

bool Connection::claim_body(std::size_t num_bytes) {
  std::size_t& all = context_.counts.body_bytes;
  if (num_bytes > body_bytes_ && all - body_bytes_ + num_bytes > context_.options.max_all_body_bytes) return false;
  all = all - body_bytes_ + num_bytes;
  body_bytes_ = num_bytes;
  return true;
}

awaitable<Connection::Arrival> Connection::receive(RequestReader& reader) {
  using Progress = RequestReader::Progress;
  Progress phase = Progress::Nothing;
  Clock::time_point deadline = Clock::now() + context_.options.idle_timeout;
  idle_since_ = Clock::now();
  context_.on_connection_idle();
  while (true) {
    const Progress progress = reader.feed(received_);
    if (progress != Progress::Nothing) idle_since_.reset();
    if (phase == Progress::Nothing && progress != Progress::Nothing) began_ = Clock::now();
    if (reader.has_head() && record_.method.empty()) note_head(reader);
    if (progress == Progress::Refused) {
      refusal_ = refusal_reply(match_, reader.refusal().status, reader.refusal().message);
      co_return Arrival::Refused;
    }
    if (reader.has_head() && !claim_body(reader.body_bytes())) {
      refusal_ = refusal_reply(match_, 503, "too many bytes of requests are being received at once");
      co_return Arrival::Refused;
    }
    if (progress == Progress::Complete) co_return Arrival::Request;
    if (refusal_) co_return Arrival::Refused;  // nobody waits for a body that nobody will read
    if (is_gone() || (context_.is_draining && progress == Progress::Nothing)) co_return Arrival::Nothing;
    if (progress != phase) {
      phase = progress;
      deadline = Clock::now() +
                 (phase == Progress::InHeader ? context_.options.header_timeout : context_.options.body_timeout);
    }
    if (Clock::now() >= deadline) {
      if (phase == Progress::Nothing) co_return Arrival::Nothing;
      refusal_ = refusal_reply(match_, 408, "the request did not arrive in time");
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
  request_ = HttpRequest{};
  match_ = RouteMatch{};
  refusal_.reset();
  record_ = RequestRecord{};
  record_.route = match_.name;
  record_.id = request_id("");
  const Arrival arrival = co_await receive(reader);
  if (arrival == Arrival::Nothing) {
    claim_body(0);
    co_return false;
  }
  is_answering_ = true;
  if (arrival == Arrival::Request) {
    request_ = reader.take();
    read_more();
  }
  co_await answer(arrival);
  end_request();
  co_return !closed_ && stays() == Connected::KeepAlive;
}

awaitable<void> Connection::answer(Arrival arrival) {
  if (arrival == Arrival::Refused) request_.keep_alive = false;
  if (context_.options.logs_text) record_.asked = request_.body.substr(0, kMaxLoggedText);
  const PrepareReply prepare = match_.route ? find_preparation(*match_.route) : nullptr;
  if (prepare != nullptr && !refusal_) {
    std::string body = std::move(request_.body);
    co_await answer_with_reply(*this, prepare, match_.form, std::move(body));
    co_return;
  }
  HttpReply reply = refusal_ ? *std::move(refusal_) : answer_plainly(request_, match_, context_);
  co_await send(std::move(reply));
}

void Connection::end_request() {
  is_answering_ = false;
  abandons_when_gone_ = false;
  events_.clear();
  claim_body(0);
  if (closed_ && !record_.client_cut_off && !record_.end) record_.client_gone = true;
  if (record_.status == 0) record_.status = kGoneStatus;
  record_.total_ms = std::chrono::duration<double, std::milli>(Clock::now() - began_).count();
  HttpCounts& counts = context_.counts;
  ++counts.requests[{record_.route, record_.status}];
  if (record_.client_gone) ++counts.clients_gone;
  if (record_.client_cut_off) ++counts.clients_cut_off;
  log_request(record_);
}

}  // namespace rondo
