#include "server/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <iterator>

#include "api/error.h"

namespace rondo {

namespace {

constexpr std::string_view kBearer = "bearer ";
// Of Anthropic's API. The later one takes sampling out of it, which here is an extension of either.
constexpr std::string_view kVersions[] = {"2023-06-01", "2026-10-21"};

bool speaks(std::string_view version) {
  return version.empty() || std::find(std::begin(kVersions), std::end(kVersions), version) != std::end(kVersions);
}

std::string_view key_of(const HttpRequest& head) {
  const std::string_view authorization = head.authorization;
  if (boost::beast::iequals(authorization.substr(0, kBearer.size()), kBearer)) {
    std::string_view key = authorization.substr(kBearer.size());
    while (key.starts_with(' ')) key.remove_prefix(1);
    return key;
  }
  return head.x_api_key;
}

HttpReply refuse_key(const RouteMatch& match, std::string_view key) {
  HttpReply reply = refusal_reply(
      match, 401,
      key.empty() ? "no API key: send 'Authorization: Bearer KEY' or 'x-api-key: KEY'" : "this API key is not known");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace

HttpReply refusal_reply(const RouteMatch& match, int status, std::string_view message) {
  return HttpReply{status, "application/json", render_http_error(status, message, match.form), {}};
}

std::optional<HttpReply> refuse_at_gate(const HttpRequest& head, const RouteMatch& match,
                                        const ServerContext& context) {
  const bool is_options = head.method == "OPTIONS" && !match.allow.empty();
  if (is_options) return std::nullopt;
  const ApiKeys& keys = context.options.keys;
  if (keys.are_needed() && (match.needs_key || match.allow.empty()) && !keys.admit(key_of(head))) {
    return refuse_key(match, key_of(head));
  }
  if (match.allow.empty()) return refusal_reply(match, 404, "no such path; there are " + routes_in_words());
  if (!match.route) {
    HttpReply reply =
        refusal_reply(match, 405, fmt::format("{} is not for this path: it takes {}", head.method, match.allow));
    reply.headers.emplace_back("Allow", match.allow);
    return reply;
  }
  if (match.takes_json && !is_json_type(head.content_type)) {
    return refusal_reply(match, 415, "send the body with Content-Type: application/json");
  }
  if (match.form == ApiForm::Anthropic && !speaks(head.anthropic_version)) {
    return refusal_reply(match, 400,
                         fmt::format("anthropic-version: {} are spoken here", fmt::join(kVersions, " and ")));
  }
  if (match.needs_model && !context.is_ready()) {
    return refusal_reply(match, 503, "the model is still loading; /health says when it is ready");
  }
  return std::nullopt;
}

}  // namespace rondo
