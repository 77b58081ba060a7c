#include "engine/engine.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "device/device_error.h"
#include "engine/inbox.h"
#include "engine/round.h"
#include "engine/scheduler.h"
#include "engine/stall_bound.h"

namespace rondo {

namespace {

constexpr std::chrono::milliseconds kIdleTurn{250};  // an idle loop still shows that it lives
constexpr double kNewRound = 0.2;                    // weight of the newest round in how long one takes

Error model_failed(const std::exception& error) {
  return {ErrorCode::Internal, std::string("the model failed: ") + error.what()};
}

}  // namespace

// What other threads see is atomic or behind the inbox; the rest belongs to the engine thread.
struct Engine::State {
  State(Model& m, const Tokenizer* tokenizer, CostTables costs, const Clock& c, EngineOptions o)
      : model(m),
        facts(m.facts()),
        options(o),
        clock(c),
        scheduler(facts, tokenizer, {.least_shared_tokens = o.least_shared_tokens, .step_tokens = o.step_tokens}),
        stall(o.stall_ms, facts.max_rows),
        round(m, std::move(costs), c, o.logged_rounds),
        board(c.now()) {}

  bool turn();
  void take_in();
  void admit();
  void restore(Sequence& sequence, const PrefixCache::Hit& hit);
  void forget_gone();
  void fill(RoundPlan& plan);
  void run_round(RoundPlan& plan);
  static void break_off(std::span<const RoundPlan::Rows> rows, const std::exception& error);
  void save(Sequence& sequence, PrefixKind kind);
  void retire(Sequence& sequence);
  bool retire_finished();  // whether there was any
  int count_finished();
  void publish(int num_finished = 0);

