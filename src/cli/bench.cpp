// rondo bench: how fast this model runs on this machine, next to how fast the machine reads memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/read_rate.h"

namespace rondo {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = std::size_t{1} << 30;
constexpr int kRuns = 5;  // of each figure; the median counts
constexpr int kPromptTokens = 1024;
constexpr int kShortPromptTokens = 64;  // before decoding
constexpr int kSlowDecodeTokens = 24;   // when a token takes long

struct BenchOptions {
  LoadOptions load;
  std::string synthetic;
  int decode_tokens = 256;
  bool json = false;
};

struct Spread {
  double median, lowest, highest;
};

Spread spread(std::vector<double> runs) {
  std::sort(runs.begin(), runs.end());
  return {runs[runs.size() / 2], runs.front(), runs.back()};
}

struct OneStream {
  Spread prompt_tok_s, decode_tok_s;
};

// One sequence on slot 0 of a model, greedy, straight over the contract: what the engine adds is not in these figures.
class LoneStream {
 public:
  explicit LoneStream(Model& model) : model_(model) {
    for (int b = 0; b < model.facts().num_blocks / model.facts().max_streams; ++b) blocks_.push_back(b);
  }

  double prompt_tok_s(const std::vector<std::int32_t>& ids) {
    const auto begin = Clock::now();
    fill(ids);
    return static_cast<double>(ids.size()) / seconds_since(begin);
  }

  double decode_tok_s(const std::vector<std::int32_t>& prompt, int tokens) {
    fill(prompt);
    std::int32_t token = prompt.back();
    const auto begin = Clock::now();
    for (int i = 0; i < tokens; ++i) {
      const Window window{.slot = 0,
                          .start_pos = pos_++,
                          .ids = {&token, 1},
                          .certain = 1,
                          .blocks = blocks_,
                          .draw = &greedy_,
                          .generated = {},
                          .masks = {},
                          .num_top_logprobs = -1};
      token = model_.verify({&window, 1}).tokens[0];
      const Kept kept{.slot = 0, .rows = 1, .next_token = token, .feeds_head = false};
      model_.commit({&kept, 1});
    }
    return tokens / seconds_since(begin);
  }

 private:
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  void fill(const std::vector<std::int32_t>& ids) {
    model_.release(0);
    for (pos_ = 0; pos_ < static_cast<int>(ids.size());) {
      const int count = std::min(model_.facts().max_rows, static_cast<int>(ids.size()) - pos_);
      const auto rows = std::span(ids).subspan(static_cast<std::size_t>(pos_), static_cast<std::size_t>(count));
      const Slice slice{.slot = 0, .start_pos = pos_, .ids = rows, .blocks = blocks_, .feeds_head = false};
      model_.prefill({&slice, 1});
      pos_ += count;
    }
  }

  Model& model_;
  const DrawSettings greedy_{.temperature = 0, .bias = {}};
  std::vector<std::int32_t> blocks_;
  int pos_ = 0;
};

// The same ids for everyone who measures this model: spread over the vocabulary, from no text.
std::vector<std::int32_t> seeded_ids(int n, int vocab) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(static_cast<std::int32_t>((i * 7919LL + 13) % vocab));
  return ids;
}

OneStream measure(Model& model, int decode_tokens) {
  const ModelFacts& facts = model.facts();
  const int room = facts.context_tokens - kShortPromptTokens;
  LoneStream stream(model);
  const auto prompt = seeded_ids(std::min(kPromptTokens, facts.context_tokens), facts.vocab_size);
  const auto short_prompt = seeded_ids(kShortPromptTokens, facts.vocab_size);
  if (stream.decode_tok_s(short_prompt, 4) < 50) decode_tokens = std::min(decode_tokens, kSlowDecodeTokens);
  std::vector<double> prompt_runs, decode_runs;
  for (int run = 0; run < kRuns; ++run) {
    prompt_runs.push_back(stream.prompt_tok_s(prompt));
    decode_runs.push_back(stream.decode_tok_s(short_prompt, std::min(decode_tokens, room)));
  }
  return {spread(prompt_runs), spread(decode_runs)};
}

