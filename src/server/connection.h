// Connection: one client's socket and the requests that come over it, one after another.
//
// Exactly one read is pending at nearly all times, also while a reply is being made: that is how a client that goes
// away is seen at once. What it brings is kept in `received_` (bounded) for the parser, so pipelined requests wait
// their turn. Whoever waits, waits on one timer: wake() cancels it, and the waiter looks again at what it waited for.
// Everything here runs on the io thread.
//
// A closed sending side (half-open) counts as gone while an engine works for the client; short replies are still sent.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/event_queue.h"
#include "server/http_message.h"
#include "server/request_log.h"
#include "server/request_reader.h"
#include "server/routes.h"

namespace rondo {

struct ServerContext;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  Connection(boost::asio::ip::tcp::socket socket, ServerContext& context);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Until either side closes. The caller holds a shared_ptr for as long.
  boost::asio::awaitable<void> serve();
  bool is_answering() const { return is_answering_; }
  std::optional<Clock::time_point> idle_since() const { return idle_since_; }  // while it waits for a first byte
  void close();                                                                // at once: pending reads and writes fail

  // For handlers.
  ServerContext& context() { return context_; }
  RequestRecord& record() { return record_; }  // what they learn for the log
  bool is_gone() const { return peer_closed_ || closed_; }
  // From here to the end of the reply a client that goes away closes the connection, and so does an overflow of
  // any of `events`: both end a write that is stuck.
  void abandon_when_gone(std::vector<std::shared_ptr<EventQueue>> events);
  std::function<void()> make_waker();  // callable from any thread, also after the connection is gone
  void wake();

  enum class Woken { Early, InTime };
  boost::asio::awaitable<Woken> wait(std::chrono::milliseconds at_most);  // Early: somebody called wake()
  boost::asio::awaitable<void> wait();
  boost::asio::awaitable<bool> write(std::string bytes);  // false: the connection is closed
  boost::asio::awaitable<void> send(HttpReply reply);
  boost::asio::awaitable<bool> begin_stream(std::string first_bytes);
  boost::asio::awaitable<bool> write_stream(std::string bytes);
  boost::asio::awaitable<bool> end_stream();

 private:
  void read_more();
  void on_read(const boost::system::error_code& error, std::size_t num_bytes);
  void arm_write_timeout();
  std::size_t write_at_once(std::string_view bytes);  // how many were
  // Refused: refusal_ says why, and what follows on the connection is unknown. Nothing: the connection is done.
  enum class Arrival { Request, Refused, Nothing };
  boost::asio::awaitable<Arrival> receive(RequestReader& reader);
  void note_head(const RequestReader& reader);
  bool claim_body(std::size_t num_bytes);    // false: all bodies together would take too much
  boost::asio::awaitable<bool> serve_one();  // false: the connection is done
  boost::asio::awaitable<void> answer(Arrival arrival);
  void end_request();
  void decorate(HttpReply& reply);  // with what every reply carries
  void note_said(std::string_view bytes);
  boost::asio::awaitable<void> linger();
  Connected stays() const;

  boost::asio::ip::tcp::socket socket_;
  ServerContext& context_;
  boost::asio::steady_timer wake_timer_;
  boost::asio::steady_timer write_timer_;
  std::array<char, 32 << 10> incoming_;  // where the pending read puts its bytes
  std::string received_;
  // The request being received or answered.
  HttpRequest request_;
  RouteMatch match_;
  std::optional<HttpReply> refusal_;
  RequestRecord record_;
  Clock::time_point began_;
  std::optional<Clock::time_point> idle_since_;
  std::size_t body_bytes_ = 0;  // claimed of what all bodies may take
  std::vector<std::shared_ptr<EventQueue>> events_;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_answering_ = false;
  bool peer_closed_ = false;
  bool closed_ = false;
  bool abandons_when_gone_ = false;
};

}  // namespace rondo
