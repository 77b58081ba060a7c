#include "server/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace rondo {

namespace http = boost::beast::http;
using boost::beast::iequals;

struct RequestReader::Parser : http::request_parser<http::string_body> {};

namespace {

constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string text_of(boost::beast::string_view text) { return std::string(text.data(), text.size()); }

}  // namespace

RequestReader::RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes)
    : parser_(std::make_unique<Parser>()), max_header_bytes_(max_header_bytes), max_body_bytes_(max_body_bytes) {
  parser_->header_limit(static_cast<std::uint32_t>(max_header_bytes));
  parser_->body_limit(max_body_bytes);
}

RequestReader::~RequestReader() = default;

bool RequestReader::refuse(int status, std::string message) {
  refusal_ = HttpRefusal{status, std::move(message)};
  return false;
}

bool RequestReader::refuse_long_header() {
  return refuse(431, fmt::format("the request's header is longer than {} bytes", max_header_bytes_));
}

RequestReader::Progress RequestReader::feed(std::string& received) {
  if (!has_begun_) {
    // Some clients send an empty line after a body; RFC 9112 asks servers to pass over it.
    received.erase(0, std::min(received.find_first_not_of("\r\n"), received.size()));
    if (received.empty()) return Progress::Nothing;
    has_begun_ = true;
  }
  if (!header_checked_) {
    const std::size_t before = received.size();
    if (!put(received)) return Progress::Refused;
    header_bytes_ += before - received.size();
    if (header_bytes_ > max_header_bytes_) {  // the parser's own limit leaves out the last line's end
      refuse_long_header();
      return Progress::Refused;
    }
    if (!parser_->is_header_done()) return Progress::InHeader;
    header_checked_ = true;
    if (!check_header()) return Progress::Refused;
    parser_->eager(true);
  }
  if (!parser_->is_done() && !received.empty() && !put(received)) return Progress::Refused;
  return parser_->is_done() ? Progress::Complete : Progress::InBody;
}

bool RequestReader::put(std::string& received) {
  while (!received.empty()) {
    // Fewer bytes than a last chunk's are no whole body, and where one begins Beast asserts that there are more.
    const bool begins_chunks = header_checked_ && !has_body_begun_ && parser_->chunked();
    if (begins_chunks && received.size() < kLastChunk.size()) return true;
    boost::system::error_code error;
    const std::size_t eaten = parser_->put(boost::asio::buffer(received), error);
    received.erase(0, eaten);
    has_body_begun_ = has_body_begun_ || (header_checked_ && eaten > 0);
    if (error == http::error::need_more) {
      // A line that never ends is not part of any header or body worth waiting for.
      return received.size() <= max_header_bytes_ || refuse(400, "a line of the request is too long");
    }
    if (error == http::error::header_limit) {
      return refuse_long_header();
    }
    if (error == http::error::body_limit) {
      return refuse(413, fmt::format("the request's body is longer than {} bytes", max_body_bytes_));
    }
    if (error == http::error::bad_version) return refuse(400, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (error) return refuse(400, fmt::format("not an HTTP request: {}", error.message()));
    if (parser_->is_done() || (parser_->is_header_done() && !header_checked_)) return true;
    if (eaten == 0) return true;
  }
  return true;
}

bool RequestReader::check_header() {
  const auto& header = parser_->get();
  if (header.version() == 11 && header.count(http::field::host) != 1) {
    return refuse(400, "an HTTP/1.1 request must have exactly one Host header");
  }
  if (header.count(http::field::transfer_encoding) > 0 &&
      (!parser_->chunked() || !iequals(header[http::field::transfer_encoding], "chunked"))) {
    return refuse(400, "the only transfer coding understood here is chunked");
  }
  const auto coding = header[http::field::content_encoding];
  if (!coding.empty() && !iequals(coding, "identity")) return refuse(415, "compressed bodies are not understood here");
  const auto expectation = header[http::field::expect];
  if (!expectation.empty()) {
    if (!iequals(expectation, "100-continue")) return refuse(417, "the only expectation met here is 100-continue");
    awaits_continue_ = header.version() == 11 && !parser_->is_done();
  }
  return true;
}

bool RequestReader::take_expectation() { return std::exchange(awaits_continue_, false); }

HttpRequest RequestReader::head() const {
  const auto& message = parser_->get();
  HttpRequest request;
  request.method = text_of(message.method_string());
  request.target = text_of(message.target());
  request.content_type = text_of(message[http::field::content_type]);
  request.authorization = text_of(message[http::field::authorization]);
  request.x_api_key = text_of(message["x-api-key"]);
  request.x_request_id = text_of(message["x-request-id"]);
  request.anthropic_version = text_of(message["anthropic-version"]);
  request.origin = text_of(message[http::field::origin]);
  request.asked_headers = text_of(message[http::field::access_control_request_headers]);
  request.keep_alive = message.keep_alive();
  request.is_http_1_0 = message.version() == 10;
  return request;
}

std::size_t RequestReader::body_bytes() const {
  const auto announced = parser_->content_length();
  return announced ? static_cast<std::size_t>(*announced) : parser_->get().body().size();
}

HttpRequest RequestReader::take() {
  CHECK(parser_->is_done());
  HttpRequest request = head();
  request.body = std::move(parser_->get().body());
  return request;
}

}  // namespace rondo