struct Report {
  std::string model;
  OneStream one;
  ModelFacts facts;
  int threads;
  double read_rate, ready_s;
};

std::string to_text(const Report& r) {
  const auto line = [](const char* what, Spread s, const char* unit) {
    return fmt::format("  {:<34} {:>10.1f} {:<9} ({:.1f} .. {:.1f}, {} runs)\n", what, s.median, unit, s.lowest,
                       s.highest, kRuns);
  };
  const double bytes = static_cast<double>(r.facts.weight_bytes_per_row);
  const double rate = bytes * r.one.decode_tok_s.median;
  std::string out =
      fmt::format("{} on {}, {} threads, one stream, undrafted, greedy\n", r.model, r.facts.arithmetic, r.threads);
  out += line("prompt", r.one.prompt_tok_s, "tokens/s");
  out += line("decode", r.one.decode_tok_s, "tokens/s");
  out += fmt::format("  {:<34} {:>10.1f} MB\n", "weights read for one token", bytes / 1e6);
  out += fmt::format("  {:<34} {:>10.2f} GB/s\n", "so decode reads weights at", rate / 1e9);
  out += fmt::format("  {:<34} {:>10.2f} GB/s      (all threads, {} MiB)\n", "this machine reads memory at",
                     r.read_rate / 1e9, kReadBytes >> 20);
  out += fmt::format("  {:<34} {:>10.2f} x\n", "a token over reading its weights", r.read_rate / rate);
  return out + fmt::format("  {:<34} {:>10.2f} s\n", "ready after", r.ready_s);
}

std::string to_json_text(const Report& r) {
  const auto object = [](Spread s) {
    return json::Object{{"median", s.median}, {"lowest", s.lowest}, {"highest", s.highest}};
  };
  json::Object out;
  out["model"] = r.model;
  out["arithmetic"] = r.facts.arithmetic;
  out["threads"] = r.threads;
  out["prompt_tok_s"] = object(r.one.prompt_tok_s);
  out["decode_tok_s"] = object(r.one.decode_tok_s);
  out["weight_bytes_per_token"] = r.facts.weight_bytes_per_row;
  out["read_bytes_s"] = r.read_rate;
  out["ready_s"] = r.ready_s;
  return to_json(out) + "\n";
}

Result<Report> report_on(const BenchOptions& options) {
  Report report;
  const auto begin = Clock::now();
  ThreadPool pool(options.load.num_threads.value_or(num_physical_threads()));
  std::unique_ptr<const WeightSource> source;
  if (!options.synthetic.empty()) {
    TRY(source, make_synthetic(options.synthetic, 1));
    report.model = options.synthetic + " (synthetic)";
  } else {
    TRY(const std::string folder, model_folder(options.load));
    TRY(Checkpoint checkpoint, Checkpoint::open(folder));
    source = std::make_unique<Checkpoint>(std::move(checkpoint));
    report.model = folder;
  }
  ProgressLine progress;
  TRY(const auto model, load_model(*source, pool, model_options(options.load, *source, nullptr),
                                   [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
                                     progress.show(what, done, total);
                                   }));
  report.ready_s = std::chrono::duration<double>(Clock::now() - begin).count();
  report.facts = model->facts();
  report.threads = pool.num_threads();
  TRY(report.read_rate, measure_read_rate(pool, kReadBytes));
  report.one = measure(*model, options.decode_tokens);
  return report;
}

}  // namespace

int bench_command(int argc, char** argv) {
  CLI::App app("Tokens a second of prompts and of decoding, next to what this machine's memory allows.", "rondo bench");
  BenchOptions options;
  add_load_flags(app, options.load);
  app.add_option("--synthetic", options.synthetic,
                 "a published shape with weights from a seed instead of a model: qwen3.5-0.8b");
  app.add_option("-n,--tokens", options.decode_tokens, "tokens decoded a run")->check(CLI::Range(1, 100000));
  app.add_flag("--json", options.json, "one JSON object instead of a table");
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  const Result<Report> report = report_on(options);
  if (!report) return fail_with("rondo bench", report.error());
  const std::string out = options.json ? to_json_text(*report) : to_text(*report);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace rondo
