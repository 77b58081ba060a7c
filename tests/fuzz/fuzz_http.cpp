// Any bytes as what a client sends: the requests in them are the same however the bytes were cut, none is larger than
// the limits, and each is refused with a 4xx in the API's own words or becomes requests that an engine could run.
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "server/context.h"
#include "server/gate.h"
#include "server/reply_answer.h"
#include "server/request_reader.h"
#include "server/routes.h"
#include "tests/api/fake_prompts.h"

namespace {

using namespace rondo;

constexpr std::size_t kMaxHeaderBytes = 512, kMaxBodyBytes = 2048;
constexpr int kContextTokens = 1000;

struct Received {
  std::vector<HttpRequest> requests;
  int refusal = 0;  // the status of the first refusal, after which the connection closes; 0 = none
};

// cut: 0 = all at once; else how many bytes come at a time.
Received receive(std::string_view bytes, std::size_t cut) {
  Received out;
  std::string received;
  auto reader = std::make_unique<RequestReader>(kMaxHeaderBytes, kMaxBodyBytes);
  const std::size_t step = cut == 0 ? bytes.size() : cut;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    received += bytes.substr(at, step);
    auto progress = reader->feed(received);
    while (progress == RequestReader::Progress::Complete) {
      CHECK(reader->has_head());
      out.requests.push_back(reader->take());
      reader = std::make_unique<RequestReader>(kMaxHeaderBytes, kMaxBodyBytes);
      progress = reader->feed(received);
    }
    if (progress == RequestReader::Progress::Refused) {
      out.refusal = reader->refusal().status;
      CHECK(out.refusal >= 400 && out.refusal < 500 && !reader->refusal().message.empty());
      return out;
    }
  }
  return out;
}

bool is_same(const HttpRequest& a, const HttpRequest& b) {
  return a.method == b.method && a.target == b.target && a.body == b.body && a.content_type == b.content_type &&
         a.keep_alive == b.keep_alive;
}

void check_error(int status, std::string_view body) {
  CHECK(status >= 400 && status < 500);
  const auto document = parse_json(body);
  CHECK(document.has_value());
  const json::Value& error = document->at("error");
  CHECK(!error.at("message").as_string().empty() && !error.at("type").as_string().empty());
}

ServedModel served_model() {
  ServedModel model;
  model.name = "demo";
  model.vocab_size = 256;
  model.context_tokens = kContextTokens;
  model.max_tokens = 100;
  model.arithmetic = "fake";
  return model;
}

void check_runnable(const PreparedReply& reply) {
  CHECK(reply.requests.empty() ? parse_json(reply.body).has_value() : reply.writer != nullptr);
  for (const Request& request : reply.requests) {
    CHECK(!request.prompt_ids.empty() && request.max_tokens >= 1);
    CHECK(request.prompt_ids.size() + static_cast<std::size_t>(request.max_tokens) <= kContextTokens);
    for (const std::int32_t id : request.prompt_ids) CHECK(id >= 0 && id < 256);
  }
}

void answer(const HttpRequest& request) {
  static boost::asio::io_context io;
  static Workers workers(1);
  static ServerContext context(ServerOptions{}, io, workers);
  static const ServedModel model = served_model();
  static const FakePrompts prompts;
  const RouteMatch match = find_route(request.method, request.target);
  if (const auto refused = refuse_at_gate(request, match, context)) {
    if (refused->status == 503) {  // no model is loaded here: as far as the gate goes, it may come in
      CHECK(match.needs_model);
    } else {
      return check_error(refused->status, refused->body);
    }
  }
  if (!match.route) return;  // OPTIONS
  const PrepareReply prepare = find_preparation(*match.route);
  if (prepare == nullptr) return;
  const auto prepared = prepare(request.body, model, prompts, ReplyStamp{7, "id", 0});
  if (prepared) return check_runnable(*prepared);
  check_error(http_status(prepared.error().code), render_openai_error(prepared.error()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // Beast looks at a header when it is whole, or at once when much of it comes at once. So the last one is made whole:
  // what is refused is then refused in both cases.
  const std::string text = std::string(reinterpret_cast<const char*>(bytes), size) + "\r\n\r\n";
  const Received whole = receive(text, 0);
  for (const std::size_t cut : {1UL, 7UL}) {
    const Received pieces = receive(text, cut);
    CHECK(pieces.requests.size() == whole.requests.size() && (pieces.refusal == 0) == (whole.refusal == 0));
    for (std::size_t i = 0; i < whole.requests.size(); ++i) CHECK(is_same(whole.requests[i], pieces.requests[i]));
  }
  for (const HttpRequest& request : whole.requests) {
    CHECK(request.body.size() <= kMaxBodyBytes);
    answer(request);
  }
  return 0;
}
