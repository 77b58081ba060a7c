// The gate: what is refused from a request's head alone, before its body is read: no key, no such path, a wrong method,
// a body that is not JSON, a version of Anthropic's API that is not spoken here, a model that is still loading.
#pragma once

#include <optional>

#include "server/context.h"
#include "server/http_message.h"
#include "server/routes.h"

namespace rondo {

// nullopt: let it in. A preflight (OPTIONS) carries no key, so it needs none.
std::optional<HttpReply> refuse_at_gate(const HttpRequest& head, const RouteMatch& match, const ServerContext& context);

// An error of HTTP's own, as the API of that path words errors.
HttpReply refusal_reply(const RouteMatch& match, int status, std::string_view message);

}  // namespace rondo
