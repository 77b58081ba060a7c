#include "server/reply_answer.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <exception>
#include <optional>
#include <random>
#include <utility>

#include "api/anthropic_request.h"
#include "api/completions_request.h"
#include "api/openai_chat_reply.h"
#include "api/tokenize.h"
#include "base/log.h"
#include "server/context.h"

namespace rondo {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

// One body's stay with the workers. `prepared` is written on the io thread.
struct Preparation {
  std::string body;
  ReplyStamp stamp;
  std::optional<ApiResult<PreparedReply>> prepared;
  std::atomic<bool> is_wanted{true};  // false: the client has left, so a worker that comes to it need not begin
};

// A worker's exception (no memory, say) is the end of one request and of nothing else.
ApiResult<PreparedReply> prepare_or_say_why(PrepareReply prepare, const Preparation& preparation,
                                            const ServerContext& context) try {
  if (!preparation.is_wanted) return refusal({ErrorCode::Cancelled, "the client has left", "", ""});
  return prepare(preparation.body, context.model, *context.prompts, preparation.stamp);
} catch (const std::exception& error) {
  log_error("a request could not be prepared: {}", error.what());
  return refusal({ErrorCode::Internal, "the server could not prepare this request", "", ""});
}

// The engine's side of one reply: a queue for each choice. Cancels those that have not ended, whatever way the handler
// is left.
class OpenChoices {
 public:
  explicit OpenChoices(RequestRunner& runner) : runner_(runner) {}
  ~OpenChoices() {
    for (const Choice& choice : choices_) {
      if (!choice.is_over) runner_.cancel(choice.id);
    }
  }
  OpenChoices(const OpenChoices&) = delete;
  OpenChoices& operator=(const OpenChoices&) = delete;

  Result<void> submit(Connection& connection, std::vector<Request> requests);
  std::vector<std::shared_ptr<EventQueue>> queues() const;

  // What has come since the last call, as bytes of the reply.
  struct Progress {
    std::string bytes;
    std::optional<Error> failed;  // of any choice: the reply cannot go on
    bool overflowed = false;      // likewise
    bool has_news = false;
    bool is_over = false;  // every choice has ended
  };
  Progress take(ReplyWriter& writer, RequestRecord& record);

 private:
  struct Choice {
    RequestId id;
    std::shared_ptr<EventQueue> events;
    bool is_over = false;
  };
  RequestRunner& runner_;
  std::vector<Choice> choices_;
};

Result<void> OpenChoices::submit(Connection& connection, std::vector<Request> requests) {
  choices_.reserve(requests.size());
  for (Request& request : requests) {
    auto events = std::make_shared<EventQueue>(connection.context().options.max_unsent_bytes, connection.make_waker());
    TRY(const RequestId id, runner_.submit(std::move(request), events));
    choices_.push_back({id, std::move(events), false});
  }
  return {};
}

std::vector<std::shared_ptr<EventQueue>> OpenChoices::queues() const {
  std::vector<std::shared_ptr<EventQueue>> out;
  for (const Choice& choice : choices_) out.push_back(choice.events);
  return out;
}

OpenChoices::Progress OpenChoices::take(ReplyWriter& writer, RequestRecord& record) {
  Progress progress;
  progress.is_over = true;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (choice.is_over) continue;
    const EventQueue::Taken taken = choice.events->take();
    if (taken.end) record.note_end(*taken.end);
    choice.is_over = taken.end || taken.failed;
    progress.has_news = progress.has_news || taken.text || taken.is_last();
    progress.overflowed = progress.overflowed || taken.overflowed;
    if (taken.text) progress.bytes += writer.push(static_cast<int>(i), taken.text->event());
    if (taken.end) progress.bytes += writer.finish(static_cast<int>(i), *taken.end);
    if (taken.failed && !progress.failed) progress.failed = taken.failed;
    progress.is_over = progress.is_over && choice.is_over;
  }
  return progress;
}

std::uint64_t random_bits() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

ReplyStamp fresh_stamp() {
  return {.fresh_seed = static_cast<std::int64_t>(random_bits() >> 11),
          .id = fmt::format("{:016x}{:08x}", random_bits(), random_bits() >> 32),
          .created = std::time(nullptr)};
}

