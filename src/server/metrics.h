// GET /metrics: what the io thread and the engine have counted, as Prometheus reads it. docs/metrics.md lists every
// name; a test holds that page to what is exported here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "engine/request_runner.h"

namespace rondo {

// What the io thread counts; io thread only.
struct HttpCounts {
  // By route (RouteMatch::name) and status: every request that was answered or given up.
  std::map<std::pair<std::string_view, int>, std::uint64_t> requests;
  std::uint64_t clients_gone = 0;     // left before their reply's end
  std::uint64_t clients_cut_off = 0;  // read too slowly
  std::size_t body_bytes = 0;         // of requests that are being received or answered; a gauge
};

struct MetricsView {
  const HttpCounts& http;
  int num_connections = 0;
  std::string_view version, model, arithmetic;
  const EngineStatus* engine = nullptr;  // null while the model loads: then its families are left out
};
std::string render_metrics(const MetricsView& view);

}  // namespace rondo
