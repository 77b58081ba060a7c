#include "cli/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "base/log.h"
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

ModelOptions model_options(const LoadOptions& options, const WeightSource& source) {
  ModelOptions out;
  out.context_tokens = options.context_tokens.value_or(std::min(source.config().context_tokens, kDefaultContextTokens));
  return out;
}

ServedModel Loaded::served() const {
  ServedModel out;
  out.name = folder_name(checkpoint->folder());
  out.context_tokens = engine->context_tokens();
  out.max_tokens = out.context_tokens;
  out.defaults = checkpoint->generation_defaults();
  out.arithmetic = model->facts().arithmetic;
  out.think_end_id = tokenizer->find_id("</think>");
  out.created = std::time(nullptr);
  return out;
}

Result<Loaded> load(const LoadOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  TRY(const std::string folder, model_folder(options));
  Loaded loaded;
  TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  loaded.checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  TRY(Tokenizer tokenizer, Tokenizer::open(folder));
  loaded.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  if (options.chat_template == LoadOptions::Template::Needed) {
    TRY(ChatTemplate chat_template, ChatTemplate::open(folder));
    loaded.chat_template = std::make_unique<ChatTemplate>(std::move(chat_template));
  }
  loaded.pool = std::make_unique<ThreadPool>(options.num_threads.value_or(num_physical_threads()));
  {
    ProgressLine progress;
    TRY(loaded.model, load_model(*loaded.checkpoint, *loaded.pool, model_options(options, *loaded.checkpoint),
                                 [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
                                   progress.show(what, done, total);
                                 }));
  }
  loaded.engine =
      std::make_unique<Engine>(*loaded.model, loaded.tokenizer.get(), EngineOptions{.max_queued = options.max_queued});
  loaded.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return loaded;
}

}  // namespace rondo
