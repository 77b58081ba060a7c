// What keeping states for the prefix cache costs those who decode: tokens a second of N streams with the cache off and
// on, in alternating pairs, and what one kept state takes. No prompt begins like another, so nothing is ever gained.
//
//   turns    short replies to short prompts, one after the other: a state at each end of a turn and before each
//   prompt's grid     long replies, beside which a long prompt arrives every hundred rounds: states on its way
//
// --synthetic NAME: a published shape with made-up weights instead of a checkpoint.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include "base/clock.h"
#include "ckpt/checkpoint.h"
#include "cli/spread.h"
#include "engine/counters.h"
#include "engine/engine.h"
#include "model/model.h"

namespace rondo {
namespace {

struct Options {
  std::string folder = RONDO_BUNDLED_MODEL, synthetic;
  double seconds = 2;
  int threads = 2, pairs = 5, num_layers = 0;
  bool processor_time = false;
  std::vector<int> streams{1, 4, 16};
};

// One after the other of these is asked for on a stream.
struct Workload {
  const char* name;
  int prompt_tokens, reply_tokens;
  int rounds_between_long_prompts;  // 0 = there are none
};
constexpr int kLongPrompt = 1100, kContext = 2048;
constexpr Workload kWorkloads[] = {{"turns", 24, 64, 0}, {"grid", 24, 1500, 200}};

class ProcessorClock final : public Clock {
 public:
  Time now() const override {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return Time(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

class CountingSink final : public EventSink {
 public:
  void on_text(const TextEvent& event) override { num_tokens_ += static_cast<int>(event.ids.size()); }
  void on_end(EndEvent) override { is_over_ = true; }
  void on_failed(Error error) override {
    if (error.code != ErrorCode::Cancelled) fmt::print(stderr, "cache_cost: {}\n", error.message);
    is_over_ = true;
  }
  bool is_over() const { return is_over_; }
  int num_tokens() const { return num_tokens_; }

 private:
  bool is_over_ = false;
  int num_tokens_ = 0;
};

struct Subject {
  std::unique_ptr<WeightSource> source;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Model> model;
  CostTables costs;
};

Result<Subject> load(const Options& options) {
  Subject out;
  if (options.synthetic.empty()) {
    TRY(Checkpoint checkpoint, Checkpoint::open(options.folder));
    out.source = std::make_unique<Checkpoint>(std::move(checkpoint));
  } else {
    TRY(out.source, make_synthetic(options.synthetic, {.num_layers = options.num_layers}));
  }
  out.pool = std::make_unique<ThreadPool>(options.threads);
  ModelOptions shape;
  shape.context_tokens = std::min(kContext, out.source->config().context_tokens);
  shape.max_streams = 1 + *std::max_element(options.streams.begin(), options.streams.end());  // and the long prompt
  shape.max_rows = std::max(shape.max_rows, shape.max_streams);
  shape.cache_states = 2 * shape.max_streams;
  shape.cache_blocks = 40 * shape.max_streams;
  TRY(out.model, load_model(*out.source, *out.pool, shape, {}));
  std::vector<std::int32_t> text;
  for (int i = 0; i < 2 * shape.max_rows; ++i) text.push_back(i * i % out.model->facts().vocab_size);
  out.costs = out.model->time_costs(text, 3000);
  return out;
}

struct Run {
  double ms = 0, tokens = 0, states = 0;
  int turns = 0;
  double tokens_per_s() const { return 1000 * tokens / ms; }
};

// Turns the engine on this thread, with as many replies under way as there are streams.
class Decoding {
 public:
  Decoding(Subject& subject, const Clock& clock, const Workload& workload, bool caches)
      : workload_(workload),
        caches_(caches),
        vocab_size_(subject.model->facts().vocab_size),
        clock_(clock),
        engine_(*subject.model, nullptr, subject.costs, clock, {}) {}

  // Until so many turns are over, or so much time.
  Run run(int streams, int most_turns, double most_ms) {
    replies_.resize(static_cast<std::size_t>(streams));
    Run out;
    const Clock::Time begin = clock_.now();
    for (; out.turns < most_turns && out.ms < most_ms; ++out.turns, out.ms = ms_between(begin, clock_.now())) {
      for (auto& reply : replies_) {
        if (reply == nullptr || reply->is_over()) replace(reply, workload_.prompt_tokens, workload_.reply_tokens);
      }
      if (workload_.rounds_between_long_prompts > 0 && out.turns % workload_.rounds_between_long_prompts == 0)
        ask(kLongPrompt, 1, std::make_shared<CountingSink>());
      engine_.turn();
    }
    for (const auto& reply : replies_) num_tokens_ += reply->num_tokens();
    out.tokens = num_tokens_;
    out.states = static_cast<double>(engine_.counters().states_saved);
    for (const RequestId id : asked_) engine_.cancel(id);
    while (engine_.turn()) {
    }
    return out;
  }

 private:
  void replace(std::shared_ptr<CountingSink>& reply, int prompt_tokens, int reply_tokens) {
    if (reply != nullptr) num_tokens_ += reply->num_tokens();
    reply = std::make_shared<CountingSink>();
    ask(prompt_tokens, reply_tokens, reply);
  }
  void ask(int prompt_tokens, int reply_tokens, std::shared_ptr<EventSink> sink) {
    Request request;
    for (int i = 0; i < prompt_tokens; ++i)
      request.prompt_ids.push_back(static_cast<std::int32_t>(random_() % static_cast<unsigned>(vocab_size_)));
    request.max_tokens = reply_tokens;
    request.draw.temperature = 0;
    request.use_prefix_cache = caches_;
    const auto id = engine_.submit(std::move(request), std::move(sink));
    if (id) asked_.push_back(*id);
  }

  const Workload& workload_;
  const bool caches_;
  const int vocab_size_;
  const Clock& clock_;
  Engine engine_;
  std::mt19937 random_{7};  // the same prompts in every run
  std::vector<std::shared_ptr<CountingSink>> replies_;
  std::vector<RequestId> asked_;
  double num_tokens_ = 0;
};

std::string in_words(const std::vector<double>& runs, int digits) {
  const Spread s = spread(runs);
  return fmt::format("{:.{}f} ({:.{}f}..{:.{}f})", s.median, digits, s.lowest, digits, s.highest, digits);
}

void compare(Subject& subject, const Options& options, const Clock& clock, const Workload& workload, int streams) {
  constexpr int kAnyTurns = 1 << 30;
  const int turns = Decoding(subject, clock, workload, false).run(streams, kAnyTurns, options.seconds * 1000).turns;
  std::vector<double> off, on, ratios, states, ms_each;
  for (int pair = 0; pair < options.pairs; ++pair) {
    Run runs[2];
    for (const bool caches : {pair % 2 == 0, pair % 2 != 0})
      runs[caches ? 1 : 0] = Decoding(subject, clock, workload, caches).run(streams, turns, 1e9);
    off.push_back(runs[0].tokens_per_s());
    on.push_back(runs[1].tokens_per_s());
    ratios.push_back(on.back() / off.back());
    states.push_back(1000 * runs[1].states / runs[1].tokens);
    // What the same tokens took longer, by the states kept.
    const double ms_off = runs[0].ms / runs[0].tokens * runs[1].tokens;
    ms_each.push_back((runs[1].ms - ms_off) / std::max(1.0, runs[1].states));
  }
  fmt::print("{:<6} {:>7}  {:<20} {:<20} {:<19} {:>9.1f}   {}\n", workload.name, streams, in_words(off, 0),
             in_words(on, 0), in_words(ratios, 3), spread(states).median, in_words(ms_each, 2));
  std::fflush(stdout);
}

int run(const Options& options) {
  auto subject = load(options);
  if (!subject) {
    fmt::print(stderr, "cache_cost: {}\n", subject.error().message);
    return 1;
  }
  const SteadyClock wall;
  const ProcessorClock processor;
  const Clock& clock = options.processor_time ? static_cast<const Clock&>(processor) : wall;
  fmt::print("a state has {:.1f} MiB; {} alternating pairs; median (range); {}\n",
             static_cast<double>(subject->model->facts().bytes_per_state) / 1048576.0, options.pairs,
             options.processor_time ? "processor time" : "time");
  fmt::print("{:<6} {:>7}  {:<20} {:<20} {:<19} {:>9}   {}\n", "what", "streams", "off, tokens/s", "on, tokens/s",
             "ratio of pairs", "/1k tokens", "ms a state");
  for (const Workload& workload : kWorkloads) {
    for (const int streams : options.streams) compare(*subject, options, clock, workload, streams);
  }
  return 0;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  CLI::App app("What the prefix cache costs those who decode.", "cache_cost");
  rondo::Options options;
  app.add_option("MODEL", options.folder, "checkpoint folder");
  auto* synthetic = app.add_option("--synthetic", options.synthetic, "a published shape with made-up weights");
  app.add_option("--layers", options.num_layers, "of it the first so many; 0 = all")->needs(synthetic);
  app.add_option("--streams", options.streams, "how many decode at once")
      ->check(CLI::Range(1, 255))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "of one measurement")->capture_default_str();
  app.add_option("--pairs", options.pairs, "alternating pairs")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--threads", options.threads, "threads")->capture_default_str();
  app.add_flag("--processor-time", options.processor_time, "measure what this process computed; with --threads 1");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return rondo::run(options);
}
