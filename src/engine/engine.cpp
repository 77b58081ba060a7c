#include "engine/engine.h"

#include <fmt/format.h>

#include <utility>

#include "engine/inbox.h"
#include "engine/round.h"
#include "engine/scheduler.h"

namespace rondo {

namespace {

constexpr std::chrono::milliseconds kIdleTurn{250};  // an idle loop still shows that it lives

}  // namespace

// What other threads see is atomic or behind the inbox; the rest belongs to the engine thread.
struct Engine::State {
  State(Model& m, const Tokenizer* tokenizer, CostTables costs, const Clock& c, EngineOptions o)
      : model(m),
        facts(m.facts()),
        options(o),
        clock(c),
        scheduler(facts, tokenizer),
        round(m, std::move(costs), c, o.logged_rounds),
        board(c.now()) {}

  bool turn();
  void admit();
  bool retire_finished(const RoundPlan& plan);  // whether there was any
  int count_finished(const RoundPlan& plan);
  void publish(int num_finished = 0);

  Model& model;
  const ModelFacts facts;
  const EngineOptions options;
  const Clock& clock;
  Inbox inbox;
  Scheduler scheduler;
  Round round;
  std::uint64_t ended_seen = 0;
  EndCounters ended;

  std::atomic<std::uint64_t> next_id{1};
  std::atomic<int> open{0};  // submitted and not yet ended, for the queue's bound
  std::atomic<bool> stopped{false};
  std::atomic<Clock::Time::rep> heartbeat{0};
  std::atomic<std::uint64_t> requests{0};
  StatusBoard board;  // the engine thread writes, any thread reads
};

Engine::Engine(Model& model, const Tokenizer* tokenizer, CostTables costs, const Clock& clock, EngineOptions options)
    : state_(std::make_unique<State>(model, tokenizer, std::move(costs), clock, options)) {
  state_->heartbeat = clock.now().time_since_epoch().count();
}
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
  if (s.inbox.post({id, Submission{id, std::move(request), std::move(sink), s.clock.now()}})) return id;
  --s.requests;
  return failure(ErrorCode::Unavailable, "the engine has stopped");
}

void Engine::cancel(RequestId id) { state_->inbox.post({id, std::nullopt}); }

int Engine::context_tokens() const { return state_->facts.context_tokens; }

EngineStatus Engine::status() const {
  const State& s = *state_;
  const Clock::Time seen{Clock::Time::duration(s.heartbeat.load())};
  const StatusBoard::View view = s.board.read(s.clock.now());
  return {.heartbeat_age_ms = ms_between(seen, s.clock.now()),
          .stopped = s.stopped,
          .running = view.latest.running,
          .filling = view.latest.filling,
          .queued = view.latest.queued,
          .max_streams = s.facts.max_streams,
          .blocks_held = view.latest.blocks_held,
          .num_blocks = s.facts.num_blocks,
          .requests = s.requests,
          .ended = view.latest.ended,
          .work = view.latest.work,
          .recent = view.recent,
          .tokens_by_second = view.tokens_by_second};
}

const DecisionLog& Engine::log() const { return state_->round.log(); }
const RoundCounters& Engine::counters() const { return state_->round.counters(); }
RoundCosts& Engine::costs() { return state_->round.costs(); }
bool Engine::turn() { return state_->turn(); }

void Engine::run(std::stop_token stop) {
  State& s = *state_;
  while (!stop.stop_requested()) {
    if (!s.turn()) s.inbox.wait(stop, kIdleTurn);
  }
  s.stopped = true;
  const Error stopping{ErrorCode::Unavailable, "the server is stopping"};
  for (const InboxMessage& message : s.inbox.close()) {
    if (!message.submission) continue;
    message.submission->sink->on_failed(stopping);
    ++s.ended.failed;
  }
  const std::uint64_t ended_before = s.scheduler.num_ended();
  s.scheduler.fail_all(stopping);
  s.ended.failed += s.scheduler.num_ended() - ended_before;
  s.publish();
}

bool Engine::State::turn() {
  heartbeat = clock.now().time_since_epoch().count();
  admit();
  RoundPlan& plan = scheduler.plan_round();
  publish();
  if (plan.empty()) return false;
  if (!plan.slices.empty()) round.fill(plan);
  if (!plan.windows.empty()) round.run(plan);
  publish(count_finished(plan));  // before the ends: who sees a reply end finds it counted
  if (retire_finished(plan)) publish();
  return true;
}

void Engine::State::admit() {
  for (InboxMessage& message : inbox.take()) {
    if (message.submission) {
      scheduler.enqueue(std::move(*message.submission));
    } else {
      const std::uint64_t ended_before = scheduler.num_ended();
      if (const auto slot = scheduler.cancel(message.id)) model.release(*slot);
      ended.cancelled += scheduler.num_ended() - ended_before;
    }
  }
  scheduler.admit(clock.now());
  open -= static_cast<int>(scheduler.num_ended() - std::exchange(ended_seen, scheduler.num_ended()));
}

int Engine::State::count_finished(const RoundPlan& plan) {
  int num_finished = 0;
  for (const RoundPlan::Rows& rows : plan.windows) {
    if (!rows.sequence->is_finished()) continue;
    ++num_finished;
    ++(rows.sequence->finish_reason() == FinishReason::Stop ? ended.stop : ended.length);
  }
  return num_finished;
}

void Engine::State::publish(int num_finished) {
  board.publish(clock.now(), {.running = scheduler.num_running() - num_finished,
                              .filling = scheduler.num_filling(),
                              .queued = scheduler.num_waiting(),
                              .blocks_held = scheduler.num_blocks_held(),
                              .ended = ended,
                              .work = round.counters()});
}

bool Engine::State::retire_finished(const RoundPlan& plan) {
  bool any = false;
  for (const RoundPlan::Rows& rows : plan.windows) {
    if (!rows.sequence->is_finished()) continue;
    any = true;
    rows.sequence->send_end(clock.now());
    if (const auto slot = scheduler.retire(rows.sequence)) model.release(*slot);
  }
  return any;
}

}  // namespace rondo
