// rondo selfcheck: the laws of the design, proved on this machine with this model; a line a check.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/selfcheck/plants.h"
#include "cli/selfcheck/rows.h"
#include "cli/selfcheck/texts.h"

namespace rondo {

namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr int kContext = 512;  // where the model has as much: what the checks need, and some room
constexpr int kNameWidth = 66;
constexpr int kStates = 24, kStateBlocks = 48;  // of the prefix cache: fewer than the checks would keep

struct SelfcheckOptions {
  LoadOptions load;
  std::string plant;
};

// The line of a check: rewritten while it goes on a terminal, written once on a pipe.
class CheckLine {
 public:
  explicit CheckLine(std::string name) : name_(std::move(name)), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}

  void show(const Tally& tally) {
    if (!is_terminal_ || SteadyTime::now() < next_) return;
    next_ = SteadyTime::now() + std::chrono::milliseconds(50);
    fmt::print("\r\033[K  {:<{}} {:>4}/{:<4}", name_, kNameWidth, tally.seen(), tally.total());
    std::fflush(stdout);
  }

  void finish(const Tally& tally) const {
    if (is_terminal_) fmt::print("\r\033[K");
    if (tally.is_skipped()) {
      fmt::print("  {:<{}} left out: {}\n", name_, kNameWidth, tally.skipped());
    } else {
      fmt::print("  {:<{}} {:>4}/{:<4} {}\n", name_, kNameWidth, tally.held(), tally.total(),
                 tally.holds() ? tally.note() : "FAILED");
      if (!tally.failure().empty()) fmt::print("      {}\n", tally.failure());
    }
    std::fflush(stdout);
  }

 private:
  const std::string name_;
  const bool is_terminal_;
  SteadyTime::time_point next_{};
};

struct Outcome {
  int held = 0, total = 0, num_checks = 0, skipped = 0;
  std::vector<std::string> failed;
};

Outcome check_all(const Subject& subject) {
  RowChecks rows(subject);
  TextChecks texts(subject);
  texts.begin_fresh();
  const std::pair<const char*, std::function<void(Tally&)>> checks[] = {
      {"every width, 1 to 64 rows, against one row", [&](Tally& t) { rows.widths(t); }},
      {"prompts in slices of 1, 7, 64 and whole, against row by row", [&](Tally& t) { rows.slices(t); }},
      {"windows with rejected drafts, and what follows, against one row", [&](Tally& t) { rows.folds(t); }},
      {"the head's drafts for many streams against each alone", [&](Tally& t) { rows.head(t); }},
      {"texts of 1 to 16 streams at once against each alone", [&](Tally& t) { texts.together(t); }},
      {"texts drafted 1 to 8 deep against undrafted", [&](Tally& t) { texts.drafted(t); }},
      {"texts on slots used by many against fresh slots", [&](Tally& t) { texts.again(t); }},
      {"texts that go on from kept states against fresh ones", [&](Tally& t) { texts.resumed(t); }},
      {"rounds that leave no memory taken", [&](Tally& t) { texts.memory(t); }},
  };
  Outcome outcome;
  for (const auto& [name, check] : checks) {
    CheckLine line(name);
    Tally tally([&](const Tally& t) { line.show(t); });
    check(tally);
    line.finish(tally);
    outcome.held += tally.held();
    outcome.total += tally.total();
    ++(tally.is_skipped() ? outcome.skipped : outcome.num_checks);
    if (!tally.holds()) outcome.failed.emplace_back(name);
  }
  return outcome;
}

struct LoadedSubject {
  std::string folder;
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Tokenizer> tokenizer;  // null: the model has none
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Model> model;
};

Result<LoadedSubject> load_subject(const LoadOptions& options) {
  LoadedSubject loaded;
  TRY(loaded.folder, model_folder(options));
  TRY(Checkpoint checkpoint, Checkpoint::open(loaded.folder));
  loaded.checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  if (std::filesystem::exists(std::filesystem::path(loaded.folder) / "tokenizer.json")) {
    TRY(Tokenizer tokenizer, Tokenizer::open(loaded.folder));
    loaded.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  }
  loaded.pool = std::make_unique<ThreadPool>(options.num_threads.value_or(num_physical_threads()));
  ModelOptions shape = model_options(options, *loaded.checkpoint, loaded.tokenizer.get());
  if (!options.context_tokens) shape.context_tokens = std::min(kContext, loaded.checkpoint->config().context_tokens);
  if (shape.context_tokens < kSmallestContext) {
    return failure(ErrorCode::InvalidArgument, fmt::format("a context of {} tokens: the checks need at least {}",
                                                           shape.context_tokens, kSmallestContext));
  }
  shape.cache_states = kStates;
  shape.cache_blocks = kStateBlocks;
  ProgressLine progress;
  TRY(loaded.model, load_model(*loaded.checkpoint, *loaded.pool, shape,
                               [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
                                 progress.show(what, done, total);
                               }));
  return loaded;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("      {}\n", name);
  return out;
}

