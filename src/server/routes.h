// Routes: which path and method lead where. The one table, from which 404, 405 and Allow follow too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/error.h"

namespace rondo {

enum class Route {
  Home,
  Health,
  Metrics,
  Stats,
  Models,
  Model,
  Chat,
  Completions,
  Tokenize,
  Detokenize,
  Messages,
  CountTokens
};

struct RouteMatch {
  std::optional<Route> route;
  std::string argument;             // Model: the name, percent-decoded
  std::string allow;                // the methods of the path; empty when there is no such path
  std::string_view name = "other";  // of the path in logs and counters
  bool needs_key = true;            // where the server has keys
  bool needs_model = false;         // can only be answered once the model is loaded
  bool takes_json = false;
  ApiForm form = ApiForm::OpenAi;  // of its errors
};

// HEAD goes where GET goes. target: as sent, a path with perhaps a query, or a whole address.
RouteMatch find_route(std::string_view method, std::string_view target);

std::string routes_in_words();  // "GET /, GET /health, ...": for who asked for a path that is not there

}  // namespace rondo
