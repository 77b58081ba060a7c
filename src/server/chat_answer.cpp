#include "server/chat_answer.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <optional>
#include <random>
#include <utility>

#include "api/openai_chat.h"
#include "api/openai_reply.h"
#include "base/log.h"

namespace rondo {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

// One body's stay with the workers. `prepared` is written on the io thread.
struct Preparation {
  std::string body;
  std::int64_t fresh_seed = 0;
  std::optional<ApiResult<PreparedChat>> prepared;
};

// Cancels the request unless it has ended: whatever way the handler is left.
class OpenRequest {
 public:
  OpenRequest(RequestRunner& runner, RequestId id) : runner_(runner), id_(id) {}
  ~OpenRequest() {
    if (id_) runner_.cancel(*id_);
  }
  OpenRequest(const OpenRequest&) = delete;
  OpenRequest& operator=(const OpenRequest&) = delete;
  void note(const EventQueue::Taken& taken) {
    if (taken.end || taken.failed) id_.reset();
  }

 private:
  RequestRunner& runner_;
  std::optional<RequestId> id_;
};

std::uint64_t random_bits() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

std::int64_t draw_seed() { return static_cast<std::int64_t>(random_bits() >> 11); }

void start_preparing(Connection& connection, const std::shared_ptr<Preparation>& preparation) {
  const ServerContext& context = connection.context();
  asio::post(context.workers, [preparation, &context, self = connection.shared_from_this()]() mutable {
    ApiResult<PreparedChat> prepared =
        prepare_chat(preparation->body, context.model, context.prompts, preparation->fresh_seed);
    asio::post(context.io, [preparation, prepared = std::move(prepared), self = std::move(self)]() mutable {
      preparation->prepared = std::move(prepared);
      self->wake();
    });
  });
}

HttpReply error_reply(const ApiError& error) {
  HttpReply reply{http_status(error.code), "application/json", render_openai_error(error), {}};
  if (error.code == ErrorCode::QueueFull) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

ReplyFacts facts_of(const ServedModel& model, const PreparedChat& prepared) {
  ReplyFacts facts;
  facts.id = fmt::format("chatcmpl-{:016x}{:08x}", random_bits(), random_bits() >> 32);
  facts.created = std::time(nullptr);
  facts.model = model.name;
  facts.seed = prepared.chat.seed;
  facts.arithmetic = model.arithmetic;
  facts.thinking = prepared.thinking;
  facts.think_end_id = model.think_end_id;
  facts.include_usage = prepared.chat.include_usage;
  return facts;
}

void log_end(const EventQueue::Taken& taken) {
  if (taken.end) {
    log_info("chat: {} prompt tokens, {} reply tokens, {}; {:.0f} ms queued, {:.0f} ms prompt, {:.0f} ms decode",
             taken.end->usage.prompt_tokens, taken.end->usage.completion_tokens, finish_reason_name(taken.end->reason),
             taken.end->timings.queue_ms, taken.end->timings.prompt_ms, taken.end->timings.decode_ms);
  } else if (taken.failed) {
    log_warning("chat: failed: {}", taken.failed->message);
  } else if (taken.overflowed) {
    log_warning("chat: cut off, the client reads too slowly");
  }
}

std::string render_events(StreamedReply& reply, const EventQueue::Taken& taken) {
  std::string bytes;
  if (taken.text) bytes += reply.push(taken.text->event());
  if (taken.end) bytes += reply.finish(*taken.end);
  if (taken.failed) bytes += StreamedReply::fail(to_api_error(*taken.failed));
  return bytes;
}

awaitable<void> stream_reply(Connection& connection, std::shared_ptr<EventQueue> events, OpenRequest& open,
                             ReplyFacts facts) {
  StreamedReply reply(std::move(facts));
  std::string opening = reply.begin();
  bool is_writable = co_await connection.begin_stream(std::move(opening));
  while (is_writable && !connection.is_gone()) {
    const EventQueue::Taken taken = events->take();
    open.note(taken);
    log_end(taken);
    if (taken.overflowed) co_return connection.close();
    std::string bytes = render_events(reply, taken);
    if (!bytes.empty()) is_writable = co_await connection.write_stream(std::move(bytes));
    if (taken.is_last()) {
      if (is_writable) co_await connection.end_stream();
      co_return;
    }
    if (taken.text || !is_writable) continue;  // more may have come during the write
    const Connection::Woken woken = co_await connection.wait(connection.context().options.comment_every);
    if (woken == Connection::Woken::InTime) {
      std::string comment = ": still here\n\n";
      is_writable = co_await connection.write_stream(std::move(comment));
    }
  }
}

awaitable<void> whole_reply(Connection& connection, std::shared_ptr<EventQueue> events, OpenRequest& open,
                            ReplyFacts facts) {
  WholeReply reply(std::move(facts));
  while (!connection.is_gone()) {
    const EventQueue::Taken taken = events->take();
    open.note(taken);
    log_end(taken);
    if (taken.overflowed) co_return connection.close();
    if (taken.text) reply.push(taken.text->event());
    if (taken.end || taken.failed) {
      HttpReply message = taken.failed ? error_reply(to_api_error(*taken.failed))
                                       : HttpReply{200, "application/json", reply.finish(*taken.end), {}};
      co_await connection.send(std::move(message));
      co_return;
    }
    if (!taken.text) co_await connection.wait();
  }
}

}  // namespace

awaitable<void> answer_chat(Connection& connection, std::string body) {
  ServerContext& context = connection.context();
  const auto preparation = std::make_shared<Preparation>();
  preparation->body = std::move(body);
  preparation->fresh_seed = draw_seed();
  start_preparing(connection, preparation);
  while (!preparation->prepared) {
    if (connection.is_gone()) co_return;
    co_await connection.wait();
  }
  if (!*preparation->prepared) {
    HttpReply refused = error_reply(preparation->prepared->error());
    co_await connection.send(std::move(refused));
    co_return;
  }
  PreparedChat& prepared = **preparation->prepared;
  ReplyFacts facts = facts_of(context.model, prepared);
  const auto events = std::make_shared<EventQueue>(context.options.max_unsent_bytes, connection.make_waker());
  const Result<RequestId> id = context.runner.submit(std::move(prepared.request), events);
  if (!id) {
    HttpReply refused = error_reply(to_api_error(id.error()));
    co_await connection.send(std::move(refused));
    co_return;
  }
  OpenRequest open(context.runner, *id);
  connection.abandon_when_gone(events);
  if (prepared.chat.delivery == Delivery::Streamed) {
    co_await stream_reply(connection, events, open, std::move(facts));
  } else {
    co_await whole_reply(connection, events, open, std::move(facts));
  }
}

}  // namespace rondo
