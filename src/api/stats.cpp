#include "api/stats.h"

#include <algorithm>
#include <span>

#include "base/json.h"

namespace rondo {

namespace {

// null where there is nothing to divide by: no number is better than a made-up one.
json::Value ratio(double value, double of) { return of > 0 ? json::Value(value / of) : json::Value(nullptr); }

double count(std::uint64_t number) { return static_cast<double>(number); }

json::Object streams_of(const EngineStatus& engine) {
  json::Object out;
  out["running"] = engine.running;
  out["filling"] = engine.filling;
  out["queued"] = engine.queued;
  out["max"] = engine.max_streams;
  return out;
}

// Drafts by depth, the first depth first; as far as any was ever verified.
void put_drafts(json::Object& out, const RoundCounters& counters, const RoundCounters& ever) {
  int depths = kMaxDepth;
  while (depths > 0 && ever.drafted[depths - 1] == 0) --depths;
  const auto of = [&](const std::uint64_t(&by_depth)[kMaxDepth]) {
    const auto first = std::span(by_depth).first(static_cast<std::size_t>(depths));
    return json::Array(first.begin(), first.end());
  };
  out["drafted"] = of(counters.drafted);
  out["accepted"] = of(counters.accepted);
}

json::Object rounds_of(const RoundCounters& recent, const RoundCounters& ever, bool priced) {
  const double rounds = count(recent.rounds);
  json::Object out;
  out["seconds"] = StatusBoard::kRecentSeconds;
  out["rounds"] = recent.rounds;
  out["streams_a_round"] = ratio(count(recent.windows), rounds);
  out["rows_a_round"] = ratio(count(recent.rows), rounds);
  out["planned_ms"] = priced ? ratio(recent.planned_ms, rounds) : json::Value(nullptr);
  out["real_ms"] = ratio(recent.real_ms, rounds);
  put_drafts(out, recent, ever);
  return out;
}

// Rates are of the time that rounds without prompt rows took: they say how fast it decodes, not how much it was asked.
json::Object tokens_of(const EngineStatus& engine) {
  const RoundCounters& recent = engine.recent;
  const RoundCounters& lone = recent.lone_tokens > 0 ? recent : engine.work;
  json::Object out;
  out["together"] = ratio(1000 * count(recent.decode_tokens), recent.decode_ms);
  out["each"] = ratio(1000 * count(recent.decode_tokens), recent.decode_stream_ms);
  out["alone"] = ratio(1000 * count(lone.lone_tokens), lone.lone_ms);
  out["by_second"] = json::Array(engine.tokens_by_second.begin(), engine.tokens_by_second.end());
  return out;
}

json::Object totals_of(const EngineStatus& engine) {
  const RoundCounters& counters = engine.work;
  json::Object out;
  out["requests"] = engine.requests;
  out["rounds"] = counters.rounds;
  out["rows"] = counters.rows;
  out["prompt_tokens"] = counters.prompt_tokens;
  out["completion_tokens"] = counters.completion_tokens;
  put_drafts(out, counters, counters);
  return out;
}

std::uint64_t used_bytes(const MemoryPlan::Item& item, const EngineStatus& engine) {
  const auto share = [&](int held, int all) {
    return all > 0 ? item.bytes / static_cast<std::uint64_t>(all) * static_cast<std::uint64_t>(held) : 0;
  };
  switch (item.held) {
    case MemoryPlan::Held::AsUsed:
    case MemoryPlan::Held::Always: return item.bytes;
    case MemoryPlan::Held::ByBlocks: return share(engine.blocks_held, engine.num_blocks);
    case MemoryPlan::Held::BySlots: return share(engine.running, engine.max_streams);
  }
  return item.bytes;
}

json::Array memory_of(const MemoryPlan& plan, const EngineStatus& engine) {
  json::Array out;
  for (const MemoryPlan::Item& item : plan.lines) {
    if (item.held == MemoryPlan::Held::AsUsed) continue;
    json::Object line;
    line["what"] = item.what;
    line["bytes"] = item.bytes;
    line["used_bytes"] = used_bytes(item, engine);
    line["mapped"] = item.mapped;
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace

std::string render_stats(const ServedModel& model, const EngineStatus& engine) {
  json::Object out;
  out["model"] = model.name;
  out["arithmetic"] = model.arithmetic;
  out["context_tokens"] = model.context_tokens;
  out["streams"] = streams_of(engine);
  out["recent"] = rounds_of(engine.recent, engine.work, model.drafts_priced);
  out["tokens_per_s"] = tokens_of(engine);
  out["total"] = totals_of(engine);
  out["memory"] = memory_of(model.memory, engine);
  return to_json(out);
}

}  // namespace rondo