void start_preparing(Connection& connection, PrepareReply prepare, const std::shared_ptr<Preparation>& preparation) {
  const ServerContext& context = connection.context();
  asio::post(context.workers.queue(), [preparation, prepare, &context, self = connection.shared_from_this()]() mutable {
    ApiResult<PreparedReply> prepared = prepare_or_say_why(prepare, *preparation, context);
    asio::post(context.io, [preparation, prepared = std::move(prepared), self = std::move(self)]() mutable {
      preparation->prepared = std::move(prepared);
      self->wake();
    });
  });
}

HttpReply error_reply(const ApiError& error, ApiForm form) {
  return HttpReply{http_status(error.code), "application/json", render_error(error, form), {}};
}

awaitable<void> stream_reply(Connection& connection, OpenChoices& choices, ReplyWriter& writer) {
  std::string opening = writer.begin();
  bool is_writable = co_await connection.begin_stream(std::move(opening));
  while (is_writable && !connection.is_gone()) {
    OpenChoices::Progress progress = choices.take(writer, connection.record());
    if (progress.overflowed) {
      connection.record().client_cut_off = true;
      co_return connection.close();
    }
    if (progress.failed) progress.bytes += writer.fail(to_api_error(*progress.failed));
    std::string bytes = std::move(progress.bytes);
    if (!bytes.empty()) is_writable = co_await connection.write_stream(std::move(bytes));
    if (progress.failed || progress.is_over) {
      if (is_writable) co_await connection.end_stream();
      co_return;
    }
    if (progress.has_news || !is_writable) continue;  // more may have come during the write
    const Connection::Woken woken = co_await connection.wait(connection.context().options.comment_every);
    if (woken == Connection::Woken::InTime) {
      std::string sign_of_life = writer.keep_alive();
      is_writable = co_await connection.write_stream(std::move(sign_of_life));
    }
  }
}

awaitable<void> whole_reply(Connection& connection, OpenChoices& choices, ReplyWriter& writer, ApiForm form) {
  while (!connection.is_gone()) {
    OpenChoices::Progress progress = choices.take(writer, connection.record());
    if (progress.overflowed) {
      connection.record().client_cut_off = true;
      co_return connection.close();
    }
    if (progress.failed || progress.is_over) {
      HttpReply message = progress.failed ? error_reply(to_api_error(*progress.failed), form)
                                          : HttpReply{200, "application/json", std::move(progress.bytes), {}};
      co_await connection.send(std::move(message));
      co_return;
    }
    if (!progress.has_news) co_await connection.wait();
  }
}

}  // namespace

PrepareReply find_preparation(Route route) {
  switch (route) {
    case Route::Chat: return prepare_chat_reply;
    case Route::Completions: return prepare_completions;
    case Route::Messages: return prepare_messages;
    case Route::CountTokens: return prepare_count_tokens;
    case Route::Tokenize: return prepare_tokenize;
    case Route::Detokenize: return prepare_detokenize;
    default: return nullptr;
  }
}

awaitable<void> answer_with_reply(Connection& connection, PrepareReply prepare, ApiForm form, std::string body) {
  const auto preparation = std::make_shared<Preparation>();
  preparation->body = std::move(body);
  preparation->stamp = fresh_stamp();
  start_preparing(connection, prepare, preparation);
  while (!preparation->prepared) {
    if (connection.is_gone()) {
      preparation->is_wanted = false;
      co_return;
    }
    co_await connection.wait();
  }
  if (!*preparation->prepared) {
    HttpReply refused = error_reply(preparation->prepared->error(), form);
    co_await connection.send(std::move(refused));
    co_return;
  }
  PreparedReply& prepared = **preparation->prepared;
  if (prepared.requests.empty()) {
    HttpReply ready{200, "application/json", std::move(prepared.body), {}};
    co_await connection.send(std::move(ready));
    co_return;
  }
  OpenChoices choices(*connection.context().runner);
  const Result<void> submitted = choices.submit(connection, std::move(prepared.requests));
  if (!submitted) {
    HttpReply refused = error_reply(to_api_error(submitted.error()), form);
    co_await connection.send(std::move(refused));
    co_return;
  }
  connection.abandon_when_gone(choices.queues());
  if (prepared.delivery == Delivery::Streamed) {
    co_await stream_reply(connection, choices, *prepared.writer);
  } else {
    co_await whole_reply(connection, choices, *prepared.writer, form);
  }
}

}  // namespace rondo
