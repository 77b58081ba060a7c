#include "api/openai_models.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <utility>

#include "base/json.h"

namespace rondo {

namespace {

json::Object model_entry(const ServedModel& model, const std::string& name) {
  json::Object entry;
  entry["id"] = name;
  entry["object"] = "model";
  entry["created"] = model.created;
  entry["owned_by"] = "rondo";
  entry["max_model_len"] = model.context_tokens;
  // Anthropic's clients read these from the same path.
  entry["type"] = "model";
  entry["display_name"] = name;
  entry["created_at"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(model.created)));
  return entry;
}

}  // namespace

std::string render_models(const ServedModel& model) {
  json::Array entries;
  entries.push_back(model_entry(model, model.name));
  for (const std::string& alias : model.aliases) {
    if (alias != "*") entries.push_back(model_entry(model, alias));
  }
  json::Object out;
  out["object"] = "list";
  out["has_more"] = false;
  out["first_id"] = entries.front().at("id");
  out["last_id"] = entries.back().at("id");
  out["data"] = std::move(entries);
  return to_json(out);
}

ApiResult<std::string> render_model(const ServedModel& model, std::string_view name) {
  bool known = name == model.name;
  for (const std::string& alias : model.aliases) known = known || name == alias || alias == "*";
  if (known) return to_json(model_entry(model, std::string(name)));
  return refusal({ErrorCode::NotFound, fmt::format("model '{}' is not served here; served: '{}'", name, model.name),
                  "model", "model_not_found"});
}

std::string render_loading() { return to_json(json::Object{{"status", "loading"}}); }

Health render_health(const EngineStatus& engine, double stale_after_ms) {
  const bool stale = engine.heartbeat_age_ms > stale_after_ms;
  json::Object out;
  out["status"] = engine.stopped ? "stopped" : stale ? "stale" : "ok";
  out["heartbeat_age_ms"] = engine.heartbeat_age_ms;
  out["running"] = engine.running;
  out["queued"] = engine.queued;
  return Health{engine.stopped || stale ? 503 : 200, to_json(out)};
}

}  // namespace rondo
