// load: how the engine carries load, on a real model, in this process.
//
//   load stall [MODEL]   eight replies under way, and long prompts: the longest gap between tokens, with the bound and
//                        without
//   load reuse [MODEL]   a conversation of 20 turns, and agents with one system prompt: tokens computed, against the
//                        least there can be
//   load brim  [MODEL]   three times as many requests as there is room for: nothing fails, nothing grows, every reply
//   is
//                        the one the request gets alone
//   load soak  [MODEL]   the same with everything drawn at random: sizes, settings, cancels
//
// --seconds N: how long each measurement runs. Exit 1 when what must hold does not.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include "base/clock.h"
#include "ckpt/checkpoint.h"
#include "engine/counters.h"
#include "engine/engine.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace rondo {
namespace {

using Ms = double;

struct Options {
  std::string what, folder = RONDO_BUNDLED_MODEL;
  double seconds = 10, stall_ms = 100;
  int threads = 2, context_tokens = 4096, streams = 16;
  std::uint64_t seed = 1;
};

struct Reply {
  std::vector<std::int32_t> ids;
  std::vector<Ms> text_ms;  // when each text came
  EndEvent end;
  std::string failure;
};

// What a request was told, and when; who waits for its end is woken.
class TimedSink final : public EventSink {
 public:
  explicit TimedSink(const Clock& clock) : clock_(clock), begin_(clock.now()) {}
  void on_text(const TextEvent& event) override {
    const std::lock_guard lock(mutex_);
    reply_.ids.insert(reply_.ids.end(), event.ids.begin(), event.ids.end());
    reply_.text_ms.push_back(ms_between(begin_, clock_.now()));
  }
  void on_end(EndEvent event) override {
    const std::lock_guard lock(mutex_);
    reply_.end = std::move(event);
    over_ = true;
    ended_.notify_all();
  }
  void on_failed(Error error) override {
    const std::lock_guard lock(mutex_);
    reply_.failure = error.message;
    cancelled_ = error.code == ErrorCode::Cancelled;
    over_ = true;
    ended_.notify_all();
  }
  bool is_over() const {
    const std::lock_guard lock(mutex_);
    return over_;
  }
  bool is_cancelled() const { return cancelled_; }
  Reply wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return over_; });
    return reply_;
  }

 private:
  const Clock& clock_;
  Clock::Time begin_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  Reply reply_;
  bool over_ = false, cancelled_ = false;
};

struct Subject {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Model> model;
  CostTables costs;
  std::vector<std::int32_t> words;  // ids that prompts are made of
};

Result<Subject> load(const Options& options) {
  Subject out;
  TRY(Checkpoint checkpoint, Checkpoint::open(options.folder));
  out.checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  TRY(Tokenizer tokenizer, Tokenizer::open(options.folder));
  out.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  out.pool = std::make_unique<ThreadPool>(options.threads);
  ModelOptions shape;
  shape.context_tokens = std::min(options.context_tokens, out.checkpoint->config().context_tokens);
  shape.max_streams = options.streams;
  shape.max_rows = std::max(shape.max_rows, options.streams);
  shape.draft_extra = out.tokenizer->added_ids();
  TRY_VOID(fit_cache(*out.checkpoint, *out.pool, std::uint64_t{128} << 20, shape));
  TRY(out.model, load_model(*out.checkpoint, *out.pool, shape, {}));
  out.words = out.tokenizer->encode(
      "The harbour lay quiet in the morning, and two boats had come in with the tide. def total(values): return "
      "sum(values) What is 23 + 45? It is 68. Rename the variable count to number in this function, please.");
  std::vector<std::int32_t> text;
  for (int i = 0; i < 2 * shape.max_rows; ++i)
    text.push_back(out.words[static_cast<std::size_t>(i) % out.words.size()]);
  out.costs = out.model->time_costs(text, 3000);
  return out;
}

// An engine on a thread of its own.
class Running {
 public:
  Running(Subject& subject, EngineOptions options)
      : engine_(*subject.model, subject.tokenizer.get(), subject.costs, clock_, options),
        thread_([this](const std::stop_token& stop) { engine_.run(stop); }) {}
  struct Asked {
    RequestId id;
    std::shared_ptr<TimedSink> sink;
  };
  Asked ask(Request request) {
    auto sink = std::make_shared<TimedSink>(clock_);
    const auto id = engine_.submit(std::move(request), sink);
    if (!id) sink->on_failed(id.error());
    return {id ? *id : RequestId{}, sink};
  }
  Reply answer(Request request) { return ask(std::move(request)).sink->wait(); }
  Engine& engine() { return engine_; }
  const Clock& clock() const { return clock_; }