// Whatever came of a plant, the laws did not hold in this run: the exit status is 1.
void report_plant(const Plant& plant, int strikes, const Outcome& outcome) {
  if (strikes == 0) {
    fmt::print("\nthe planted fault '{}' never came about: nothing in these checks leads to it\n", plant.name);
  } else if (outcome.failed.empty()) {
    fmt::print("\nthe planted fault '{}' came about {} times and NO CHECK NOTICED: the selfcheck is blind to it\n",
               plant.name, strikes);
  } else {
    fmt::print("\nthe planted fault '{}' came about {} times and was seen by {} of {} checks:\n{}", plant.name, strikes,
               outcome.failed.size(), outcome.num_checks, joined(outcome.failed));
  }
}

Result<int> run_selfcheck(const SelfcheckOptions& options, const Plant* plant) {
  const auto begin = SteadyTime::now();
  TRY(const LoadedSubject loaded, load_subject(options.load));
  const ModelFacts& facts = loaded.model->facts();
  if (plant != nullptr && plant->needs_head && !facts.has_head) {
    return failure(ErrorCode::InvalidArgument,
                   fmt::format("'{}' cannot be planted: this model has no draft head", plant->name));
  }
  fmt::print("{} ({}, {} threads, {})\n", loaded.folder, facts.arithmetic, loaded.pool->num_threads(),
             loaded.tokenizer ? "rows and prompts of text" : "no tokenizer: rows and prompts of seeded ids");
  std::unique_ptr<FaultyModel> faulty;
  if (plant != nullptr) {
    faulty = plant->make(*loaded.model);
    fmt::print("planted: {}\n", plant->what);
  }
  const Subject subject{faulty ? *faulty : *loaded.model, timing_text(loaded.tokenizer.get(), facts.vocab_size, 1024)};
  const Outcome outcome = check_all(subject);
  const double seconds = std::chrono::duration<double>(SteadyTime::now() - begin).count();
  if (outcome.failed.empty()) {
    fmt::print("\nthe laws hold: {}/{} comparisons in {} checks, {:.1f} s\n", outcome.held, outcome.total,
               outcome.num_checks, seconds);
  } else {
    fmt::print("\n{} of {} checks FAILED: {}/{} comparisons hold, {:.1f} s\n", outcome.failed.size(),
               outcome.num_checks, outcome.held, outcome.total, seconds);
  }
  if (outcome.skipped > 0) fmt::print("{} left out, as said above\n", outcome.skipped);
  if (plant != nullptr) report_plant(*plant, faulty->strikes(), outcome);
  return plant != nullptr || !outcome.failed.empty() ? 1 : 0;
}

void list_plants() {
  for (const Plant& plant : plants()) fmt::print("  {:<18} {}\n", plant.name, plant.what);
}

}  // namespace

int selfcheck_command(int argc, char** argv) {
  CLI::App app("Proves on this machine, with this model, that a reply depends on its own request alone.",
               "rondo selfcheck");
  SelfcheckOptions options;
  app.add_option("MODEL", options.load.model_folder, "checkpoint folder; without one, the bundled model");
  add_device_flag(app, options.load);
  app.add_option("--threads", options.load.num_threads, "threads that compute (default: one a core)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--context", options.load.context_tokens,
                 fmt::format("tokens of one request (default: {}; at least {})", kContext, kSmallestContext))
      ->check(CLI::Range(kSmallestContext, 1 << 30));
  app.add_option("--plant", options.plant,
                 "plant a fault, which the checks must see: the exit status is then 1; 'list' names them");
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  if (options.plant == "list") {
    list_plants();
    return 0;
  }
  const Plant* plant = find_plant(options.plant);
  if (plant == nullptr && !options.plant.empty()) {
    fmt::print(stderr, "rondo selfcheck: there is no plant '{}' (--plant list names them)\n", options.plant);
    return 2;
  }
  const Result<int> status = run_selfcheck(options, plant);
  return status ? *status : fail_with("rondo selfcheck", status.error());
}

}  // namespace rondo
