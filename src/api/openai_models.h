// GET /v1/models, in the fields of OpenAI's API and of Anthropic's, GET /v1/models/NAME and GET /health, as JSON.
#pragma once

#include <string>
#include <string_view>

#include "api/error.h"
#include "api/served_model.h"
#include "engine/request_runner.h"

namespace rondo {

std::string render_models(const ServedModel& model);  // the served name, then its aliases
ApiResult<std::string> render_model(const ServedModel& model, std::string_view name);

// 200 while the engine's loop comes round, 503 when it has stopped or not come round for stale_after_ms.
struct Health {
  int status = 200;
  std::string body;
};
std::string render_loading();  // the body of /health's 503 while the model loads
Health render_health(const EngineStatus& engine, double stale_after_ms);

}  // namespace rondo