 private:
  SteadyClock clock_;
  Engine engine_;
  std::jthread thread_;
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  std::vector<std::int32_t> ids(const Subject& subject, int count) {
    std::vector<std::int32_t> out;
    for (int i = 0; i < count; ++i)
      out.push_back(subject.words[static_cast<std::size_t>(between(0, static_cast<int>(subject.words.size()) - 1))]);
    return out;
  }

 private:
  std::mt19937_64 random_;
};

Request request_of(std::vector<std::int32_t> prompt, int max_tokens) {
  Request request;
  request.prompt_ids = std::move(prompt);
  request.max_tokens = max_tokens;
  request.draw.temperature = 0;
  return request;
}

double median(std::vector<double> of) {
  if (of.empty()) return 0;
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

struct StallResult {
  double worst_gap_ms = 0, median_gap_ms = 0, median_first_ms = 0;
  int prompts = 0;
};

// Eight replies that decode for the whole time, and one long prompt after another beside them.
StallResult stalls(Subject& subject, const Options& options, double stall_ms, bool with_prompts) {
  constexpr int kDecoding = 8;
  Running running(subject, {.stall_ms = stall_ms});
  Dice dice(options.seed);
  const int context = subject.model->facts().context_tokens, longest = context * 3 / 4;
  const auto begin = running.clock().now();
  const auto is_time = [&] { return ms_between(begin, running.clock().now()) > options.seconds * 1000; };
  std::mutex mutex;
  std::vector<double> gaps;
  std::vector<std::jthread> clients;
  for (int i = 0; i < kDecoding; ++i) {
    clients.emplace_back([&, prompt = dice.ids(subject, 20)] {
      while (!is_time()) {
        Request request = request_of(prompt, std::min(800, context - 20));
        request.use_prefix_cache = false;
        const Reply reply = running.answer(std::move(request));
        const std::lock_guard lock(mutex);
        for (std::size_t t = 1; t < reply.text_ms.size(); ++t) gaps.push_back(reply.text_ms[t] - reply.text_ms[t - 1]);
      }
    });
  }
  std::vector<double> firsts;
  while (!is_time() && with_prompts) {
    Request request = request_of(dice.ids(subject, longest), 1);
    request.use_prefix_cache = false;
    const Reply reply = running.answer(std::move(request));
    if (!reply.text_ms.empty()) firsts.push_back(reply.text_ms.front());
  }
  clients.clear();
  StallResult out;
  out.worst_gap_ms = gaps.empty() ? 0 : *std::max_element(gaps.begin(), gaps.end());
  out.median_gap_ms = median(gaps);
  out.median_first_ms = median(firsts);
  out.prompts = static_cast<int>(firsts.size());
  return out;
}

bool run_stall(Subject& subject, const Options& options) {
  const StallResult alone = stalls(subject, options, options.stall_ms, false);
  const StallResult bound = stalls(subject, options, options.stall_ms, true);
  const StallResult none = stalls(subject, options, 1e9, true);
  const auto line = [](const char* what, const StallResult& r) {
    fmt::print("{:<28} {:>10.1f} {:>10.1f} {:>12.0f} {:>8}\n", what, r.median_gap_ms, r.worst_gap_ms, r.median_first_ms,
               r.prompts);
  };
  fmt::print("{:<28} {:>10} {:>10} {:>12} {:>8}\n", "gaps between tokens, ms", "median", "worst", "first token",
             "prompts");
  line("no prompts", alone);
  line(fmt::format("--stall-ms {:.0f}", options.stall_ms).c_str(), bound);
  line("no bound", none);
  const bool holds = bound.worst_gap_ms <= options.stall_ms + alone.worst_gap_ms;
  fmt::print("the worst gap is {} the bound and one round ({:.1f} ms)\n", holds ? "within" : "BEYOND",
             options.stall_ms + alone.worst_gap_ms);
  return holds;
}

bool run_reuse(Subject& subject, const Options& options) {
  constexpr int kTurns = 20, kNew = 40, kReply = 30, kSystem = 3000, kAgents = 10, kMessage = 60;
  Running running(subject, {});
  Dice dice(options.seed);
  std::vector<std::int32_t> said;
  int computed = 0, least = 0, before = 0;
  double last_ms = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto more = dice.ids(subject, kNew);
    said.insert(said.end(), more.begin(), more.end());
    const Reply reply = running.answer(request_of(said, kReply));
    computed += static_cast<int>(said.size()) - reply.end.usage.cached_tokens;
    least += static_cast<int>(said.size()) - std::max(0, before - 1);  // the last token drawn was never run
    said.insert(said.end(), reply.ids.begin(), reply.ids.end());
    before = static_cast<int>(said.size());
    last_ms = reply.text_ms.front();
  }
  std::vector<double> lone_ms;
  for (int i = 0; i < 5; ++i) {
    Request lone = request_of(dice.ids(subject, kNew + 1), 1);
    lone.use_prefix_cache = false;
    lone_ms.push_back(running.answer(std::move(lone)).text_ms.front());
  }
  fmt::print("conversation of {} turns: {} prompt tokens computed, {} at least, {} without a cache\n", kTurns, computed,
             least, (kNew * kTurns * (kTurns + 1) + kReply * kTurns * (kTurns - 1)) / 2);
  fmt::print("first token of turn {}: {:.1f} ms; of a prompt of its new tokens alone: {:.1f} ms\n", kTurns, last_ms,
             median(lone_ms));
  const int system_tokens = std::min(kSystem, subject.model->facts().context_tokens - kMessage - kReply);
  const auto system = dice.ids(subject, system_tokens);
  std::vector<Running::Asked> agents;
  int agents_computed = 0;
  for (const bool together : {false, true}) {
    auto prefix = system;
    if (together) prefix = dice.ids(subject, system_tokens);
    agents.clear();
    agents_computed = 0;
    for (int i = 0; i < kAgents; ++i) {
      auto prompt = prefix;
      const auto message = dice.ids(subject, kMessage);
      prompt.insert(prompt.end(), message.begin(), message.end());
      agents.push_back(running.ask(request_of(std::move(prompt), kReply)));
      if (!together) agents.back().sink->wait();
    }
    for (const auto& each : agents)
      agents_computed += system_tokens + kMessage - each.sink->wait().end.usage.cached_tokens;
    fmt::print("{} agents {}, a system prompt of {} tokens and {} of their own: {} computed, {} at least\n", kAgents,
               together ? "at once" : "one after the other", system_tokens, kMessage, agents_computed,
               system_tokens + kAgents * kMessage);
  }
  return computed <= least * 11 / 10;
}