  Model& model;
  const ModelFacts facts;
  const EngineOptions options;
  const Clock& clock;
  Inbox inbox;
  Scheduler scheduler;
  StallBound stall;
  double round_ms = 0;  // moving average
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
  s.open.fetch_sub(1);
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
          .blocks_kept = view.latest.blocks_kept,
          .states_kept = view.latest.states_kept,
          .num_states = s.facts.num_states,
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
  Error stopping{ErrorCode::Unavailable, "the server is stopping"};
  try {
    while (!stop.stop_requested()) {
      if (!s.turn()) s.inbox.wait(stop, kIdleTurn);
    }
  } catch (const DeviceError& error) {  // the other catcher is main; /health tells that the loop stands still
    stopping.message = fmt::format("the device failed: {}", error.what());
    log_error("{}; restart the server", stopping.message);
  }
  s.stopped = true;
  for (const InboxMessage& message : s.inbox.close()) {
    if (!message.submission) continue;
    message.submission->fail(stopping);
    ++s.ended.failed;
  }
  const std::uint64_t ended_before = s.scheduler.num_ended();
  s.scheduler.fail_all(stopping);
  s.ended.failed += s.scheduler.num_ended() - ended_before;
  s.publish();
}

bool Engine::State::turn() {
  heartbeat = clock.now().time_since_epoch().count();
  take_in();
  admit();
  RoundPlan& plan = scheduler.plan_round(stall.rows(round.costs(), scheduler.mean_fill_context(), round_ms));
  publish();
  if (plan.empty()) return false;
  if (!plan.slices.empty()) fill(plan);
  if (!plan.windows.empty()) run_round(plan);
  publish(count_finished());  // before the ends: who sees a reply end finds it counted
  if (retire_finished()) publish();
  return true;
}

void Engine::State::take_in() {
  for (InboxMessage& message : inbox.take()) {
    if (message.submission) {
      scheduler.enqueue(std::move(*message.submission));
    } else if (Sequence* sequence = scheduler.find(message.id)) {
      sequence->fail({ErrorCode::Cancelled, "the request was cancelled"});
      save(*sequence, PrefixKind::Turn);
      retire(*sequence);
      ++ended.cancelled;
    } else if (scheduler.cancel_waiting(message.id)) {
      ++ended.cancelled;
    }
  }
  scheduler.fail_expired(clock.now());
  count_finished();
  retire_finished();
}

void Engine::State::admit() {
  while (const auto admitted = scheduler.admit_next(clock.now())) {
    forget_gone();
    if (admitted->hit) restore(*admitted->sequence, *admitted->hit);
  }
  count_finished();
  retire_finished();
  open -= static_cast<int>(scheduler.num_ended() - std::exchange(ended_seen, scheduler.num_ended()));
}

void Engine::State::restore(Sequence& sequence, const PrefixCache::Hit& hit) {
  try {
    model.restore(sequence.slot(), hit.entry.place, hit.blocks, sequence.blocks());
  } catch (const std::exception& error) {
    return sequence.break_off(model_failed(error));
  }
  ++round.counters().prefix_hits;
  round.counters().cached_tokens += static_cast<std::uint64_t>(hit.tokens);
}

// The states of entries that had to go: before anything is written to the blocks they kept.
void Engine::State::forget_gone() {
  for (const int place : scheduler.cache().forgotten()) model.forget(place);
  scheduler.cache().forgotten_done();
}

void Engine::State::fill(RoundPlan& plan) {
  int rows = 0;
  for (const RoundPlan::Rows& each : plan.slices) rows += each.count;
  const double context = scheduler.mean_fill_context();
  try {
    stall.see_fill(round.costs(), context, rows, round.fill(plan));
  } catch (const std::exception& error) {
    break_off(plan.slices, error);
  }
  for (const RoundPlan::Rows& each : plan.slices) {
    if (each.sequence->is_finished()) continue;
    if (const auto due = each.sequence->take_due_save()) save(*each.sequence, due->kind);
  }
  std::erase_if(plan.windows, [](const RoundPlan::Rows& each) { return each.sequence->is_finished(); });
}

void Engine::State::run_round(RoundPlan& plan) {
  const double before_ms = round.counters().real_ms;
  try {
    round.run(plan);
  } catch (const std::exception& error) {
    break_off(plan.windows, error);
  }
  round_ms += kNewRound * (round.counters().real_ms - before_ms - round_ms);
}

// A failure of the model (a worker's exception, a lost device) ends those whose rows it was running, and nobody else:
// what their slots hold is unknown, and nobody goes on from it.
void Engine::State::break_off(std::span<const RoundPlan::Rows> rows, const std::exception& error) {
  for (const RoundPlan::Rows& each : rows) each.sequence->break_off(model_failed(error));
}

// The sequence's state into the prefix cache, if it is worth a place there.
void Engine::State::save(Sequence& sequence, PrefixKind kind) {
  const auto ids = sequence.filled_ids();
  if (!scheduler.caches() || !sequence.uses_cache()) return;
  if (static_cast<int>(ids.size()) < options.least_shared_tokens) return;
  if (facts.grid > 1 && kind == PrefixKind::Turn) return;  // generated rows have not the form that a prompt's have
  PrefixCache& cache = scheduler.cache();
  if (cache.has(ids, sequence.drafts())) return;
  const auto place = cache.take_place(kind);
  forget_gone();
  if (!place) return;
  SavedState saved;
  try {
    saved = model.save(sequence.slot(), *place);
  } catch (const std::exception& error) {  // a reply that is whole stays so; who would go on from this slot cannot
    log_error("no state was kept of {} tokens: {}", ids.size(), error.what());
    if (!sequence.is_finished()) sequence.break_off(model_failed(error));
    return;
  }
  CHECK(saved.tokens == static_cast<int>(ids.size()));
  cache.put(*place, kind, ids, sequence.blocks(), saved.shared_tokens, saved.has_head, sequence.resumed_from());
  ++round.counters().states_saved;
  scheduler.reconsider();
}

void Engine::State::retire(Sequence& sequence) {
  const int slot = sequence.slot();
  scheduler.retire(&sequence);
  model.release(slot);
}

bool Engine::State::retire_finished() {
  bool any = false;
  for (auto at = scheduler.running().begin(); at != scheduler.running().end();) {
    Sequence& sequence = **at++;
    if (!sequence.is_finished()) continue;
    any = true;
    if (!sequence.is_broken()) save(sequence, PrefixKind::Turn);
    sequence.send_end(clock.now());
    retire(sequence);
  }
  return any;
}

int Engine::State::count_finished() {
  int num_finished = 0;
  for (const auto& sequence : scheduler.running()) {
    if (!sequence->is_finished()) continue;
    ++num_finished;
    if (sequence->is_broken()) {
      ++ended.failed;
      continue;
    }
    ++(sequence->finish_reason() == FinishReason::Stop ? ended.stop : ended.length);
  }
  return num_finished;
}

void Engine::State::publish(int num_finished) {
  board.publish(clock.now(), {.running = scheduler.num_running() - num_finished,
                              .filling = scheduler.num_filling(),
                              .queued = scheduler.num_waiting(),
                              .blocks_held = scheduler.num_blocks_held(),
                              .blocks_kept = scheduler.num_blocks_kept(),
                              .states_kept = scheduler.cache().num_entries(),
                              .ended = ended,
                              .work = round.counters()});
}

}  // namespace rondo
