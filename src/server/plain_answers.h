// Answers that need no waiting: models, health, metrics, OPTIONS and the first page.
#pragma once

#include "server/context.h"
#include "server/http_message.h"
#include "server/routes.h"

namespace rondo {

// head: one that the gate let in, of a route that is not a conversation with the engine.
HttpReply answer_plainly(const HttpRequest& head, const RouteMatch& match, const ServerContext& context);

}  // namespace rondo
