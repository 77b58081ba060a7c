#include "server/metrics.h"

#include <fmt/format.h>

#include "server/exposition.h"

namespace rondo {

namespace {

double number(std::uint64_t count) { return static_cast<double>(count); }

void put_http(Exposition& out, const MetricsView& view) {
  const HttpCounts& http = view.http;
  out.family("rondo_http_requests_total", "counter", "Requests answered or given up, by route and status.");
  for (const auto& [key, count] : http.requests) {
    out.sample({{"route", key.first}, {"status", std::to_string(key.second)}}, number(count));
  }
  out.gauge("rondo_http_connections", "Connections open.", view.num_connections);
  out.gauge("rondo_http_body_bytes", "Bytes of request bodies held.", static_cast<double>(http.body_bytes));
  out.counter("rondo_clients_gone_total", "Clients that left before the end of their reply.",
              number(http.clients_gone));
  out.counter("rondo_clients_cut_off_total", "Clients cut off because they read too slowly.",
              number(http.clients_cut_off));
}

void put_requests(Exposition& out, const EngineStatus& engine) {
  out.gauge("rondo_streams_running", "Replies being made: sequences that are filled or decoded.", engine.running);
  out.gauge("rondo_requests_queued", "Requests that wait for a place.", engine.queued);
  out.counter("rondo_requests_taken_total", "Requests the engine took in.", number(engine.requests));
  out.family("rondo_requests_ended_total", "counter", "Requests that ended, by reason.");
  out.sample({{"reason", "stop"}}, number(engine.ended.stop));
  out.sample({{"reason", "length"}}, number(engine.ended.length));
  out.sample({{"reason", "cancelled"}}, number(engine.ended.cancelled));
  out.sample({{"reason", "failed"}}, number(engine.ended.failed));
}

void put_rounds(Exposition& out, const RoundCounters& work) {
  out.counter("rondo_prompt_tokens_total", "Prompt rows computed.", number(work.prompt_tokens));
  out.counter("rondo_prefix_hits_total", "Prompts of which a part was in the prefix cache.", number(work.prefix_hits));
  out.counter("rondo_prefix_tokens_total", "Prompt tokens found in the prefix cache.", number(work.cached_tokens));
  out.counter("rondo_prefix_states_saved_total", "States put into the prefix cache.", number(work.states_saved));
  out.counter("rondo_completion_tokens_total", "Tokens of replies.", number(work.completion_tokens));
  out.counter("rondo_rounds_total", "Rounds: one verify forward each.", number(work.rounds));
  out.counter("rondo_windows_total", "Streams served, summed over the rounds.", number(work.windows));
  out.counter("rondo_rows_total", "Rows of all verify forwards, drafts among them.", number(work.rows));
  out.counter("rondo_head_passes_total", "Passes of the draft head: absorb passes and deeper levels.",
              number(work.head_passes));
  out.family("rondo_drafts_verified_total", "counter", "Drafts verified, by depth.");
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    out.sample({{"depth", std::to_string(depth + 1)}}, number(work.drafted[depth]));
  }
  out.family("rondo_drafts_kept_total", "counter", "Drafts kept, by depth.");
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    out.sample({{"depth", std::to_string(depth + 1)}}, number(work.accepted[depth]));
  }
  out.counter("rondo_round_planned_seconds_total", "What the rounds were planned to take.", work.planned_ms / 1000);
  out.counter("rondo_round_seconds_total", "What the rounds took.", work.real_ms / 1000);
  out.counter("rondo_prompt_fill_seconds_total", "Slices of prompts between rounds.", work.fill_ms / 1000);
  out.histogram("rondo_time_to_first_token_seconds", "From a request's arrival at the engine to its first token.",
                work.first_token);
  out.histogram("rondo_time_between_tokens_seconds",
                "Of every later token: the time since its stream's last round, shared by that round's tokens.",
                work.between_tokens);
}

}  // namespace

std::string render_metrics(const MetricsView& view) {
  Exposition out;
  out.family("rondo_info", "gauge", "1, with what is served as labels.");
  out.sample({{"version", view.version}, {"model", view.model}, {"arithmetic", view.arithmetic}}, 1);
  out.gauge("rondo_ready", "1 once the model is loaded, 0 before.", view.engine != nullptr ? 1 : 0);
  put_http(out, view);
  if (view.engine == nullptr) return out.take();
  out.gauge("rondo_heartbeat_age_seconds", "Since the engine's loop last came round.",
            view.engine->heartbeat_age_ms / 1000);
  put_requests(out, *view.engine);
  out.gauge("rondo_kv_blocks", "KV blocks there are.", view.engine->num_blocks);
  out.gauge("rondo_kv_blocks_used", "KV blocks held by requests.", view.engine->blocks_held);
  put_rounds(out, view.engine->work);
  return out.take();
}

}  // namespace rondo
