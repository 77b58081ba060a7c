// GET /stats: what the engine is doing, as JSON for people and for the page's panel. docs/api.md has the fields.
#pragma once

#include <string>

#include "api/served_model.h"
#include "engine/request_runner.h"

namespace rondo {

std::string render_stats(const ServedModel& model, const EngineStatus& engine);

}  // namespace rondo
