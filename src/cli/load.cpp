#include "cli/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "base/log.h"
#include "base/random.h"
#include "cli/progress.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

std::string folder_name(const std::string& folder) {
  std::error_code ignored;
  const fs::path path = fs::weakly_canonical(folder, ignored);
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  return name.empty() ? folder : name;
}

}  // namespace

Result<std::string> find_bundled_model() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = program.parent_path().parent_path();
  for (const fs::path& folder :
       {beside / "models" / "rondo-demo", beside / "share" / "rondo" / "models" / "rondo-demo"}) {
    if (fs::exists(folder / "config.json", error)) return folder.string();
  }
  return failure(ErrorCode::NotFound,
                 fmt::format("the bundled model is not at {}/models/rondo-demo: name a checkpoint folder as MODEL",
                             beside.string()));
}

Result<std::string> model_folder(const LoadOptions& options) {
  if (!options.model_folder.empty()) return options.model_folder;
  return find_bundled_model();
}

// auto: a GPU if this build has code for one and the machine has it, and says so if only the first is true.
Isa isa_on(const std::string& device) {
  if (device == "cuda") return Isa::Sm90;  // where there is none, loading refuses in words
  if (device == "cpu" || !built_with_cuda()) return best_isa();
  const auto queue = open_queue(Isa::Sm90);
  if (queue) return Isa::Sm90;
  log_info("{}; this is the CPU", queue.error().message);
  return best_isa();
}

ModelOptions model_options(const LoadOptions& options, const WeightSource& source, const Tokenizer* tokenizer) {
  ModelOptions out;
  out.context_tokens = options.context_tokens.value_or(std::min(source.config().context_tokens, kDefaultContextTokens));
  out.isa = isa_on(options.device);
  out.max_streams = options.num_streams;
  // A GPU's products read a weight once for each tile of rows, and want hundreds of them to be busy with.
  constexpr int kRowsOnGpu = 1024;
  out.max_rows = std::max(out.isa == Isa::Sm90 ? kRowsOnGpu : out.max_rows, options.num_streams);
  out.max_drafts = options.max_depth;
  out.has_head = options.drafts;
  if (tokenizer != nullptr) out.draft_extra = tokenizer->added_ids();
  return out;
}

Result<void> fit_prompt_cache(const LoadOptions& options, const WeightSource& source, ThreadPool& pool,
                              ModelOptions& out) {
  constexpr std::uint64_t kMib = 1 << 20;
  if (options.prompt_cache_mib) {
    const auto fitted = fit_cache(source, pool, static_cast<std::uint64_t>(*options.prompt_cache_mib) * kMib, out);
    if (!fitted) return failure(fitted.error().code, "--prompt-cache-mib: " + fitted.error().message);
    return {};
  }
  ModelOptions one = out, none = out;
  one.cache_states = 1;
  none.cache_states = one.cache_blocks = none.cache_blocks = 0;
  const std::uint64_t state =
      plan_memory(source, pool, one).reserved_bytes() - plan_memory(source, pool, none).reserved_bytes();
  const auto machine =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto wanted = 2 * kCacheStatesPerStream * static_cast<std::uint64_t>(out.max_streams) * state;
  if (!fit_cache(source, pool, std::min(wanted, machine / 8), out)) out.cache_states = out.cache_blocks = 0;
  return {};
}

std::vector<std::int32_t> timing_text(const Tokenizer* tokenizer, int vocab_size, int num_ids) {
  constexpr std::string_view kText =
      "def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result\n\n"
      "The harbour lay quiet in the morning. Two boats had come in with the tide, and the men on the quay were already "
      "at "
      "work with the nets, talking of prices and of the wind. What is 23 + 45? It is 68.\n";
  const std::vector<std::int32_t> text = tokenizer != nullptr ? tokenizer->encode(kText) : std::vector<std::int32_t>{};
  std::vector<std::int32_t> ids;
  for (int i = 0; i < num_ids; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ids.push_back(text.empty() ? static_cast<std::int32_t>(random_bits(7, at) % static_cast<std::uint64_t>(vocab_size))
                               : text[at % text.size()]);
  }
  return ids;
}

ServedModel Loaded::served() const {
  ServedModel out;
  out.name = folder_name(checkpoint->folder());
  out.vocab_size = model->facts().vocab_size;
  out.context_tokens = engine->context_tokens();
  out.max_tokens = out.context_tokens;
  out.defaults = checkpoint->generation_defaults();
  out.arithmetic = model->facts().arithmetic;
  out.think_end_id = tokenizer->find_id("</think>");
  out.memory = model->plan();
  out.drafts_priced = costs.priced();
  out.tool_call_id = tokenizer->find_id("<tool_call>");
  if (out.think_end_id) out.think_closing = tokenizer->encode("\n</think>");
  if (chat_template != nullptr) {
    out.reads_tools = chat_template->mentions("tools");
    out.reads_enable_thinking = chat_template->mentions("enable_thinking");
    out.reads_reasoning_effort = chat_template->mentions("reasoning_effort");
  }
  out.created = std::time(nullptr);
  return out;
}

Result<Loaded> load(const LoadOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  TRY(const std::string folder, model_folder(options));
  Loaded loaded;
  TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  loaded.checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  if (!loaded.checkpoint->has_tokenizer()) {
    return failure(ErrorCode::NotFound,
                   fmt::format("{}: no tokenizer.json, so it has no text to read or write; inspect and "
                               "selfcheck work without one",
                               folder));
  }
  TRY(Tokenizer tokenizer, Tokenizer::open(folder));
  loaded.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  if (options.chat_template == LoadOptions::Template::Needed) {
    TRY(ChatTemplate chat_template, ChatTemplate::open(folder));
    loaded.chat_template = std::make_unique<ChatTemplate>(std::move(chat_template));
  }
  loaded.pool = std::make_unique<ThreadPool>(options.num_threads.value_or(num_physical_threads()));
  loaded.shape = model_options(options, *loaded.checkpoint, loaded.tokenizer.get());
  TRY_VOID(fit_prompt_cache(options, *loaded.checkpoint, *loaded.pool, loaded.shape));
  {
    ProgressLine progress;
    TRY(loaded.model, load_model(*loaded.checkpoint, *loaded.pool, loaded.shape,
                                 [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
                                   progress.show(what, done, total);
                                 }));
  }
  loaded.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (loaded.model->facts().has_head && options.priced) {
    const auto text =
        timing_text(loaded.tokenizer.get(), loaded.model->facts().vocab_size, 2 * loaded.model->facts().max_rows);
    loaded.costs = loaded.model->time_costs(text, kTimingBudgetMs);
    loaded.timing_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() - loaded.load_ms;
  }
  loaded.engine =
      std::make_unique<Engine>(*loaded.model, loaded.tokenizer.get(), loaded.costs, *loaded.clock,
                               EngineOptions{.max_queued = options.max_queued, .stall_ms = options.stall_ms});
  return loaded;
}

}  // namespace rondo
