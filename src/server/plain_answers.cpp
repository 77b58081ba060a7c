#include "server/plain_answers.h"

#include "api/error.h"
#include "api/openai_models.h"
#include "api/stats.h"
#include "base/check.h"
#include "server/cors.h"
#include "server/gate.h"

namespace rondo {

namespace {

HttpReply json_reply(int status, std::string body) {
  return HttpReply{status, "application/json", std::move(body), {}};
}

HttpReply answer_options(const HttpRequest& head, const RouteMatch& match, const ServerContext& context) {
  HttpReply reply{204, "", "", {{"Allow", match.allow}}};
  if (!head.origin.empty() && is_allowed_origin(context.options.allowed_origins, head.origin)) {
    for (auto& header : preflight_headers(match.allow, head.asked_headers)) reply.headers.push_back(std::move(header));
  }
  return reply;
}

HttpReply answer_model(const ServedModel& model, const std::string& name) {
  const ApiResult<std::string> found = render_model(model, name);
  if (found) return json_reply(200, *found);
  return json_reply(http_status(found.error().code), render_openai_error(found.error()));
}

HttpReply answer_health(const ServerContext& context) {
  if (!context.is_ready()) return json_reply(503, render_loading());
  Health health = render_health(context.runner->status(), context.options.heartbeat_stale_ms);
  return json_reply(health.status, std::move(health.body));
}

HttpReply answer_metrics(const ServerContext& context) {
  const EngineStatus engine = context.is_ready() ? context.runner->status() : EngineStatus{};
  const MetricsView view{.http = context.counts,
                         .num_connections = static_cast<int>(context.connections.size()),
                         .version = context.options.version,
                         .model = context.model.name,
                         .arithmetic = context.model.arithmetic,
                         .engine = context.is_ready() ? &engine : nullptr};
  return HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", render_metrics(view), {}};
}

}  // namespace

HttpReply answer_plainly(const HttpRequest& head, const RouteMatch& match, const ServerContext& context) {
  if (head.method == "OPTIONS") return answer_options(head, match, context);
  switch (*match.route) {
    case Route::Home: return context.page;
    case Route::Health: return answer_health(context);
    case Route::Metrics: return answer_metrics(context);
    case Route::Stats: return json_reply(200, render_stats(context.model, context.runner->status()));
    case Route::Models: return json_reply(200, render_models(context.model));
    case Route::Model: return answer_model(context.model, match.argument);
    default: break;
  }
  CHECK(!"a route that converses with the engine is not answered plainly");
  return {};
}

}  // namespace rondo
