// rondo bench: how fast this model runs on this machine: one stream next to how fast the machine reads memory, then the
// ladder of streams, plain and drafted (cli/ladder.h says what is timed).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/ladder.h"
#include "cli/ladder_report.h"
#include "cli/progress.h"
#include "cli/read_rate.h"
#include "cli/spread.h"

namespace rondo {

namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 30;
constexpr int kRuns = 5;  // of each figure; the median counts
constexpr int kPromptTokens = 1024;
constexpr int kShortPromptTokens = 64;                      // before decoding
constexpr int kDecodeTokens = 256, kSlowDecodeTokens = 24;  // a run; the fewer when a token takes long
constexpr double kSlowTokS = 50;

constexpr int kSyntheticContext = 2048;

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
    const auto begin = SteadyClock().now();
    first_token(ids);
    return static_cast<double>(ids.size()) / seconds_since(begin);
  }

  double decode_tok_s(const std::vector<std::int32_t>& prompt, int tokens) {
    std::int32_t token = first_token(prompt);
    const auto begin = SteadyClock().now();
    for (int i = 0; i < tokens; ++i) token = next_token(token);
    return tokens / seconds_since(begin);
  }

 private:
  static double seconds_since(Clock::Time begin) {
    return std::chrono::duration<double>(SteadyClock().now() - begin).count();
  }

  std::int32_t next_token(std::int32_t token) {
    const Window window{.slot = 0,
                        .start_pos = pos_++,
                        .ids = {&token, 1},
                        .certain = 1,
                        .blocks = blocks_,
                        .draw = &greedy_,
                        .generated = {},
                        .masks = {},
                        .num_top_logprobs = -1};
    const Kept kept{.slot = 0, .rows = 1, .next_token = model_.verify({&window, 1}).tokens[0], .feeds_head = false};
    model_.commit({&kept, 1});
    return kept.next_token;
  }

  // Prompt rows may only be queued, on a GPU; a token that is drawn is waited for.
  std::int32_t first_token(std::span<const std::int32_t> prompt) {
    fill(prompt.first(prompt.size() - 1));
    return next_token(prompt.back());
  }

  void fill(std::span<const std::int32_t> ids) {
    model_.release(0);
    for (pos_ = 0; pos_ < static_cast<int>(ids.size());) {
      const int count = std::min(model_.facts().max_rows, static_cast<int>(ids.size()) - pos_);
      const auto rows = ids.subspan(static_cast<std::size_t>(pos_), static_cast<std::size_t>(count));
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

OneStream measure(Model& model) {
  const ModelFacts& facts = model.facts();
  const int room = facts.context_tokens - kShortPromptTokens;
  LoneStream stream(model);
  const auto prompt = seeded_ids(std::min(kPromptTokens, facts.context_tokens), facts.vocab_size);
  const auto short_prompt = seeded_ids(kShortPromptTokens, facts.vocab_size);
  const int tokens = stream.decode_tok_s(short_prompt, 4) < kSlowTokS ? kSlowDecodeTokens : kDecodeTokens;
  std::vector<double> prompt_runs, decode_runs;
  for (int run = 0; run < kRuns; ++run) {
    prompt_runs.push_back(stream.prompt_tok_s(prompt));
    decode_runs.push_back(stream.decode_tok_s(short_prompt, std::min(tokens, room)));
  }
  model.release(0);
  return {spread(prompt_runs), spread(decode_runs)};
}

struct BenchOptions {
  LoadOptions load;
  std::string synthetic;
  int num_layers = 0;
  std::string format = "bf16";
  std::vector<double> accept{0.80, 0.65, 0.50};
  std::vector<int> streams;
  std::vector<std::string> prompts;
  std::optional<int> reply_tokens;
  std::optional<int> pairs;
  bool quick = false;
  bool json = false;

  bool is_synthetic() const { return !synthetic.empty(); }
};

// What is measured, in the order in which each stands on the ones before it.
struct Subject {
  std::string name;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<const WeightSource> source;
  std::unique_ptr<Tokenizer> tokenizer;         // null: the model has none
  std::unique_ptr<ChatTemplate> chat_template;  // likewise
  std::vector<std::int32_t> end_ids;
  std::unique_ptr<Model> model;
  CostTables costs;
  double ready_s = 0;
};

Result<void> open_source(const BenchOptions& options, Subject& subject) {
  if (options.is_synthetic()) {
    subject.name = fmt::format("{} (synthetic, {})", options.synthetic, options.format);
    TRY(const SyntheticFormat format, synthetic_format(options.format));
    // On a GPU the weights are made up where they are wanted.
    const bool is_hollow = isa_on(options.load.device) == Isa::Sm90;
    TRY(subject.source, make_synthetic(options.synthetic,
                                       {.format = format, .num_layers = options.num_layers, .is_hollow = is_hollow}));
    return {};
  }
  TRY(subject.name, model_folder(options.load));
  TRY(Checkpoint checkpoint, Checkpoint::open(subject.name));
  if (checkpoint.has_tokenizer()) {
    TRY(Tokenizer tokenizer, Tokenizer::open(subject.name));
    subject.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  }
  if (checkpoint.has_chat_template()) {
    TRY(ChatTemplate chat_template, ChatTemplate::open(subject.name));
    subject.chat_template = std::make_unique<ChatTemplate>(std::move(chat_template));
  }
  subject.end_ids = checkpoint.generation_defaults().end_tokens;
  subject.source = std::make_unique<Checkpoint>(std::move(checkpoint));
  return {};
}

Result<Subject> load_subject(const BenchOptions& options) {
  const Clock::Time begin = SteadyClock().now();
  Subject subject;
  subject.pool = std::make_unique<ThreadPool>(options.load.num_threads.value_or(num_physical_threads()));
  TRY_VOID(open_source(options, subject));
  {
    ProgressLine progress;
    TRY(subject.model, load_model(*subject.source, *subject.pool,
                                  model_options(options.load, *subject.source, subject.tokenizer.get()),
                                  [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
                                    progress.show(what, done, total);
                                  }));
  }
  const ModelFacts& facts = subject.model->facts();
  if (facts.has_head && options.load.priced) {
    subject.costs = subject.model->time_costs(
        timing_text(subject.tokenizer.get(), facts.vocab_size, 2 * facts.max_rows), kTimingBudgetMs);
  }
  subject.ready_s = ms_between(begin, SteadyClock().now()) / 1000;
  return subject;
}

struct Report {
  const Subject& subject;
  OneStream one;
  double read_rate;
  std::string ladder_notes;  // a line each
  json::Array rows;
};

std::string head_text(const Report& r) {
  const auto line = [](const char* what, Spread s, const char* unit) {
    return fmt::format("  {:<34} {:>10.1f} {:<9} ({:.1f} .. {:.1f}, {} runs)\n", what, s.median, unit, s.lowest,
                       s.highest, kRuns);
  };
  const ModelFacts& facts = r.subject.model->facts();
  const double bytes = static_cast<double>(facts.weight_bytes_per_row);
  const double rate = bytes * r.one.decode_tok_s.median;
  std::string out = fmt::format("{} on {}, {} threads, one stream, undrafted, greedy\n", r.subject.name,
                                facts.arithmetic, r.subject.pool->num_threads());
  out += line("prompt", r.one.prompt_tok_s, "tokens/s");
  out += line("decode", r.one.decode_tok_s, "tokens/s");
  out += fmt::format("  {:<34} {:>10.1f} MB\n", "weights read for one token", bytes / 1e6);
  out += fmt::format("  {:<34} {:>10.2f} GB/s\n", "so decode reads weights at", rate / 1e9);
  out += fmt::format("  {:<34} {:>10.2f} GB/s      (all threads, {} MiB)\n", "this machine reads memory at",
                     r.read_rate / 1e9, kReadBytes >> 20);
  out += fmt::format("  {:<34} {:>10.2f} x\n", "a token over reading its weights", r.read_rate / rate);
  return out + fmt::format("  {:<34} {:>10.2f} s\n", "ready after", r.subject.ready_s);
}

std::string to_json_text(const Report& r) {
  const auto object = [](Spread s) {
    return json::Object{{"median", s.median}, {"lowest", s.lowest}, {"highest", s.highest}};
  };
  json::Object out;
  out["model"] = r.subject.name;
  out["arithmetic"] = r.subject.model->facts().arithmetic;
  out["threads"] = r.subject.pool->num_threads();
  out["prompt_tok_s"] = object(r.one.prompt_tok_s);
  out["decode_tok_s"] = object(r.one.decode_tok_s);
  out["weight_bytes_per_token"] = r.subject.model->facts().weight_bytes_per_row;
  out["read_bytes_s"] = r.read_rate;
  out["ready_s"] = r.subject.ready_s;
  out["notes"] = r.ladder_notes;
  out["rows"] = r.rows;
  return to_json(out) + "\n";
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Result<std::vector<PromptKind>> choose_prompts(const BenchOptions& options, const Subject& subject,
                                               std::string& notes) {
  if (subject.tokenizer == nullptr) {
    notes += "Prompts are seeded ids: there is no tokenizer.\n";
    return std::vector{seeded_prompts(subject.model->facts().vocab_size)};
  }
  std::vector<std::string> names = options.prompts;
  if (names.empty()) {
    names = {"code", "prose"};
    if (subject.chat_template != nullptr) {
      names.emplace_back("edit");
    } else {
      notes += "No edit prompts: they are conversations, and the model has no chat template.\n";
    }
  }
  return bench_prompts(names, *subject.tokenizer, subject.chat_template.get());
}

LadderOptions ladder_options(const BenchOptions& options, const Subject& subject) {
  const int tokens = options.is_synthetic() ? 32 : options.quick ? 64 : 128;
  return {.reply_tokens = options.reply_tokens.value_or(tokens),
          .pairs = options.pairs.value_or(options.quick ? 3 : 5),
          .end_ids = subject.end_ids};
}

std::string ladder_notes(const BenchOptions& options, const LadderOptions& ladder, const Subject& subject) {
  std::string out = fmt::format(
      "Decoding alone is timed, while every stream decodes; {} alternating pairs a cell; replies of {} tokens, past "
      "their end\ntokens but for edit, whose replies end where they end. Ratio: drafted over plain, of each pair.\n",
      ladder.pairs, ladder.reply_tokens);
  if (!subject.model->facts().has_head) return out + "No MTP head: nothing is drafted.\n";
  if (options.is_synthetic()) {
    out += fmt::format(
        "Drafts are scripted: drafts 1 .. d are all right with chance {:.2f}; the head runs, its tokens are "
        "replaced.\n",
        fmt::join(options.accept, ", "));
  }
  if (!options.load.priced) out += "Costs were not timed (--unpriced): drafts go by the unpriced rule.\n";
  if (!subject.costs.why.empty()) out += fmt::format("Costs: {}.\n", subject.costs.why);
  return out;
}

// The rows, printed as they come. Returns how many replies were not what they are alone and undrafted.
Result<int> climb(const BenchOptions& options, Subject& subject, Report& report) {
  const LadderOptions chosen = ladder_options(options, subject);
  report.ladder_notes = ladder_notes(options, chosen, subject);
  TRY(const std::vector<PromptKind> kinds, choose_prompts(options, subject, report.ladder_notes));
  CountingModel counting(*subject.model);
  ScriptedModel scripted(*subject.model, options.accept);
  const bool by_script = options.is_synthetic();
  Ladder ladder(by_script ? scripted : counting, by_script ? &scripted : nullptr, subject.costs, chosen);
  if (!options.json) print("\n" + report.ladder_notes + "\n" + ladder_header());
  ProgressLine progress("measuring");
  int different = 0;
  for (const PromptKind& kind : kinds) {
    for (const double temperature : {0.0, 0.7}) {
      for (const int streams : options.streams) {
        const std::string cell =
            fmt::format("{}, {} {}, T {}", kind.name, streams, streams == 1 ? "stream" : "streams", temperature);
        TRY(const LadderRow row, ladder.run_cell(kind, streams, temperature, [&](int pair) {
          progress.show(cell, static_cast<std::uint64_t>(pair), static_cast<std::uint64_t>(chosen.pairs));
        }));
        progress.wipe();
        if (!options.json) print(to_text_line(row));
        report.rows.push_back(to_json_object(row));
        different += num_different(row);
      }
    }
  }
  return different;
}

Result<int> run_bench(const BenchOptions& options) {
  TRY(Subject subject, load_subject(options));
  TRY(const double read_rate, measure_read_rate(*subject.pool, kReadBytes));
  Report report{
      .subject = subject, .one = measure(*subject.model), .read_rate = read_rate, .ladder_notes = {}, .rows = {}};
  if (!options.json) print(head_text(report));
  TRY(const int different, climb(options, subject, report));
  if (options.json) print(to_json_text(report));
  return different;
}

void add_bench_flags(CLI::App& app, BenchOptions& options) {
  add_load_flags(app, options.load);
  auto* synthetic = app.add_option("--synthetic", options.synthetic,
                                   "a published shape with weights from a seed instead of a model: qwen3.5-0.8b, "
                                   "qwen3.8-27b, qwen3.5-35b-a3b, qwen3.8-flash-next");
  app.add_option("--layers", options.num_layers, "with --synthetic: the first so many (default: all)")
      ->check(CLI::Range(1, 1024))
      ->needs(synthetic);
  app.add_option("--format", options.format, "with --synthetic: of the weights")
      ->check(CLI::IsMember({"bf16", "nvfp4", "fp8", "affine4"}))
      ->needs(synthetic)
      ->capture_default_str();
  app.add_option("--accept", options.accept,
                 "with --synthetic: chances that drafts 1, 2, ... are all kept (default: 0.80,0.65,0.50)")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 1.0))
      ->needs(synthetic);
  app.add_option("--streams", options.streams, "how many at once (default: 1,2,4,8,16; synthetic 1,2,4; quick 1,4)")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  app.add_option("--prompts", options.prompts, "of code,prose,edit (default: all that the model can read)")
      ->delimiter(',');
  app.add_option("-n,--tokens", options.reply_tokens, "tokens of a reply (default: 128; quick 64; synthetic 32)")
      ->check(CLI::Range(8, 100000));
  app.add_option("--pairs", options.pairs, "runs of a cell, each plain and drafted (default: 5; quick 3)")
      ->check(CLI::Range(1, 100));
  app.add_flag("--quick", options.quick, "a shorter ladder");
  app.add_flag("--json", options.json, "one JSON object at the end instead of a table");
}

void fill_in_defaults(BenchOptions& options) {
  if (options.streams.empty()) {
    options.streams = {1, 4};
    if (!options.quick) options.streams = options.is_synthetic() ? std::vector{1, 2, 4} : std::vector{1, 2, 4, 8, 16};
  }
  options.load.num_streams = *std::max_element(options.streams.begin(), options.streams.end());
  options.load.prompt_cache_mib = 0;  // every run reads its prompts itself
  if (options.is_synthetic() && !options.load.context_tokens) options.load.context_tokens = kSyntheticContext;
}

}  // namespace

int bench_command(int argc, char** argv) {
  CLI::App app(
      "Tokens a second: one stream next to what this machine's memory allows, then a ladder of streams, plain "
      "and drafted.",
      "rondo bench");
  BenchOptions options;
  add_bench_flags(app, options);
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  if (!std::is_sorted(options.accept.rbegin(), options.accept.rend())) {
    fmt::print(stderr, "rondo bench: --accept must not rise: drafts 1 .. 3 are never kept more often than 1 .. 2\n");
    return 2;
  }
  fill_in_defaults(options);
  const Result<int> different = run_bench(options);
  if (!different) return fail_with("rondo bench", different.error());
  if (*different == 0) return 0;
  fmt::print(stderr, "rondo bench: {} replies are not what they are alone and undrafted\n", *different);
  return 1;
}

}  // namespace rondo