struct Pooled {
  Request request;
  std::string token_sha;  // of what it is answered with alone
};

std::vector<Pooled> make_pool(Subject& subject, const Options& options, bool at_random) {
  const int context = subject.model->facts().context_tokens;
  Dice dice(options.seed);
  std::vector<std::vector<std::int32_t>> stems;
  for (int i = 0; i < 4; ++i) stems.push_back(dice.ids(subject, dice.between(10, context / 2)));
  std::vector<Pooled> pool;
  Running lone(subject, {});
  for (int i = 0; i < 40; ++i) {
    auto prompt = dice.chance(60) ? stems[static_cast<std::size_t>(dice.between(0, 3))] : std::vector<std::int32_t>{};
    const auto more = dice.ids(subject, dice.between(1, context / 8));
    prompt.insert(prompt.end(), more.begin(), more.end());
    const int room = context - static_cast<int>(prompt.size());
    Request request = request_of(prompt, std::min(room, dice.between(8, 120)));
    if (!at_random && i % 4 == 0) {  // its whole window is reserved, though its end comes early
      request.end_ids = {lone.answer(request).ids.back()};
      request.max_tokens = room;
    }
    if (at_random) {
      request.draw.temperature = dice.chance(50) ? 0.0F : 0.9F;
      request.draw.seed = static_cast<std::uint64_t>(i);
      if (dice.chance(30)) request.draw.top_p = 0.9F;
      if (dice.chance(30)) request.draw.presence_penalty = 0.5F;
      request.max_draft_depth = dice.chance(20) ? 0 : dice.between(1, 8);
      request.num_top_logprobs = dice.chance(20) ? 3 : -1;
      request.use_prefix_cache = !dice.chance(10);
    }
    Request alone = request;
    alone.use_prefix_cache = false;
    alone.max_draft_depth = 0;
    pool.push_back({request, lone.answer(std::move(alone)).end.token_sha});
  }
  return pool;
}

