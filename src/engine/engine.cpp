#include "engine/engine.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "engine/inbox.h"
#include "engine/scheduler.h"
#include "model/model.h"

namespace rondo {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kIdleTurn{250};  // an idle loop still shows that it lives

}  // namespace

// What other threads see is atomic or behind the inbox; the rest belongs to the engine thread.
struct Engine::State {
  State(Model& m, const Tokenizer* tokenizer, EngineOptions o)
      : model(m), facts(m.facts()), options(o), scheduler(facts, tokenizer) {
    slices.reserve(static_cast<std::size_t>(facts.max_streams));
    windows.reserve(static_cast<std::size_t>(facts.max_streams));
    kept.reserve(static_cast<std::size_t>(facts.max_streams));
  }

  void turn(const std::stop_token& stop);
  void admit();
  void fill(const RoundPlan& plan);
  void run_round(const RoundPlan& plan);
  void retire_finished(const RoundPlan& plan);

  Model& model;
  const ModelFacts facts;
  const EngineOptions options;
  Inbox inbox;
  Scheduler scheduler;
  std::vector<Slice> slices;
  std::vector<Window> windows;
  std::vector<Kept> kept;

  std::uint64_t ended_seen = 0;

  std::atomic<std::uint64_t> next_id{1};
  std::atomic<int> open{0};  // submitted and not yet ended, for the queue's bound
  std::atomic<int> running{0}, queued{0};
  std::atomic<bool> stopped{false};
  std::atomic<Clock::rep> heartbeat{Clock::now().time_since_epoch().count()};
  std::atomic<std::uint64_t> prompt_tokens{0}, completion_tokens{0}, rounds{0}, requests{0};
};

Engine::Engine(Model& model, const Tokenizer* tokenizer, EngineOptions options)
    : state_(std::make_unique<State>(model, tokenizer, options)) {}
Engine::~Engine() = default;

Result<RequestId> Engine::submit(Request request, std::shared_ptr<EventSink> sink) {
  State& s = *state_;
  if (s.stopped) return failure(ErrorCode::Unavailable, "the engine has stopped");
  if (request.prompt_ids.empty()) return failure(ErrorCode::InvalidArgument, "the prompt has no tokens");
  if (request.max_tokens < 1) return failure(ErrorCode::InvalidArgument, "max_tokens must be at least 1");
  for (const std::int32_t id : request.prompt_ids) {
    if (id >= 0 && id < s.facts.vocab_size) continue;
    return failure(ErrorCode::InvalidArgument,
                   fmt::format("token id {} is not in the vocabulary of {}", id, s.facts.vocab_size));
  }
  const auto window = request.prompt_ids.size() + static_cast<std::size_t>(request.max_tokens);
  if (window > static_cast<std::size_t>(s.facts.context_tokens)) {
    return failure(ErrorCode::TooLong,
                   fmt::format("the prompt has {} tokens and max_tokens is {}, together {}; the context holds {}",
                               request.prompt_ids.size(), request.max_tokens, window, s.facts.context_tokens));
  }
  if (s.open.fetch_add(1) >= s.options.max_queued + s.facts.max_streams) {
    s.open.fetch_sub(1);
    return failure(ErrorCode::QueueFull, fmt::format("{} requests are waiting already", s.options.max_queued));
  }
  const RequestId id{s.next_id.fetch_add(1)};
  ++s.requests;
  s.inbox.post({id, Submission{id, std::move(request), std::move(sink), Clock::now()}});
  return id;
}

void Engine::cancel(RequestId id) { state_->inbox.post({id, std::nullopt}); }

int Engine::context_tokens() const { return state_->facts.context_tokens; }

EngineStatus Engine::status() const {
  const State& s = *state_;
  const Clock::duration age = Clock::now().time_since_epoch() - Clock::duration(s.heartbeat.load());
  return {.heartbeat_age_ms = std::chrono::duration<double, std::milli>(age).count(),
          .stopped = s.stopped,
          .running = s.running,
          .queued = s.queued,
          .prompt_tokens = s.prompt_tokens,
          .completion_tokens = s.completion_tokens,
          .rounds = s.rounds,
          .requests = s.requests};
}

void Engine::run(std::stop_token stop) {
  State& s = *state_;
  while (!stop.stop_requested()) s.turn(stop);
  s.stopped = true;
  const Error stopping{ErrorCode::Unavailable, "the server is stopping"};
  for (const InboxMessage& message : s.inbox.take()) {
    if (message.submission) message.submission->sink->on_failed(stopping);
  }
  s.scheduler.fail_all(stopping);
  s.running = s.queued = 0;
}

void Engine::State::turn(const std::stop_token& stop) {
  heartbeat = Clock::now().time_since_epoch().count();
  admit();
  const RoundPlan& plan = scheduler.plan_round();
  if (plan.empty()) return inbox.wait(stop, kIdleTurn);
  if (!plan.slices.empty()) fill(plan);
  if (!plan.windows.empty()) run_round(plan);
  retire_finished(plan);
}

void Engine::State::admit() {
  for (InboxMessage& message : inbox.take()) {
    if (message.submission) {
      scheduler.enqueue(std::move(*message.submission));
    } else if (const auto slot = scheduler.cancel(message.id)) {
      model.release(*slot);
    }
  }
  scheduler.admit(Clock::now());
  running = scheduler.num_running();
  queued = scheduler.num_waiting();
  open -= static_cast<int>(scheduler.num_ended() - std::exchange(ended_seen, scheduler.num_ended()));
}

void Engine::State::fill(const RoundPlan& plan) {
  slices.clear();
  for (const RoundPlan::Rows& rows : plan.slices) {
    const Sequence& sequence = *rows.sequence;
    slices.push_back({.slot = sequence.slot(),
                      .start_pos = sequence.next_pos(),
                      .ids = sequence.pending_rows().first(static_cast<std::size_t>(rows.count)),
                      .blocks = sequence.blocks()});
  }
  model.prefill(slices);
  for (const RoundPlan::Rows& rows : plan.slices) {
    rows.sequence->commit(rows.count);
    prompt_tokens += static_cast<std::uint64_t>(rows.count);
  }
}

// The round: one shared verify forward over every window, then what each sequence keeps of it.
void Engine::State::run_round(const RoundPlan& plan) {
  windows.clear();
  kept.clear();
  for (const RoundPlan::Rows& rows : plan.windows) {
    const Sequence& sequence = *rows.sequence;
    windows.push_back({.slot = sequence.slot(),
                       .start_pos = sequence.next_pos(),
                       .ids = sequence.pending_rows(),
                       .certain = rows.count,
                       .blocks = sequence.blocks(),
                       .draw = sequence.draw()});
  }
  const auto tokens = model.verify(windows);
  const auto now = Clock::now();
  for (std::size_t i = 0; i < plan.windows.size(); ++i) {
    Sequence& sequence = *plan.windows[i].sequence;
    prompt_tokens += static_cast<std::uint64_t>(plan.windows[i].count - 1);
    kept.push_back({sequence.slot(), plan.windows[i].count});
    sequence.commit(plan.windows[i].count);
    sequence.count_round(0, 0);
    sequence.accept(tokens[i], now);
    ++completion_tokens;
    sequence.send_text();
  }
  model.commit(kept);
  ++rounds;
}

void Engine::State::retire_finished(const RoundPlan& plan) {
  for (const RoundPlan::Rows& rows : plan.windows) {
    if (!rows.sequence->is_finished()) continue;
    rows.sequence->send_end(Clock::now());
    if (const auto slot = scheduler.retire(rows.sequence)) model.release(*slot);
  }
}

}  // namespace rondo
