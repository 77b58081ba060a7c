#include "cli/ladder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/decision_log.h"

namespace rondo {

namespace {

class Reply final : public EventSink {
 public:
  explicit Reply(int most_tokens) { ids.reserve(static_cast<std::size_t>(most_tokens)); }
  void on_text(const TextEvent& event) override { ids.insert(ids.end(), event.ids.begin(), event.ids.end()); }
  void on_end(EndEvent) override { ended = true; }
  void on_failed(Error error) override { failed = std::move(error); }

  std::vector<std::int32_t> ids;
  bool ended = false;
  std::optional<Error> failed;
};

}  // namespace

void DecodeWindow::note(const TurnMark& mark, bool all_began, bool any_ended) {
  if (any_ended) closed_ = true;
  if (closed_) return;
  if (!began_ && all_began) {
    began_ = true;
    begin_ = mark;
  }
  if (began_) end_ = mark;
}

void LadderSide::add(const DecodeWindow& window) {
  const TurnMark &from = window.begin(), &to = window.end();
  const std::uint64_t new_tokens = to.counters.completion_tokens - from.counters.completion_tokens;
  if (new_tokens == 0) return;
  tok_s.push_back(static_cast<double>(new_tokens) / window.ms() * 1000);
  ms += window.ms();
  waited_ms += to.waited_ms - from.waited_ms;
  tokens += new_tokens;
  rounds += to.counters.rounds - from.counters.rounds;
  levels += to.counters.head_passes - from.counters.head_passes;
  verify_passes += to.verify_passes - from.verify_passes;
  head_passes += to.head_passes - from.head_passes;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    drafted[depth] += to.counters.drafted[depth] - from.counters.drafted[depth];
    accepted[depth] += to.counters.accepted[depth] - from.counters.accepted[depth];
  }
}

Ladder::Ladder(CountingModel& model, ScriptedModel* script, CostTables costs, LadderOptions options)
    : model_(model),
      script_(script),
      options_(std::move(options)),
      engine_(model, nullptr, std::move(costs), clock_, EngineOptions{}) {}

TurnMark Ladder::mark() const {
  return {.at = clock_.now(),
          .counters = engine_.counters(),
          .verify_passes = model_.verify_passes(),
          .head_passes = model_.head_passes(),
          .waited_ms = model_.waited_ms()};
}

Request Ladder::request(const PromptKind& kind, int stream, double temperature, bool drafted) const {
  Request request;
  request.prompt_ids = kind.prompts[static_cast<std::size_t>(stream) % kind.prompts.size()];
  request.max_tokens = options_.reply_tokens;
  request.draw.temperature = static_cast<float>(temperature);
  request.draw.seed = static_cast<std::uint64_t>(stream);
  if (kind.ends) request.end_ids = options_.end_ids;
  if (!drafted) request.max_draft_depth = 0;
  return request;
}

// All streams are submitted at once and the engine is turned, here and not on a thread of its own, until they end.
Result<Ladder::Run> Ladder::run(const PromptKind& kind, int first_stream, int num_streams, double temperature,
                                bool drafted) {
  std::vector<std::shared_ptr<Reply>> replies;
  for (int i = 0; i < num_streams; ++i) {
    replies.push_back(std::make_shared<Reply>(options_.reply_tokens));
    TRY_VOID(engine_.submit(request(kind, first_stream + i, temperature, drafted), replies.back()));
  }
  Run run;
  std::uint64_t rounds = engine_.counters().rounds;
  while (engine_.turn()) {
    const bool was_open = run.window.is_open();
    run.window.note(mark(), std::ranges::none_of(replies, [](const auto& reply) { return reply->ids.empty(); }),
                    std::ranges::any_of(replies, [](const auto& reply) { return reply->ended || reply->failed; }));
    if (was_open && run.window.is_open() && std::exchange(rounds, engine_.counters().rounds) != rounds) {
      run.planned_ms.push_back(engine_.log().last().planned_ms);
      run.real_ms.push_back(engine_.log().last().real_ms);
    }
  }
  for (const auto& reply : replies) {
    if (reply->failed) return tl::unexpected<Error>(*reply->failed);
    run.replies.push_back(std::move(reply->ids));
  }
  return run;
}

Result<void> Ladder::run_alone(const PromptKind& kind, int num_streams, double temperature) {
  if (alone_kind_ != kind.name || alone_temperature_ != temperature) alone_.clear();
  alone_kind_ = kind.name;
  alone_temperature_ = temperature;
  while (static_cast<int>(alone_.size()) < num_streams) {
    const auto stream = static_cast<int>(alone_.size());
    TRY(Run alone, run(kind, stream, 1, temperature, false));
    alone_.push_back(std::move(alone.replies[0]));
    if (script_ != nullptr) script_->set_continuation(static_cast<std::uint64_t>(stream), alone_.back());
  }
  return {};
}

Result<void> Ladder::run_side(const PromptKind& kind, int streams, double temperature, bool drafted, LadderSide& side) {
  TRY(const Run done, run(kind, 0, streams, temperature, drafted));
  side.add(done.window);
  side.planned_ms.insert(side.planned_ms.end(), done.planned_ms.begin(), done.planned_ms.end());
  side.real_ms.insert(side.real_ms.end(), done.real_ms.begin(), done.real_ms.end());
  for (std::size_t i = 0; i < done.replies.size(); ++i) {
    ++side.num_replies;
    if (done.replies[i] == alone_[i]) ++side.num_equal;
  }
  return {};
}

Result<LadderRow> Ladder::run_cell(const PromptKind& kind, int streams, double temperature, const PairDone& pair_done) {
  LadderRow row{
      .prompts = kind.name, .streams = streams, .temperature = temperature, .plain = {}, .drafted = {}, .ratios = {}};
  TRY_VOID(run_alone(kind, streams, temperature));
  for (int pair = 0; pair < options_.pairs; ++pair) {
    pair_done(pair);
    const std::size_t timed = row.plain.tok_s.size() + row.drafted.tok_s.size();
    TRY_VOID(run_side(kind, streams, temperature, false, row.plain));
    if (!drafts()) continue;
    TRY_VOID(run_side(kind, streams, temperature, true, row.drafted));
    if (row.plain.tok_s.size() + row.drafted.tok_s.size() == timed + 2)
      row.ratios.push_back(row.drafted.tok_s.back() / row.plain.tok_s.back());
  }
  return row;
}

}  // namespace rondo