// Keeps three times as many requests under way as there are slots.
bool run_crowd(Subject& subject, const Options& options, bool at_random) {
  const std::vector<Pooled> pool = make_pool(subject, options, at_random);
  const int in_flight = 3 * subject.model->facts().max_streams;
  Running running(subject, {.max_queued = 4 * in_flight, .stall_ms = options.stall_ms});
  Dice dice(options.seed + 1);
  struct Flight {
    std::size_t request;
    Running::Asked asked;
    double begin_ms;
    int order;
  };
  std::vector<Flight> flights;
  std::vector<std::pair<int, double>> starts;  // of requests by order of arrival: when each got its place
  int answered = 0, cancelled = 0, failed = 0, different = 0, order = 0;
  std::vector<double> firsts;
  const auto begin = running.clock().now();
  const auto now_ms = [&] { return ms_between(begin, running.clock().now()); };
  std::uint64_t resident_early = 0;
  while (now_ms() < options.seconds * 1000 || !flights.empty()) {
    while (now_ms() < options.seconds * 1000 && static_cast<int>(flights.size()) < in_flight) {
      const auto which = static_cast<std::size_t>(dice.between(0, static_cast<int>(pool.size()) - 1));
      flights.push_back({which, running.ask(pool[which].request), now_ms(), order++});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (at_random && dice.chance(5) && !flights.empty())
      running.engine().cancel(
          flights[static_cast<std::size_t>(dice.between(0, static_cast<int>(flights.size()) - 1))].asked.id);
    std::erase_if(flights, [&](const Flight& flight) {
      if (!flight.asked.sink->is_over()) return false;
      const Reply reply = flight.asked.sink->wait();
      if (!reply.failure.empty()) {
        ++(flight.asked.sink->is_cancelled() ? cancelled : failed);
        if (!flight.asked.sink->is_cancelled()) fmt::print("failed: {}\n", reply.failure);
        return true;
      }
      ++answered;
      if (!reply.text_ms.empty()) firsts.push_back(reply.text_ms.front());
      starts.emplace_back(flight.order, flight.begin_ms + reply.end.timings.queue_ms);
      if (reply.end.token_sha != pool[flight.request].token_sha) ++different;
      return true;
    });
    if (resident_early == 0 && now_ms() > options.seconds * 250) resident_early = resident_bytes();
  }
  int most_passed_by = 0;
  for (const auto& [mine, my_start] : starts) {
    int passed_by = 0;
    for (const auto& [other, start] : starts) passed_by += other > mine && start < my_start ? 1 : 0;
    most_passed_by = std::max(most_passed_by, passed_by);
  }
  const double grown_mib = (static_cast<double>(resident_bytes()) - static_cast<double>(resident_early)) / 1048576.0;
  const EngineStatus status = running.engine().status();
  fmt::print(
      "{} requests under way at {} slots for {:.0f} s: {} answered, {} cancelled, {} failed, {} different from the "
      "lone reply\n",
      in_flight, subject.model->facts().max_streams, options.seconds, answered, cancelled, failed, different);
  fmt::print("first token: median {:.0f} ms, last {:.0f} ms; passed by at most {} later ones\n", median(firsts),
             firsts.empty() ? 0 : *std::max_element(firsts.begin(), firsts.end()), most_passed_by);
  fmt::print("prefix hits {}, {} of {} prompt tokens from the cache, {} states saved; memory grew by {:.1f} MiB\n",
             status.work.prefix_hits, status.work.cached_tokens, status.work.cached_tokens + status.work.prompt_tokens,
             status.work.states_saved, grown_mib);
  return failed == 0 && different == 0 && answered > 0 && grown_mib < 16;
}

int run(const Options& options) {
  auto subject = load(options);
  if (!subject) {
    fmt::print(stderr, "load: {}\n", subject.error().message);
    return 1;
  }
  bool holds = false;
  if (options.what == "stall") holds = run_stall(*subject, options);
  if (options.what == "reuse") holds = run_reuse(*subject, options);
  if (options.what == "brim") holds = run_crowd(*subject, options, false);
  if (options.what == "soak") holds = run_crowd(*subject, options, true);
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  CLI::App app("How the engine carries load, on a real model.", "load");
  rondo::Options options;
  app.add_option("WHAT", options.what, "stall, reuse, brim or soak")
      ->required()
      ->check(CLI::IsMember({"stall", "reuse", "brim", "soak"}));
  app.add_option("MODEL", options.folder, "checkpoint folder");
  app.add_option("--seconds", options.seconds, "how long each measurement runs")->capture_default_str();
  app.add_option("--stall-ms", options.stall_ms, "the bound")->capture_default_str();
  app.add_option("--threads", options.threads, "threads")->capture_default_str();
  app.add_option("--context", options.context_tokens, "tokens of one request")->capture_default_str();
  app.add_option("--parallel", options.streams, "streams")->capture_default_str();
  app.add_option("--seed", options.seed, "of what is drawn")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return rondo::run(options);
}
